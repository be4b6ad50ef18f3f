/** DigitalHumanProviders as tests make, read and await them. */
import assert from "node:assert/strict";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import type { Cluster } from "../../deploy/dev-cluster/cluster.ts";
import { livekitEndpoint } from "./stack.ts";

/** What tests look at in an object. */
export interface Dhp {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation: number;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly observedGeneration?: number;
    readonly providerID?: string;
    readonly className?: string;
    /** RFC 3339. */
    readonly rateLimitedUntil?: string;
    readonly placements?: readonly Readonly<Record<string, unknown>>[];
    readonly conditions?: readonly DhpCondition[];
  };
}

export interface DhpCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
}

/** A manifest that is right in every field but those given. */
export function dhp(name: string, spec: Readonly<Record<string, unknown>> = {}): object {
  return {
    apiVersion: "dhp.example.com/v1alpha1",
    kind: "DigitalHumanProvider",
    metadata: { name, namespace: "default" },
    spec: { endpoint: livekitEndpoint, region: "cn-hangzhou", ...spec },
  };
}

export async function applyDhp(cluster: Cluster, manifest: object): Promise<void> {
  const input = JSON.stringify(manifest);
  expectDone(await cluster.kubectl(["apply", "-f", "-"], { input }));
}

export async function readDhp(cluster: Cluster, name: string): Promise<Dhp> {
  return JSON.parse(expectDone(await cluster.kubectl(["get", "dhp", name, "-o", "json"])));
}

/** Merge-patches metadata or spec as a user; answers the object after it. */
export async function patchDhp(cluster: Cluster, name: string, patch: object): Promise<Dhp> {
  const args = ["patch", "dhp", name, "--type=merge", "-p", JSON.stringify(patch), "-o", "json"];
  return JSON.parse(expectDone(await cluster.kubectl(args)));
}

/** Asks for a pass that reads the vendor again. */
export async function forcePass(cluster: Cluster, name: string): Promise<void> {
  const annotations = { "dhp.example.com/reconcile-requested-at": String(process.hrtime.bigint()) };
  await patchDhp(cluster, name, { metadata: { annotations } });
}

/** Deletes and returns at once; finalizers may keep it. */
export async function deleteDhp(cluster: Cluster, name: string): Promise<void> {
  expectDone(await cluster.kubectl(["delete", "dhp", name, "--wait=false"]));
}

export function condition(object: Dhp, type: string): DhpCondition {
  const found = object.status?.conditions?.find((candidate) => candidate.type === type);
  assert.ok(found, `${object.metadata.name} has no condition ${type} yet`);
  return found;
}

/** Waits until Ready is `status` for the object's present generation. */
export function untilReady(
  cluster: Cluster,
  name: string,
  status: "True" | "False" | "Unknown" = "True",
  timeoutMs = 20_000,
): Promise<Dhp> {
  return eventually(async () => {
    const object = await readDhp(cluster, name);
    const ready = condition(object, "Ready");
    assert.equal(ready.status, status, `${ready.reason}: ${ready.message}`);
    assert.equal(object.status?.observedGeneration, object.metadata.generation);
    return object;
  }, timeoutMs);
}

export function untilGone(cluster: Cluster, name: string, timeoutMs = 20_000): Promise<void> {
  return eventually(async () => {
    const result = await cluster.kubectl(["get", "dhp", name, "-o", "json"]);
    assert.match(result.stderr, /NotFound/, `still there: ${result.stdout}`);
  }, timeoutMs);
}
