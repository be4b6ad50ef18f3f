import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  expectDone,
  expectRefused,
  finalizer,
  mergePatch,
  provider,
  providerClass,
  read,
  send,
} from "../crd/cluster-fixture.ts";
import type { Cluster } from "../dev-cluster/cluster.ts";
import type { ControllerPatch } from "./controller-writes.ts";
import { people, startGuardedCluster } from "./guard-fixture.ts";

const belongsToUsers = /spec belongs to users/;

describe("the guard of spec", () => {
  let cluster: Cluster;
  let patchAsController: ControllerPatch;
  before(async () => {
    ({ cluster, patchAsController } = await startGuardedCluster());
    expectDone(await send(cluster, ["create"], provider("theirs")));
    expectDone(await send(cluster, ["create"], providerClass("theirs")));
  });
  after(() => cluster.stop());

  for (const [what, change] of [
    ["dhp/theirs", { suspend: true }],
    ["dhp/theirs", { endpoint: "https://elsewhere.example.com" }],
    ["dhpclass/theirs", { endpointHosts: ["tts.example.com"] }],
  ] as const) {
    it(`refuses the controller's change of ${Object.keys(change)[0]} in ${what}`, async () => {
      const before = await read(cluster, [what]);
      const patch = { metadata: { finalizers: [finalizer] }, spec: change };
      expectRefused(await patchAsController(what, patch), belongsToUsers);
      assert.deepEqual(await read(cluster, [what]), before);
    });
  }

  it("admits the controller's writes of metadata and status", async () => {
    for (const what of ["dhp/theirs", "dhpclass/theirs"] as const) {
      const patch = { metadata: { finalizers: [finalizer], annotations: { a: "b" } } };
      expectDone(await patchAsController(what, patch));
      const status = { status: { observedGeneration: 1 } };
      expectDone(await patchAsController(what, status, "/status"));
    }
  });

  it("admits users' changes of spec", async () => {
    const patch = { spec: { suspend: true } };
    expectDone(await mergePatch(cluster, "dhp/theirs", patch, people.editor));
  });
});
