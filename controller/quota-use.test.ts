import assert from "node:assert/strict";
import { test } from "node:test";

import { objectWith } from "./resource/object-fixture.ts";
import { highestUse } from "./quota-use.ts";

const using = (className: string, usage: object, quota: object = {}) =>
  objectWith({ spec: { quota }, status: { className, usage } }).raw;

test("of each class and quota the highest use is told, whatever the number of objects", () => {
  const objects = [
    using("a", { calls: { used: 10, limit: 100 } }),
    using("a", { calls: { used: 90, limit: 100 }, concurrency: { used: 1, limit: 4 } }),
    using("b", { credits: { remaining: 25, limit: 100 } }),
  ];
  assert.deepEqual(highestUse(objects), [
    { className: "a", quota: "calls", share: 0.9 },
    { className: "a", quota: "concurrency", share: 0.25 },
    { className: "b", quota: "credits", share: 0.75 },
  ]);
});

test("the tighter of the vendor's limit and the object's counts, as it does in QuotaExceeded", () => {
  const objects = [using("a", { calls: { used: 40, limit: 1_000 } }, { dailyCalls: 20 })];
  assert.deepEqual(highestUse(objects), [{ className: "a", quota: "calls", share: 2 }]);
});

test("what has no limit, is unknown, or was written by somebody else says nothing", () => {
  const objects = [
    using("a", { calls: { used: 5 } }),
    using("a", { calls: "many", credits: { remaining: 5 } }),
    using("a", { concurrency: { used: 0, limit: 0 } }),
    objectWith({ status: { usage: [] } }).raw,
    objectWith({}).raw,
  ];
  assert.deepEqual(highestUse(objects), []);
});
