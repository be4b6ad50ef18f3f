import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { FakeClock } from "../process/fake-clock.ts";
import { CallBudget } from "./call-budget.ts";

const never = new AbortController().signal;

describe("an account's call budget", () => {
  it("lets one second's worth through at once and spaces out the rest", async () => {
    const clock = new FakeClock();
    const budget = new CallBudget(clock, { callsPerSecond: 10, waitMsMax: 1000 });
    let turns = 0;
    const all = Array.from({ length: 15 }, async () => {
      await budget.take(never);
      turns += 1;
    });
    await clock.advance(0);
    assert.equal(turns, 10);
    await clock.advance(250);
    assert.equal(turns, 12);
    await clock.advance(250);
    await Promise.all(all);
    assert.equal(turns, 15);
  });

  it("refuses what would wait too long, and says how long", async () => {
    const clock = new FakeClock();
    const budget = new CallBudget(clock, { callsPerSecond: 1, waitMsMax: 500 });
    await budget.take(never);
    await assert.rejects(budget.take(never), {
      reason: "THROTTLED",
      facts: {
        outcome: "NOT_APPLIED",
        quota: "calls per second of the adapter's account",
        retryAfterMs: 1000,
      },
    });
    await clock.advance(1000);
    await budget.take(never);
  });

  it("gives up waiting with the caller", async () => {
    const clock = new FakeClock();
    const budget = new CallBudget(clock, { callsPerSecond: 1, waitMsMax: 5000 });
    const caller = new AbortController();
    await budget.take(never);
    const waiting = budget.take(caller.signal);
    caller.abort(new Error("gone"));
    await assert.rejects(waiting, /gone/);
    assert.equal(clock.pendingTimerCount, 0);
  });
});
