import assert from "node:assert/strict";
import { test } from "node:test";
import { refused } from "./kubernetes/fake-lease.ts";
import { watchObstacle, watchProblem } from "./watch-health.ts";

const listed = {
  state: "watching",
  hasSynced: true,
  lastError: undefined,
  lastHeardMs: 0,
} as const;

test("a watch that has listed and is open is well, however quiet the collection is", () => {
  assert.equal(watchProblem(listed, "widgets"), undefined);
  assert.equal(watchObstacle(listed, "widgets", 600_000), undefined);
});

test("a kind that was never listed keeps from both, and the reason is told", () => {
  const watch = { ...listed, state: "retrying", hasSynced: false, lastError: refused("forbidden") };
  for (const said of [
    watchProblem({ ...watch, state: "retrying" }, "widgets"),
    watchObstacle({ ...watch, state: "retrying" }, "widgets", 0),
  ]) {
    assert.match(said ?? "", /forbidden/);
  }
});

test("a kind that is gone keeps from leading at once", () => {
  const watch = { ...listed, state: "waiting-for-crd" } as const;
  assert.match(watchObstacle(watch, "widgets", 0) ?? "", /apply the CRDs/);
});

test("a watch that fails for a minute keeps from leading, and not from being ready", () => {
  const watch = { ...listed, state: "retrying", lastError: refused("network") } as const;
  assert.equal(watchObstacle(watch, "widgets", 59_999), undefined);
  assert.match(watchObstacle(watch, "widgets", 60_000) ?? "", /network/);
  assert.equal(watchProblem(watch, "widgets"), undefined);
});
