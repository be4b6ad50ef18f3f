/** Many DigitalHumanProviders at once, made, edited, deleted and read with one call each. */
import assert from "node:assert/strict";

import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import type { Cluster } from "../../deploy/dev-cluster/cluster.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { applyDhp, dhp } from "../support/providers.ts";
import type { Dhp } from "../support/providers.ts";
import type { Stack } from "../support/stack.ts";

export type Spec = Readonly<Record<string, unknown>>;

/** Makes those that are not there, and edits those that are. */
export async function applyMany(
  cluster: Cluster,
  names: readonly string[],
  spec: Spec = {},
): Promise<void> {
  const items = names.map((name) => dhp(name, spec));
  await applyDhp(cluster, { apiVersion: "v1", kind: "List", items });
}

/** Returns at once; finalizers may keep them. */
export async function deleteMany(cluster: Cluster, names: readonly string[]): Promise<void> {
  expectDone(await cluster.kubectl(["delete", "dhp", ...names, "--wait=false"]));
}

export async function readAll(cluster: Cluster): Promise<readonly Dhp[]> {
  const list = expectDone(await cluster.kubectl(["get", "dhp", "-n", "default", "-o", "json"]));
  return JSON.parse(list).items;
}

/** Waits until exactly these are there, each Ready for its present generation; answers them. */
export function untilOnlyReady(
  cluster: Cluster,
  names: readonly string[],
  timeoutMs: number,
): Promise<readonly Dhp[]> {
  return eventually(async () => {
    const objects = await readAll(cluster);
    assert.deepEqual(objects.map(({ metadata }) => metadata.name).sort(), [...names].sort());
    for (const { metadata, status } of objects) {
      const ready = status?.conditions?.find(({ type }) => type === "Ready");
      assert.equal(ready?.status, "True", `${metadata.name}: ${ready?.reason} ${ready?.message}`);
      assert.equal(status?.observedGeneration, metadata.generation, metadata.name);
    }
    return objects;
  }, timeoutMs);
}

/** At ElevenLabs there is one agent for each of the objects, the recorded one, and no other. */
export async function expectInstanceEach(stack: Stack, objects: readonly Dhp[]): Promise<void> {
  const agents = await stack.elevenLabs.agents();
  const ids = objects.map(({ status }) => status?.providerID ?? "none");
  const sorted = (all: readonly string[]): readonly string[] => [...all].sort();
  assert.deepEqual(sorted(agents.map(({ id }) => id)), sorted(ids));
}

export function numbered(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

/** So long it lasts: weather, not a wait for something to happen. */
export async function lasting(ms: number): Promise<void> {
  const untilMs = performance.now() + ms;
  await eventually(async () => assert.ok(performance.now() >= untilMs), ms + 5_000);
}
