import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { FakeClock } from "../../services/process/fake-clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { WorkQueue } from "./work-queue.ts";
import { WorkerPool } from "./worker-pool.ts";
import type { Reconcile, ReconcileResult } from "./worker-pool.ts";

describe("worker pool", () => {
  let clock: FakeClock;
  let queue: WorkQueue;
  let results: string[];

  beforeEach(() => {
    clock = new FakeClock();
    results = [];
    queue = new WorkQueue({
      clock,
      random: () => 1,
      workersMax: 8,
      backOff: { minMs: 100, maxMs: 10_000 },
      eventFloorMs: 1_000,
    });
  });

  function start(reconcile: Reconcile, endSignal?: AbortSignal): WorkerPool {
    const pool = new WorkerPool({
      ...(endSignal !== undefined && { endSignal }),
      queue,
      reconcile,
      clock,
      log: silentLog,
      runTimeoutMs: 5_000,
      metrics: {
        onReconcile: ({ result }) => results.push(result),
        onActiveWorkers: () => undefined,
      },
    });
    pool.start();
    return pool;
  }

  /** A reconcile that answers these results one after the other, then "done". */
  function answering(...answers: readonly ReconcileResult[]): Reconcile {
    const left = [...answers];
    return async () => left.shift() ?? { kind: "done" };
  }

  const limits = { drainMs: 1_000, abortMs: 1_000 };

  test("keys added before and after the start are reconciled", async () => {
    const keys: string[] = [];
    queue.add("before");
    start(async (key) => {
      keys.push(key);
      return { kind: "done" };
    });
    queue.add("after");
    await clock.advance(0);
    assert.deepEqual(keys, ["before", "after"]);
  });

  test("a key never runs twice at once, and one event during a run makes one more", async () => {
    let running = 0;
    let runs = 0;
    const gate = Promise.withResolvers<void>();
    start(async () => {
      running += 1;
      runs += 1;
      assert.equal(running, 1);
      if (runs === 1) await gate.promise;
      running -= 1;
      return { kind: "done" };
    });
    queue.add("a");
    await clock.advance(0);
    for (let count = 0; count < 5; count += 1) queue.add("a");
    await clock.advance(0);
    gate.resolve();
    await clock.advance(0);
    assert.equal(runs, 2);
  });

  test("requeue runs again after its time", async () => {
    start(answering({ kind: "requeue", afterMs: 300 }));
    queue.add("a");
    await clock.advance(299);
    assert.deepEqual(results, ["requeue"]);
    await clock.advance(1);
    assert.deepEqual(results, ["requeue", "done"]);
  });

  test("an error, returned or thrown, is retried with back-off", async () => {
    let runs = 0;
    start(async () => {
      runs += 1;
      if (runs === 1) throw new Error("thrown");
      return runs === 2 ? { kind: "error", error: new Error("returned") } : { kind: "done" };
    });
    queue.add("a");
    await clock.advance(99);
    assert.equal(runs, 1);
    await clock.advance(1);
    assert.equal(runs, 2);
    await clock.advance(200);
    assert.deepEqual(results, ["error", "error", "done"]);
  });

  test("an error's hint is waited for", async () => {
    start(answering({ kind: "error", error: new Error("throttled"), retryAfterMs: 5_000 }));
    queue.add("a");
    await clock.advance(4_999);
    assert.deepEqual(results, ["error"]);
    await clock.advance(1);
    assert.deepEqual(results, ["error", "done"]);
  });

  test("a terminal error is looked at again slowly, or at once when something changes", async () => {
    const terminal = { kind: "terminal", error: new Error("bad"), reprobeAfterMs: 60_000 } as const;
    start(answering(terminal, terminal));
    queue.add("a");
    await clock.advance(59_999);
    assert.deepEqual(results, ["terminal"]);
    await clock.advance(1);
    assert.deepEqual(results, ["terminal", "terminal"]);
    queue.add("a");
    await clock.advance(0);
    assert.deepEqual(results, ["terminal", "terminal", "done"]);
  });

  test("a run over its time has its signal aborted", async () => {
    let isAborted = false;
    start(async (_key, signal) => {
      await clock.sleep(60_000, signal).catch(() => (isAborted = true));
      return { kind: "done" };
    });
    queue.add("a");
    await clock.advance(4_999);
    assert.equal(isAborted, false);
    await clock.advance(1);
    assert.equal(isAborted, true);
    assert.deepEqual(results, ["done"]);
  });

  test("500 keys of a group that hangs delay another group by nothing", async () => {
    const finished: string[] = [];
    start(async (key, signal) => {
      if (key.startsWith("stuck")) await clock.sleep(60_000, signal).catch(() => undefined);
      finished.push(key);
      return { kind: "done" };
    });
    for (let count = 0; count < 500; count += 1) queue.add(`stuck${count}`, { groups: ["stuck"] });
    await clock.advance(0);
    for (let count = 0; count < 50; count += 1) queue.add(`free${count}`, { groups: ["free"] });
    await clock.advance(0);
    assert.equal(finished.length, 50);
  });

  test("stopping waits for runs that end in time and takes no further keys", async () => {
    const gate = Promise.withResolvers<void>();
    const pool = start(async () => {
      await gate.promise;
      return { kind: "done" };
    });
    for (let count = 0; count < 100; count += 1) queue.add(`key${count}`, { groups: [`${count}`] });
    await clock.advance(0);
    const stopped = pool.stop(limits);
    queue.add("late");
    await clock.advance(500);
    gate.resolve();
    assert.deepEqual(await stopped, []);
    assert.equal(results.length, 8);
    assert.equal(clock.pendingTimerCount, 0);
  });

  test("stopping with a full queue and failing runs comes to an end", async () => {
    const pool = start(async () => ({ kind: "error", error: new Error("always") }));
    for (let count = 0; count < 1_000; count += 1) queue.add(`key${count}`);
    await clock.advance(50);
    assert.deepEqual(await pool.stop(limits), []);
    assert.equal(clock.pendingTimerCount, 0);
  });

  test("a run that outlives the drain is aborted", async () => {
    const pool = start(async (_key, signal) => {
      await clock.sleep(60_000, signal);
      return { kind: "done" };
    });
    queue.add("a");
    await clock.advance(0);
    const stopped = pool.stop(limits);
    await clock.advance(1_000);
    assert.deepEqual(await stopped, []);
  });

  test("a run that does not heed its signal is named", async () => {
    const pool = start(() => new Promise(() => undefined));
    queue.add("a");
    await clock.advance(0);
    const stopped = pool.stop(limits);
    await clock.advance(2_000);
    assert.deepEqual(await stopped, ["a"]);
  });
  test("an end from outside tells all runs to end at once and takes no further keys", async () => {
    const ending = new AbortController();
    const pool = start(async (_key, signal) => {
      await clock.sleep(60_000, signal);
      return { kind: "done" };
    }, ending.signal);
    queue.add("a");
    await clock.advance(0);
    ending.abort(new Error("lost"));
    queue.add("b");
    await clock.advance(0);
    assert.deepEqual(results, ["error"]);
    assert.deepEqual(await pool.stop(limits), []);
    assert.equal(clock.pendingTimerCount, 0);
  });
});
