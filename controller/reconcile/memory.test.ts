import assert from "node:assert/strict";
import { test } from "node:test";

import { chooseClass } from "../resource/class-choice.ts";
import { classWith, endpointA, objectWith, placementJson } from "../resource/object-fixture.ts";
import { fingerprintOf, Memories, recordedHold } from "./memory.ts";

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

test("a hold is read from the status as long as it is about the object's place, and believable", () => {
  const nowMs = Date.parse("2026-01-01T00:00:00Z");
  const limited = (change: object = {}): object => ({
    type: "RateLimited",
    status: "True",
    reason: "Throttled",
    message: "slow down",
    observedGeneration: 1,
    ...change,
  });
  const holdOf = (change: object, rest: Change = {}): number | undefined => {
    const status = { rateLimitedUntil: "2026-01-01T00:01:30Z", conditions: [limited()], ...change };
    const object = objectWith({ ...rest, status });
    return recordedHold(object, chooseClass(object, [classA]), nowMs)?.holdUntilMs;
  };
  assert.equal(holdOf({}), nowMs + 90_000);
  assert.equal(holdOf({ rateLimitedUntil: "2025-12-31T23:59:59Z" }), undefined);
  assert.equal(holdOf({ rateLimitedUntil: "2026-01-01T01:00:01Z" }), undefined);
  assert.equal(holdOf({ rateLimitedUntil: "soon" }), undefined);
  assert.equal(holdOf({ conditions: [limited({ status: "False" })] }), undefined);
  assert.equal(holdOf({}, { spec: { suspend: true } }), undefined);
  const edited = { metadata: { generation: 2 } };
  assert.equal(holdOf({}, edited), undefined);
  const placements = [placementJson(endpointA, "realm-1")];
  assert.equal(holdOf({ placements }, edited), nowMs + 90_000);
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
