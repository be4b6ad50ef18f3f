/** kill -9 at the two instants that leak or duplicate: the record and doubt must heal both. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { connectController } from "../../deploy/policy/controller-writes.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import { applyDhp, deleteDhp, dhp, untilGone, untilReady } from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

/** Doubt after a start: the rest of not_after, the mutation deadline and the skew allowance. */
const doubtTimeoutMs = 60_000;
let stack: Stack;

before(async () => {
  stack = await startStack({ withController: false });
});
after(() => stack.stop());

/** Makes the API server refuse one kind of the controller's writes, as an outage would. */
async function refuseWrites(name: string, resource: string, expression: string): Promise<void> {
  const policy = {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicy",
    metadata: { name },
    spec: {
      failurePolicy: "Fail",
      matchConstraints: {
        resourceRules: [
          {
            apiGroups: ["dhp.example.com"],
            apiVersions: ["*"],
            operations: ["UPDATE"],
            resources: [resource],
          },
        ],
      },
      matchConditions: [
        { name: "controller", expression: 'request.userInfo.username.endsWith(":dhp-controller")' },
      ],
      validations: [{ expression, message: "refused by the test" }],
    },
  };
  const binding = {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName: name, validationActions: ["Deny"] },
  };
  await stack.apply({ apiVersion: "v1", kind: "List", items: [policy, binding] });
  await untilRefused(resource, name);
}

/** A policy acts about a second after it was applied: ask with a probe until it does. */
async function untilRefused(resource: string, name: string): Promise<void> {
  const probe = `probe-${name}`;
  await applyDhp(stack.cluster, dhp(probe));
  const isStatus = resource.endsWith("/status");
  const patch = isStatus ? { status: { observedGeneration: 1 } } : { metadata: { finalizers: [] } };
  const send = await connectController(stack.cluster);
  await eventually(async () => {
    const result = await send(`dhp/${probe}`, patch, isStatus ? "/status" : "?dryRun=All");
    assert.match(result.stderr, /refused by the test/);
  });
  await deleteDhp(stack.cluster, probe);
}

async function allowWrites(name: string): Promise<void> {
  for (const kind of ["validatingadmissionpolicybinding", "validatingadmissionpolicy"]) {
    expectDone(await stack.cluster.kubectl(["delete", kind, name]));
  }
}

async function expectRooms(count: number): Promise<void> {
  assert.equal((await listRooms(stack.livekit)).length, count);
}

test("killed between Ensure and the status write: one room, found again by its key", async () => {
  await refuseWrites("no-status", "digitalhumanproviders/status", "false");
  await stack.startController();
  await applyDhp(stack.cluster, dhp("ensured"));
  await eventually(() => expectRooms(1));
  await stack.controller.kill();
  await allowWrites("no-status");
  await stack.startController();
  await untilReady(stack.cluster, "ensured", "True", doubtTimeoutMs);
  await expectRooms(1);
});

test("killed between Delete and the finalizer's patch: no room, and the object goes", async () => {
  await refuseWrites(
    "no-finalizer",
    "digitalhumanproviders",
    "size(object.metadata.?finalizers.orValue([])) > 0",
  );
  await deleteDhp(stack.cluster, "ensured");
  await eventually(() => expectRooms(0));
  await stack.controller.kill();
  await allowWrites("no-finalizer");
  await stack.startController();
  await untilGone(stack.cluster, "ensured", doubtTimeoutMs);
  await expectRooms(0);
});

test("killed while its object is deleted before any success was seen: nothing is left", async () => {
  await refuseWrites("no-status", "digitalhumanproviders/status", "false");
  await applyDhp(stack.cluster, dhp("unseen"));
  await eventually(() => expectRooms(1));
  await stack.controller.kill();
  await deleteDhp(stack.cluster, "unseen");
  await allowWrites("no-status");
  await stack.startController();
  await untilGone(stack.cluster, "unseen", doubtTimeoutMs);
  await expectRooms(0);
});
