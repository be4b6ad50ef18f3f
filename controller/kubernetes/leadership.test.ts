import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import { FakeClock } from "../../services/process/fake-clock.ts";
import { Candidates, leaseMs, renewDeadlineMs } from "./election-fixture.ts";
import { refused } from "./fake-lease.ts";
import type { FakeLease } from "./fake-lease.ts";
import { NotLeadingError } from "./leadership.ts";

describe("leadership", () => {
  let candidates: Candidates;
  let leases: FakeLease;
  let clock: FakeClock;

  beforeEach(() => {
    candidates = new Candidates();
    ({ leases, clock } = candidates);
  });
  afterEach(() => candidates.end());

  test("is certain until the last renewal was sent plus the duration, never later", async () => {
    const startMs = clock.now();
    const { leadership } = await candidates.leader();
    assert.equal(leadership?.certainUntilMs(), startMs + leaseMs);
    // The answer takes a second: it is not counted.
    leases.gate = (call) => {
      call.beforeAnswer = () => clock.sleep(1_000);
      return Promise.resolve();
    };
    await clock.advance(3_500);
    assert.equal(leadership?.certainUntilMs(), startMs + 2_000 + leaseMs);
  });

  test("is certain until a whole millisecond, though the monotonic clock counts parts of them", async () => {
    const { leadership } = await candidates.leader();
    await clock.advance(1_000.4);
    clock.setWallTime(Math.floor(clock.now()) - 10);
    assert.equal(leadership?.certainUntilMs(), clock.now() + leaseMs - 1_001);
  });

  test("is never thought to last longer when the wall clock is set, and is kept", async () => {
    const candidate = await candidates.leader();
    await clock.advance(1_000);
    const leftMs = () => (candidate.leadership?.certainUntilMs() ?? 0) - clock.now();
    assert.equal(leftMs(), leaseMs - 1_000);
    clock.setWallTime(clock.now() - 3_600_000);
    assert.equal(leftMs(), leaseMs - 1_000);
    clock.setWallTime(clock.now() + 7_200_000);
    assert.ok(leftMs() < 0);
    await clock.advance(1_000);
    assert.equal(leftMs(), leaseMs);
    assert.equal(candidate.isLeading, true);
  });

  test("ends at the renew deadline when renewals fail, though some attempts are made", async () => {
    const candidate = await candidates.leader();
    await clock.advance(10_000);
    const writes = leases.writes.length;
    leases.gate = async () => Promise.reject(refused("server"));
    await clock.advance(renewDeadlineMs - 1);
    assert.equal(candidate.isLeading, true);
    await clock.advance(1);
    assert.equal(candidate.isLeading, false);
    assert.ok(leases.writes.length - writes >= 3);
    assert.equal(candidate.isCertain, false);
    assert.match(String(candidate.leadership?.signal.reason), /4000 ms.*refused: server/);
  });

  test("ends at the renew deadline when a renewal hangs", async () => {
    const candidate = await candidates.leader();
    leases.gate = () => clock.sleep(10_000);
    await clock.advance(renewDeadlineMs);
    assert.equal(candidate.isLeading, false);
    await clock.advance(10_000);
  });

  test("survives renewals that fail for a moment", async () => {
    const candidate = await candidates.leader();
    for (let count = 0; count < 5; count++) {
      leases.gate = async () => Promise.reject(refused("network"));
      await clock.advance(1_500);
      leases.gate = async () => undefined;
      await clock.advance(3_000);
      assert.equal(candidate.isLeading, true);
    }
  });

  test("survives a renewal whose answer was lost: its own version is read again", async () => {
    const candidate = await candidates.leader();
    let losses = 1;
    leases.gate = async (call) => {
      if (call.verb !== "update" || losses-- <= 0) return;
      call.beforeAnswer = () => Promise.reject(refused("timeout"));
    };
    await clock.advance(20_000);
    assert.equal(candidate.isLeading, true);
    assert.equal(candidate.isCertain, true);
  });

  test("survives a Lease that somebody else has labelled", async () => {
    const candidate = await candidates.leader();
    if (leases.spec !== undefined) leases.set(leases.spec);
    await clock.advance(20_000);
    assert.equal(candidate.isLeading, true);
  });

  test("ends at once when another holds the Lease", async () => {
    const candidate = await candidates.leader();
    leases.set({ holderIdentity: "b", leaseDurationSeconds: 6 });
    await clock.advance(2_100);
    assert.equal(candidate.isLeading, false);
    assert.equal(leases.spec?.holderIdentity, "b");
  });

  test("ends, without a renewal, while the process does not get on with its work", async () => {
    const candidate = await candidates.leader();
    await clock.advance(10_000);
    const writes = leases.writes.length;
    candidate.obstacle = "a run hangs";
    await clock.advance(renewDeadlineMs);
    assert.equal(candidate.isLeading, false);
    assert.equal(leases.writes.length, writes);
    assert.match(String(candidate.leadership?.signal.reason), /a run hangs/);
  });

  test("ends for a leader that was paused and wakes late: nothing is written", async () => {
    const candidate = await candidates.leader();
    const wakingClock = new PausedClock(clock);
    const paused = candidates.join("b", wakingClock);
    await candidate.leadership?.release();
    await clock.advance(2_000);
    assert.equal(paused.isLeading, true);
    const writes = leases.writes.length;
    // Time goes by, and no timer of the process has run yet.
    wakingClock.pausedMs += 5_000;
    assert.throws(() => paused.leadership?.requireHeld(), NotLeadingError);
    assert.equal(paused.isCertain, false);
    assert.equal(paused.isLeading, false);
    await clock.advance(10_000);
    await paused.leadership?.release();
    assert.equal(leases.writes.length, writes);
  });
});

/** A clock that went on while its process did not: its timers are all late. */
class PausedClock extends FakeClock {
  pausedMs = 0;
  readonly #clock: FakeClock;

  constructor(clock: FakeClock) {
    super();
    this.#clock = clock;
  }

  override now(): number {
    return this.#clock.now() + this.pausedMs;
  }

  override monotonicMs(): number {
    return this.#clock.monotonicMs() + this.pausedMs;
  }

  override setTimer(delayMs: number, fn: () => void) {
    return this.#clock.setTimer(delayMs, fn);
  }

  override get pendingTimerCount(): number {
    return this.#clock.pendingTimerCount;
  }
}
