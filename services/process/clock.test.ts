import assert from "node:assert/strict";
import { test } from "node:test";

import { delayMsMax, systemClock } from "./clock.ts";
import { FakeClock } from "./fake-clock.ts";

test("an aborted sleep rejects with the signal's reason and leaves no timer", async () => {
  const clock = new FakeClock();
  const reason = new Error("stop");
  const controller = new AbortController();
  const sleeping = clock.sleep(1_000, controller.signal);
  controller.abort(reason);
  await assert.rejects(sleeping, reason);
  assert.equal(clock.pendingTimerCount, 0);
  await assert.rejects(clock.sleep(1_000, AbortSignal.abort(reason)), reason);
  assert.equal(clock.pendingTimerCount, 0);
});

test("the fake clock fires timers in order of their time, including those set meanwhile", async () => {
  const clock = new FakeClock(1_000);
  const fired: string[] = [];
  clock.setTimer(20, () => fired.push(`b@${clock.now()}`));
  clock.setTimer(10, () => {
    fired.push(`a@${clock.now()}`);
    clock.setTimer(5, () => fired.push(`c@${clock.now()}`));
  });
  clock.setTimer(31, () => fired.push("never"));
  await clock.advance(30);
  assert.deepEqual(fired, ["a@1010", "c@1015", "b@1020"]);
  assert.equal(clock.monotonicMs(), 30);
});

test("what a timer starts runs before the next timer fires", async () => {
  const clock = new FakeClock();
  const order: string[] = [];
  void clock.sleep(10).then(async () => {
    order.push("first");
    await Promise.resolve();
    order.push("its continuation");
  });
  void clock.sleep(11).then(() => order.push("second"));
  await clock.advance(20);
  assert.deepEqual(order, ["first", "its continuation", "second"]);
});

test("a jump of the wall clock fires nothing and leaves durations alone", async () => {
  const clock = new FakeClock();
  let fired = false;
  clock.setTimer(10, () => (fired = true));
  clock.setWallTime(clock.now() + 3_600_000);
  await clock.advance(9);
  assert.equal(fired, false);
  assert.equal(clock.monotonicMs(), 9);
});

test("the system clock waits, and a delay beyond setTimeout's range does not fire at once", async () => {
  let firedEarly = false;
  const timer = systemClock.setTimer(delayMsMax * 2, () => (firedEarly = true));
  const startMs = systemClock.monotonicMs();
  await systemClock.sleep(20);
  timer.cancel();
  assert.ok(systemClock.monotonicMs() - startMs >= 19);
  assert.equal(firedEarly, false);
});
