import assert from "node:assert/strict";
import { test } from "node:test";

import { ReadyKeys } from "./ready-keys.ts";
import type { Priority } from "./ready-keys.ts";

function filled(...keys: readonly (readonly [string, string, Priority])[]): ReadyKeys {
  const ready = new ReadyKeys();
  for (const [key, turn, priority] of keys) ready.add({ key, turn, priority });
  return ready;
}

function takeAll(ready: ReadyKeys): string[] {
  const taken: string[] = [];
  for (let next = ready.take(() => true); next !== undefined; next = ready.take(() => true)) {
    taken.push(next.key);
  }
  return taken;
}

test("deletions go before changes, changes before resync", () => {
  const ready = filled(["c", "g", "resync"], ["b", "g", "change"], ["a", "g", "deletion"]);
  assert.deepEqual(takeAll(ready), ["a", "b", "c"]);
});

test("groups take turns, keys of one turn keep their order", () => {
  const ready = filled(
    ["a1", "a", "change"],
    ["a2", "a", "change"],
    ["a3", "a", "change"],
    ["b1", "b", "change"],
    ["b2", "b", "change"],
    ["c1", "c", "change"],
  );
  assert.deepEqual(takeAll(ready), ["a1", "b1", "c1", "a2", "b2", "a3"]);
});

test("a stream of strong keys lets one in eight weak ones through", () => {
  const ready = filled(["weak1", "g", "resync"], ["weak2", "g", "resync"]);
  const taken: string[] = [];
  for (let count = 0; count < 20; count += 1) {
    ready.add({ key: `strong${count}`, turn: "g", priority: "change" });
    taken.push(ready.take(() => true)?.key ?? "");
  }
  assert.deepEqual([taken.indexOf("weak1"), taken.indexOf("weak2")], [7, 15]);
});

test("both weaker priorities get through a stream of deletions", () => {
  const ready = filled(["change", "g", "change"], ["resync", "g", "resync"]);
  const taken: string[] = [];
  for (let count = 0; count < 20; count += 1) {
    ready.add({ key: `deletion${count}`, turn: "g", priority: "deletion" });
    taken.push(ready.take(() => true)?.key ?? "");
  }
  assert.ok(taken.includes("change") && taken.includes("resync"));
});

test("a turn that may not run is passed over and keeps its keys", () => {
  const ready = filled(["a", "stuck", "deletion"], ["b", "free", "resync"]);
  assert.equal(ready.take((turn) => turn !== "stuck")?.key, "b");
  assert.equal(
    ready.take((turn) => turn !== "stuck"),
    undefined,
  );
  assert.equal(ready.sizeOf("deletion"), 1);
  assert.deepEqual(takeAll(ready), ["a"]);
});

test("a removed key is not taken", () => {
  const ready = filled(["a", "g", "change"], ["b", "g", "change"]);
  ready.remove({ key: "a", turn: "g", priority: "change" });
  assert.deepEqual(takeAll(ready), ["b"]);
  assert.equal(ready.sizeOf("change"), 0);
});
