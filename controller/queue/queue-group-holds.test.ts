import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { FakeClock } from "../../services/process/fake-clock.ts";
import { WorkQueue } from "./work-queue.ts";
import type { WorkItem } from "./work-queue.ts";

const account = "adapter|account";
const host = "adapter|account|host";

describe("a held group", () => {
  let clock: FakeClock;
  let queue: WorkQueue;

  beforeEach(() => {
    clock = new FakeClock();
    queue = new WorkQueue({
      clock,
      random: () => 1,
      workersMax: 100,
      backOff: { minMs: 100, maxMs: 10_000 },
      eventFloorMs: 1_000,
    });
  });

  function takeAll(): WorkItem[] {
    const items: WorkItem[] = [];
    for (let item = queue.take(); item !== undefined; item = queue.take()) items.push(item);
    return items;
  }

  function keys(): string[] {
    return takeAll().map(({ key }) => key);
  }

  test("runs no key of its own accord until the hold ends, deletions neither", async () => {
    let readyCount = 0;
    queue.setReadyListener(() => (readyCount += 1));
    queue.holdGroup(account, 1_000);
    queue.addAfter("a", 0, { groups: [host], priority: "deletion" });
    queue.addAfter("other", 0, { groups: ["adapter|other|host"] });
    assert.deepEqual(keys(), ["other"]);
    await clock.advance(999);
    assert.equal(queue.take(), undefined);
    assert.ok(!queue.snapshot().hasWork);
    const before = readyCount;
    await clock.advance(1);
    assert.equal(readyCount, before + 1);
    assert.ok(queue.snapshot().hasWork);
    assert.deepEqual(keys(), ["a"]);
    assert.equal(clock.pendingTimerCount, 0);
  });

  test("runs a key that something happened to: its reconcile has something to tell", () => {
    queue.holdGroup(account, 1_000);
    queue.addAfter("a", 0, { groups: [host] });
    queue.addAfter("b", 0, { groups: [host] });
    queue.add("b");
    assert.deepEqual(keys(), ["b"]);
  });

  test("is tried by one key at a time after the hold, until somebody lifts it", async () => {
    queue.holdGroup(account, 1_000);
    for (let count = 0; count < 10; count += 1)
      queue.addAfter(`key${count}`, 0, { groups: [host] });
    await clock.advance(1_000);
    const [probe, ...more] = takeAll();
    assert.ok(probe);
    assert.deepEqual(more, []);
    queue.finish(probe, { kind: "done" });
    assert.equal(takeAll().length, 1);
    queue.liftGroupHold(account);
    assert.equal(takeAll().length, 8);
  });

  test("held again by the key that tries it, lets nobody follow", async () => {
    queue.holdGroup(account, 1_000);
    for (let count = 0; count < 3; count += 1) queue.addAfter(`key${count}`, 0, { groups: [host] });
    await clock.advance(1_000);
    const [probe] = takeAll();
    assert.ok(probe);
    queue.holdGroup(account, 500);
    queue.finish(probe, { kind: "again", afterMs: 500 });
    assert.equal(queue.take(), undefined);
    await clock.advance(500);
    assert.equal(takeAll().length, 1);
  });

  test("waits for the longest of its holds; lifting ends all", async () => {
    queue.holdGroup(account, 1_000);
    queue.holdGroup(account, 10);
    queue.addAfter("a", 0, { groups: [host] });
    await clock.advance(10);
    assert.equal(queue.take(), undefined);
    queue.liftGroupHold(account);
    assert.deepEqual(keys(), ["a"]);
  });

  test("holds a key that has to do with two groups as long as either is held", async () => {
    queue.holdGroup(account, 1_000);
    queue.addAfter("moving", 0, { groups: ["adapter|new|host", host] });
    assert.equal(queue.take(), undefined);
    await clock.advance(1_000);
    assert.deepEqual(keys(), ["moving"]);
  });
});
