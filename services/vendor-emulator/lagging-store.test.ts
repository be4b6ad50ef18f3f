/** What a list shows of the past, and where memory ends. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { LaggingStore } from "./lagging-store.ts";
import { RequestLog } from "./request-log.ts";

test("a lagging reader sees each record as it was, made, changed or deleted", () => {
  let nowMs = 1_000;
  const store = new LaggingStore<string>(() => nowMs);
  store.put("a", "first");
  nowMs = 2_000;
  store.put("a", "second");
  store.put("b", "other");
  nowMs = 3_000;
  store.put("a", undefined);
  assert.deepEqual(store.all(), ["other"]);
  assert.deepEqual(store.all(500), ["second", "other"]);
  assert.deepEqual(store.all(1_500), ["first"]);
  assert.deepEqual(store.all(2_500), []);
  assert.deepEqual(
    [store.get("a"), store.get("a", 1_000), store.get("c")],
    [undefined, "second", undefined],
  );
});

test("a store ends at 20,000 records and says so", () => {
  const store = new LaggingStore<number>();
  for (let count = 0; count < 20_000; count += 1) store.put(`${count}`, count);
  store.put("0", undefined);
  assert.throws(() => store.put("one more", 1), /more than 20000 records/);
});

test("a log forgets the oldest entries and keeps their numbers", () => {
  const log = new RequestLog<number>();
  for (let number = 0; number <= 100_000; number += 1) log.add(number);
  assert.equal(log.next, 100_001);
  assert.equal(log.dropped, 50_000);
  assert.deepEqual(log.since(100_000), [100_000]);
  assert.equal(log.since(0)[0], 50_000);
  assert.deepEqual(log.since(100_001), []);
});
