import assert from "node:assert/strict";
import { test } from "node:test";
import { DeletionBudget } from "./deletion-budget.ts";

test("without a bound every removal may go on", () => {
  const budget = new DeletionBudget();
  for (let index = 0; index < 1_000; index++) {
    assert.equal(budget.take("a", String(index), { perMinute: undefined, nowMs: 0 }), 0);
  }
});

test("more than the bound wait until the oldest is a minute ago", () => {
  const budget = new DeletionBudget();
  assert.equal(budget.take("a", "1", { perMinute: 2, nowMs: 0 }), 0);
  assert.equal(budget.take("a", "2", { perMinute: 2, nowMs: 10_000 }), 0);
  assert.equal(budget.take("a", "3", { perMinute: 2, nowMs: 20_000 }), 40_000);
  assert.equal(budget.take("a", "3", { perMinute: 2, nowMs: 60_000 }), 0);
  assert.equal(budget.take("a", "4", { perMinute: 2, nowMs: 60_000 }), 10_000);
});

test("asking again for the same placement takes nothing more", () => {
  const budget = new DeletionBudget();
  for (let count = 0; count < 5; count++) {
    assert.equal(budget.take("a", "1", { perMinute: 1, nowMs: count }), 0);
  }
});

test("classes have a minute each", () => {
  const budget = new DeletionBudget();
  assert.equal(budget.take("a", "1", { perMinute: 1, nowMs: 0 }), 0);
  assert.equal(budget.take("b", "1", { perMinute: 1, nowMs: 0 }), 0);
  assert.ok(budget.take("a", "2", { perMinute: 1, nowMs: 0 }) > 0);
});
