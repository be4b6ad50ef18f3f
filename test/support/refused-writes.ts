/** Makes the API server refuse one kind of the controller's writes, as an outage would. */
import assert from "node:assert/strict";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import type { Stack } from "./stack.ts";

export interface Refusal {
  /** "digitalhumanproviders" or "digitalhumanproviders/status". */
  readonly resource: string;
  /** CEL over object and oldObject that is false for a write to be refused. */
  readonly allowed: string;
}

/** Returns once the refusal acts, about a second later; the returned function ends it. */
export async function refuseWrites(stack: Stack, refusal: Refusal): Promise<() => Promise<void>> {
  const name = `refusal-${process.hrtime.bigint()}`;
  await stack.apply({ apiVersion: "v1", kind: "List", items: manifests(name, refusal) });
  await untilActive(stack, name);
  return async () => {
    for (const kind of ["validatingadmissionpolicybinding", "validatingadmissionpolicy"]) {
      expectDone(await stack.cluster.kubectl(["delete", kind, name]));
    }
    await untilInactive(stack, name);
  };
}

function manifests(name: string, { resource, allowed }: Refusal): readonly object[] {
  return [
    {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingAdmissionPolicy",
      metadata: { name },
      spec: {
        failurePolicy: "Fail",
        matchConstraints: {
          resourceRules: [
            rule("dhp.example.com", resource, ["UPDATE"]),
            // The probe: one configuration of its own that shows whether the policy acts.
            rule("", "configmaps", ["CREATE"]),
          ],
        },
        matchConditions: [
          {
            name: "controller-or-probe",
            expression: `request.userInfo.username.endsWith(":dhp-controller") || object.metadata.name == "${name}"`,
          },
        ],
        validations: [
          {
            expression: `object.kind == "ConfigMap" ? false : (${allowed})`,
            message: "refused by the test",
          },
        ],
      },
    },
    {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingAdmissionPolicyBinding",
      metadata: { name },
      spec: { policyName: name, validationActions: ["Deny"] },
    },
  ];
}

function rule(group: string, resource: string, operations: readonly string[]): object {
  return { apiGroups: [group], apiVersions: ["*"], operations, resources: [resource] };
}

function untilActive(stack: Stack, name: string): Promise<void> {
  return eventually(async () => assert.match(await probe(stack, name), /refused by the test/));
}

function untilInactive(stack: Stack, name: string): Promise<void> {
  return eventually(async () => assert.equal(await probe(stack, name), ""));
}

async function probe(stack: Stack, name: string): Promise<string> {
  const args = ["create", "configmap", name, "-n", "default", "--dry-run=server"];
  return (await stack.cluster.kubectl(args)).stderr;
}
