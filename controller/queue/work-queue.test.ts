import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { FakeClock } from "../../services/process/fake-clock.ts";
import type { QueueMetrics } from "./queue-metrics.ts";
import { WorkQueue } from "./work-queue.ts";
import type { RunOutcome, WorkItem } from "./work-queue.ts";

const done: RunOutcome = { kind: "done" };
const failed: RunOutcome = { kind: "failed" };

describe("work queue", () => {
  let clock: FakeClock;
  let queue: WorkQueue;

  beforeEach(() => {
    clock = new FakeClock();
    queue = createQueue();
  });

  function createQueue(workersMax = 100, metrics?: QueueMetrics): WorkQueue {
    return new WorkQueue({
      clock,
      random: () => 1,
      workersMax,
      backOff: { minMs: 100, maxMs: 10_000 },
      eventFloorMs: 1_000,
      ...(metrics && { metrics }),
    });
  }

  function take(): WorkItem {
    const item = queue.take();
    assert.ok(item, "nothing to take");
    return item;
  }

  function takeAll(): string[] {
    const keys: string[] = [];
    for (let item = queue.take(); item !== undefined; item = queue.take()) keys.push(item.key);
    return keys;
  }

  /** Runs the key once with the outcome. */
  function run(outcome: RunOutcome): void {
    queue.finish(take(), outcome);
  }

  test("a key added many times runs once", () => {
    for (let count = 0; count < 10; count += 1) queue.add("a");
    assert.deepEqual(takeAll(), ["a"]);
  });

  test("a running key is not given out again", () => {
    queue.add("a");
    take();
    queue.add("a");
    assert.equal(queue.take(), undefined);
  });

  test("any number of events during a run cause exactly one more run", () => {
    queue.add("a");
    const item = take();
    for (let count = 0; count < 10; count += 1) queue.add("a");
    queue.finish(item, done);
    run(done);
    assert.equal(queue.take(), undefined);
    assert.deepEqual(queue.snapshot(), {
      depth: 0,
      hasWork: false,
      waitingCount: 0,
      runningCount: 0,
      unfinishedWorkMs: 0,
      longestRunningMs: 0,
    });
  });

  test("a run without events in it leaves nothing behind", () => {
    queue.add("a");
    run(done);
    assert.equal(queue.take(), undefined);
    assert.equal(clock.pendingTimerCount, 0);
  });

  test("a delayed key runs after its delay", async () => {
    queue.addAfter("a", 500);
    await clock.advance(499);
    assert.equal(queue.take(), undefined);
    await clock.advance(1);
    assert.deepEqual(takeAll(), ["a"]);
  });

  test("the earliest of several delays wins", async () => {
    queue.addAfter("a", 500);
    queue.addAfter("a", 200);
    queue.addAfter("a", 900);
    await clock.advance(200);
    run(done);
    await clock.advance(1_000);
    assert.equal(queue.take(), undefined);
  });

  test("an event runs a delayed key at once, and takes the delay's place", async () => {
    queue.addAfter("a", 500);
    queue.add("a");
    run(done);
    await clock.advance(1_000);
    assert.equal(queue.take(), undefined);
  });

  test("of an outcome's delay and one wished for during the run the earlier wins", async () => {
    queue.add("a");
    const item = take();
    queue.addAfter("a", 100);
    queue.finish(item, { kind: "again", afterMs: 300 });
    await clock.advance(100);
    assert.deepEqual(takeAll(), ["a"]);
  });

  test("a failed key waits for a back-off that doubles, and success forgets it", async () => {
    queue.add("a");
    for (const delayMs of [100, 200, 400]) {
      run(failed);
      await clock.advance(delayMs - 1);
      assert.equal(queue.take(), undefined, `before ${delayMs} ms`);
      await clock.advance(1);
    }
    const item = take();
    assert.equal(item.failures, 3);
    queue.finish(item, done);
    queue.add("a");
    run(failed);
    await clock.advance(100);
    assert.deepEqual(takeAll(), ["a"]);
  });

  test("the back-off beats a delay wished for during or after the run", async () => {
    queue.add("a");
    for (let count = 0; count < 5; count += 1) {
      run(failed);
      await clock.advance(10_000);
    }
    const item = take();
    queue.addAfter("a", 1);
    queue.finish(item, failed);
    queue.addAfter("a", 1);
    await clock.advance(3_199);
    assert.equal(queue.take(), undefined);
    await clock.advance(1);
    assert.deepEqual(takeAll(), ["a"]);
  });

  test("a hint makes the back-off longer, never shorter", async () => {
    queue.add("a");
    run({ kind: "failed", delayMsMin: 700 });
    await clock.advance(699);
    assert.equal(queue.take(), undefined);
    await clock.advance(1);
    run({ kind: "failed", delayMsMin: 10 });
    await clock.advance(199);
    assert.equal(queue.take(), undefined);
    await clock.advance(1);
    assert.deepEqual(takeAll(), ["a"]);
  });

  test("an event ends a long back-off after the floor", async () => {
    queue.add("a");
    run({ kind: "failed", delayMsMin: 60_000 });
    queue.add("a");
    await clock.advance(999);
    assert.equal(queue.take(), undefined);
    await clock.advance(1);
    assert.deepEqual(takeAll(), ["a"]);
  });

  test("a writer without pause and a run that always fails meet once a second", async () => {
    queue.add("a");
    let runs = 0;
    for (let elapsedMs = 0; elapsedMs < 60_000; elapsedMs += 50) {
      const item = queue.take();
      queue.add("a");
      if (item !== undefined) {
        runs += 1;
        queue.finish(item, failed);
      }
      await clock.advance(50);
    }
    assert.ok(runs <= 65, `${runs} runs in a minute`);
  });

  test("a priority is raised by a later event, and never lowered", () => {
    queue.add("a", { priority: "resync" });
    queue.add("b", { priority: "change" });
    queue.add("a", { priority: "deletion" });
    queue.add("a", { priority: "resync" });
    assert.deepEqual(takeAll(), ["a", "b"]);
  });

  test("a retry keeps the priority of the run it repeats", async () => {
    queue.add("a", { priority: "deletion" });
    run(failed);
    queue.add("b", { priority: "change" });
    await clock.advance(100);
    assert.deepEqual(takeAll(), ["a", "b"]);
  });

  test("a stuck group with 500 keys leaves workers to every other group", () => {
    queue = createQueue(16);
    for (let count = 0; count < 500; count += 1) queue.add(`stuck${count}`, { groups: ["stuck"] });
    assert.equal(takeAll().length, 8);
    for (let count = 0; count < 100; count += 1) queue.add(`free${count}`, { groups: ["free"] });
    const running = takeAll();
    assert.ok(running.length > 0 && running.every((key) => key.startsWith("free")));
    queue.add("third", { groups: ["third"] });
    assert.deepEqual(takeAll(), ["third"]);
  });

  test("a group that finishes its runs gets the workers back", () => {
    queue = createQueue(4);
    for (let count = 0; count < 50; count += 1) queue.add(`a${count}`, { groups: ["a"] });
    let finished = 0;
    for (let item = queue.take(); item !== undefined; item = queue.take()) {
      queue.finish(item, done);
      finished += 1;
    }
    assert.equal(finished, 50);
  });

  test("one worker serves one key at a time", () => {
    queue = createQueue(1);
    queue.add("a", { groups: ["a"] });
    queue.add("b", { groups: ["b"] });
    const item = take();
    assert.equal(queue.take(), undefined);
    queue.finish(item, done);
    assert.deepEqual(takeAll(), ["b"]);
  });

  test("a group's own limit holds below its share, until it is taken away", () => {
    queue.limitGroup("a", 2);
    for (let count = 0; count < 10; count += 1) queue.add(`a${count}`, { groups: ["a"] });
    assert.equal(takeAll().length, 2);
    queue.limitGroup("a", undefined);
    assert.equal(takeAll().length, 8);
  });

  test("a held key does not run before its instant, whatever happens to it", async () => {
    queue.holdKey("a", 1_000);
    queue.add("a", { priority: "deletion" });
    queue.add("a");
    queue.add("b");
    assert.deepEqual(takeAll(), ["b"]);
    await clock.advance(999);
    assert.equal(queue.take(), undefined);
    await clock.advance(1);
    assert.deepEqual(takeAll(), ["a"]);
  });

  test("a hold set during a run holds the next one, and can be lifted", () => {
    queue.add("a");
    const item = take();
    queue.holdKey("a", 1_000);
    queue.add("a");
    queue.finish(item, done);
    assert.equal(queue.take(), undefined);
    queue.liftKeyHold("a");
    assert.deepEqual(takeAll(), ["a"]);
  });

  test("a key that changes its group while ready counts for the new one", () => {
    queue.holdGroup("old", 1_000);
    queue.addAfter("a", 0, { groups: ["old"] });
    assert.equal(queue.take(), undefined);
    queue.add("a", { groups: ["new"] });
    assert.equal(take().groups[0], "new");
  });

  test("a key that changes its group while it runs frees the old one's worker", () => {
    queue.limitGroup("old", 1);
    queue.add("a", { groups: ["old"] });
    queue.add("b", { groups: ["old"] });
    const item = take();
    queue.add("a", { groups: ["new"] });
    assert.equal(queue.take(), undefined);
    queue.finish(item, done);
    assert.deepEqual(takeAll().toSorted(), ["a", "b"]);
  });

  test("a forgotten key runs no more, unless something happens to it", () => {
    queue.add("ready");
    queue.addAfter("waiting", 100);
    queue.add("running");
    queue.forget("ready");
    queue.forget("waiting");
    const item = take();
    assert.equal(item.key, "running");
    queue.add("running");
    queue.forget("running");
    queue.finish(item, done);
    assert.equal(queue.take(), undefined);
    assert.equal(clock.pendingTimerCount, 0);
    queue.add("ready");
    assert.deepEqual(takeAll(), ["ready"]);
  });

  test("a closed queue gives out nothing and leaves no timer", () => {
    queue.add("running");
    const item = take();
    queue.add("ready");
    queue.addAfter("waiting", 100);
    queue.holdGroup("group", 100);
    queue.close();
    queue.add("late");
    queue.finish(item, failed);
    assert.equal(queue.take(), undefined);
    assert.equal(clock.pendingTimerCount, 0);
    assert.equal(queue.snapshot().waitingCount, 0);
  });

  test("the snapshot tells depth and how long runs have taken", async () => {
    queue.add("a");
    queue.add("b");
    queue.add("c");
    take();
    await clock.advance(100);
    take();
    await clock.advance(50);
    queue.addAfter("d", 1_000);
    assert.deepEqual(queue.snapshot(), {
      depth: 1,
      hasWork: true,
      waitingCount: 1,
      runningCount: 2,
      unfinishedWorkMs: 200,
      longestRunningMs: 150,
    });
  });

  test("metrics count adds, depth, durations and retries", async () => {
    const counts = { adds: 0, retries: 0, queueMs: 0, workMs: 0, depth: 0 };
    queue = createQueue(10, {
      onAdd: () => (counts.adds += 1),
      onRetry: () => (counts.retries += 1),
      onQueueDuration: (durationMs) => (counts.queueMs += durationMs),
      onWorkDuration: (durationMs) => (counts.workMs += durationMs),
      onDepth: (_priority, depth) => (counts.depth = depth),
    });
    queue.add("a");
    assert.equal(counts.depth, 1);
    await clock.advance(30);
    const item = take();
    assert.equal(counts.depth, 0);
    await clock.advance(70);
    queue.finish(item, failed);
    assert.deepEqual(counts, { adds: 1, retries: 1, queueMs: 30, workMs: 70, depth: 0 });
  });
});
