import assert from "node:assert/strict";
import { test } from "node:test";

import { chooseClass } from "../resource/class-choice.ts";
import { classWith, endpointA, objectWith, placementJson } from "../resource/object-fixture.ts";
import { fingerprintOf, Memories } from "./memory.ts";

const classA = classWith("a", ["a.example.com"]);
type Change = Parameters<typeof objectWith>[0];

function fingerprint(change: Change, classes = [classA]): string {
  const object = objectWith(change);
  return fingerprintOf(object, chooseClass(object, classes));
}

test("what a pass depends on changes its fingerprint", () => {
  const changed: readonly Change[] = [
    {},
    { metadata: { uid: "uid-2" } },
    { metadata: { generation: 2 } },
    { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } },
    { metadata: { finalizers: ["dhp.example.com/provider-cleanup"] } },
    { metadata: { annotations: { "dhp.example.com/reconcile-requested-at": "now" } } },
    { status: { placements: [placementJson(endpointA, "realm-1")] } },
    { status: { placements: [placementJson(endpointA, "realm-1", { providerID: "i-1" })] } },
    { status: { placements: [placementJson(endpointA, "realm-1", { shard: 1 })] } },
  ];
  const fingerprints = new Set([
    ...changed.map((change) => fingerprint(change)),
    fingerprint({}, []),
    fingerprint({}, [classWith("a", ["a.example.com"], { metadata: { generation: 2 } })]),
    fingerprint({}, [classWith("a", ["a.example.com"], { metadata: { uid: "another" } })]),
  ]);
  assert.equal(fingerprints.size, changed.length + 3);
});

test("what only tells of a pass does not change its fingerprint", () => {
  const plain = fingerprint({});
  for (const change of [
    { metadata: { resourceVersion: "99" } },
    { metadata: { annotations: { "example.com/note": "x" } } },
    { metadata: { finalizers: ["example.com/other"] } },
    { status: { conditions: [{ type: "Ready", status: "True" }], observedGeneration: 1 } },
    { status: { usage: { calls: { used: 5 } } } },
  ]) {
    assert.equal(fingerprint(change), plain, JSON.stringify(change));
  }
});

test("an id that was answered is remembered for its key and realm until it is recorded", () => {
  const memories = new Memories();
  memories.rememberAnsweredId("media/one", "realm-1", "i-1");
  memories.rememberAnsweredId("media/one", "realm-2", "i-2");
  assert.equal(memories.answeredId("media/one", "realm-1"), "i-1");
  assert.equal(memories.answeredId("media/one", "realm-2"), "i-2");
  assert.equal(memories.answeredId("media/two", "realm-1"), "");
  memories.forgetAnsweredId("media/one", "realm-1");
  assert.equal(memories.answeredId("media/one", "realm-1"), "");
  assert.equal(memories.answeredId("media/one", "realm-2"), "i-2");
  memories.forgetAnsweredId("media/one", "realm-2");
  assert.equal(memories.answeredId("media/one", "realm-2"), "");
});

test("an object that is gone is forgotten whole", () => {
  const memories = new Memories();
  memories.rememberAnsweredId("media/one", "realm-1", "i-1");
  memories.set("media/one", {
    uid: "uid-1",
    fingerprint: "",
    outcome: { kind: "suspended" },
    removalWaits: new Map(),
    dueMs: 0,
    holdUntilMs: 0,
    failures: 0,
  });
  memories.forget("media/one");
  assert.equal(memories.get("media/one"), undefined);
  assert.equal(memories.answeredId("media/one", "realm-1"), "");
});
