import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import { FakeClock } from "../../services/process/fake-clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { Election } from "./election.ts";
import { FakeLease, refused } from "./fake-lease.ts";
import { electionTimes, NotLeadingError } from "./leadership.ts";
import type { Leadership } from "./leadership.ts";

const leaseMs = 6_000;
const renewDeadlineMs = 4_000;

/** One process that takes part. */
class Candidate {
  readonly clock: FakeClock;
  readonly election: Election;
  readonly stopping = new AbortController();
  obstacle: string | undefined;
  leadership: Leadership | undefined;
  readonly ended: Promise<void>;

  constructor(
    leases: FakeLease,
    identity: string,
    { clock, obstacle }: { readonly clock: FakeClock; readonly obstacle: string | undefined },
  ) {
    this.clock = clock;
    this.obstacle = obstacle;
    this.election = new Election({
      leases,
      identity,
      times: electionTimes(leaseMs),
      clock,
      random: () => 0.5,
      log: silentLog,
      obstacle: () => this.obstacle,
    });
    this.ended = this.election.acquire(this.stopping.signal).then(
      (leadership) => void (this.leadership = leadership),
      () => undefined,
    );
  }

  get isLeading(): boolean {
    return this.leadership !== undefined && !this.leadership.signal.aborted;
  }

  get isCertain(): boolean {
    return (this.leadership?.certainUntilMs() ?? 0) > this.clock.now();
  }
}

describe("election", () => {
  let leases: FakeLease;
  let clock: FakeClock;
  let candidates: Candidate[];

  beforeEach(() => {
    leases = new FakeLease();
    clock = new FakeClock();
    candidates = [];
  });
  afterEach(async () => {
    leases.gate = async () => undefined;
    for (const candidate of candidates) {
      candidate.stopping.abort(new Error("the test is over"));
      await candidate.leadership?.release();
    }
    for (const candidate of candidates) {
      await candidate.ended;
      assert.equal(candidate.clock.pendingTimerCount, 0);
    }
  });

  /** A process with a clock of its own where one is given. */
  function join(identity: string, ownClock = clock, obstacle?: string): Candidate {
    const candidate = new Candidate(leases, identity, { clock: ownClock, obstacle });
    candidates.push(candidate);
    return candidate;
  }

  async function leader(identity = "a"): Promise<Candidate> {
    const candidate = join(identity);
    await clock.advance(0);
    assert.ok(candidate.isLeading);
    return candidate;
  }

  test("without a Lease the first one leads at once", async () => {
    await leader();
    assert.deepEqual(leases.spec, {
      holderIdentity: "a",
      leaseDurationSeconds: 6,
      acquireTime: "2026-01-01T00:00:00.000000Z",
      renewTime: "2026-01-01T00:00:00.000000Z",
      leaseTransitions: 0,
    });
  });

  test("of two that come at once one leads", async () => {
    const both = [join("a"), join("b")];
    await clock.advance(60_000);
    assert.equal(both.filter(({ isLeading }) => isLeading).length, 1);
  });

  test("the leader renews every third of the duration, and nothing but renewTime changes", async () => {
    await leader();
    const before = leases.spec;
    await clock.advance(60_000);
    assert.equal(leases.writes.length, 1 + 30);
    assert.deepEqual(leases.spec, { ...before, renewTime: "2026-01-01T00:01:00.000000Z" });
  });

  test("a dead leader's Lease is taken a whole duration after its last change was seen", async () => {
    leases.set({ holderIdentity: "dead", leaseDurationSeconds: 6, leaseTransitions: 4 });
    const successor = join("b");
    await clock.advance(leaseMs - 1);
    assert.equal(successor.isLeading, false);
    await clock.advance(1);
    assert.equal(successor.isLeading, true);
    assert.equal(leases.spec?.leaseTransitions, 5);
    assert.equal(leases.spec?.acquireTime, leases.spec?.renewTime);
  });

  test("the duration that counts is the one the holder has written", async () => {
    leases.set({ holderIdentity: "dead", leaseDurationSeconds: 15 });
    const successor = join("b");
    await clock.advance(14_999);
    assert.equal(successor.isLeading, false);
    await clock.advance(1);
    assert.equal(successor.isLeading, true);
  });

  test("a renewTime of long ago or of tomorrow says nothing: clocks are not compared", async () => {
    for (const renewTime of ["2001-01-01T00:00:00.000000Z", "2101-01-01T00:00:00.000000Z"]) {
      leases.set({ holderIdentity: "other", leaseDurationSeconds: 6, renewTime });
      const candidate = join("b");
      await clock.advance(leaseMs - 1);
      assert.equal(candidate.isLeading, false);
      await clock.advance(1);
      assert.equal(candidate.isLeading, true);
      await candidate.leadership?.release();
    }
  });

  test("a standby's wall clock set forward or back changes nothing", async () => {
    await leader();
    const standbyClock = new FakeClock();
    const standby = join("b", standbyClock);
    for (const jumpMs of [3_600_000, -7_200_000]) {
      await standbyClock.advance(1_000);
      standbyClock.setWallTime(standbyClock.now() + jumpMs);
      await clock.advance(3_000);
      await standbyClock.advance(3_000);
      assert.equal(standby.isLeading, false);
    }
  });

  test("a standby that was paused looks again before it believes that the leader is dead", async () => {
    await leader();
    const standbyClock = new FakeClock();
    const standby = join("b", standbyClock);
    await standbyClock.advance(2_000);
    await clock.advance(100_000);
    await standbyClock.advance(1_000);
    assert.equal(standby.isLeading, false);
  });

  test("a standby paused between its look and its write is refused by the version", async () => {
    const { isLeading } = await leader();
    const standbyClock = new FakeClock();
    const standby = join("b", standbyClock);
    await standbyClock.advance(0);
    const pause = Promise.withResolvers<void>();
    leases.gate = async ({ verb, spec }) => {
      if (verb === "update" && spec?.holderIdentity === "b") await pause.promise;
    };
    await standbyClock.advance(leaseMs);
    await clock.advance(leaseMs);
    pause.resolve();
    await standbyClock.advance(100);
    assert.equal(standby.isLeading, false);
    assert.equal(isLeading, true);
    assert.equal(leases.spec?.holderIdentity, "a");
  });

  test("a released Lease is taken at the next look, within a sixth of the duration", async () => {
    const first = await leader();
    const second = join("b");
    await clock.advance(10_000);
    await first.leadership?.release();
    assert.equal(leases.spec?.holderIdentity, "");
    await clock.advance(1_200);
    assert.equal(second.isLeading, true);
    assert.equal(first.isLeading, false);
    assert.equal(leases.spec?.leaseTransitions, 1);
  });

  test("releasing says of whoever released that it leads no more, before it says so to others", async () => {
    const first = await leader();
    let wasCertain: boolean | undefined;
    leases.gate = async () => void (wasCertain = first.isCertain);
    await first.leadership?.release();
    assert.equal(wasCertain, false);
    assert.throws(() => first.leadership?.requireHeld(), NotLeadingError);
  });

  test("who is told to stop while it takes the Lease gives it back", async () => {
    const answer = Promise.withResolvers<void>();
    leases.gate = async (call) => {
      if (call.verb === "create") call.beforeAnswer = () => answer.promise;
    };
    const candidate = join("a");
    await clock.advance(0);
    candidate.stopping.abort(new Error("stop"));
    answer.resolve();
    await candidate.ended;
    assert.equal(candidate.leadership, undefined);
    assert.equal(leases.spec?.holderIdentity, "");
  });

  test("a standby that is told to stop writes nothing", async () => {
    await leader();
    const standby = join("b");
    await clock.advance(5_000);
    standby.stopping.abort(new Error("stop"));
    await standby.ended;
    assert.ok(leases.writes.every(({ spec }) => spec?.holderIdentity === "a"));
  });

  test("a process that must not lead does not ask, and says why it takes no part", async () => {
    const candidate = join("a", clock, "the watch has heard nothing");
    await clock.advance(10_000);
    assert.equal(leases.writes.length, 0);
    assert.match(candidate.election.problem ?? "", /heard nothing/);
    candidate.obstacle = undefined;
    await clock.advance(2_000);
    assert.equal(candidate.isLeading, true);
    assert.equal(candidate.election.problem, undefined);
  });

  test("a Lease that cannot be read is asked for again, and the reason can be read", async () => {
    leases.gate = async () => Promise.reject(refused("forbidden"));
    const candidate = join("a");
    await clock.advance(5_000);
    assert.match(candidate.election.problem ?? "", /forbidden/);
    leases.gate = async () => undefined;
    await clock.advance(2_000);
    assert.equal(candidate.isLeading, true);
  });

  test("a Lease deleted under its holder is not free before the holder's time is over", async () => {
    const first = await leader();
    const second = join("b");
    await clock.advance(1_500);
    leases.set(undefined);
    await clock.advance(400);
    assert.equal(second.isLeading, false);
    await clock.advance(10_000);
    assert.equal(first.isLeading, true);
    assert.equal(second.isLeading, false);
    assert.equal(leases.spec?.holderIdentity, "a");
  });

  test("a Lease of its own from an answer that was lost is taken without a transition", async () => {
    let losses = 1;
    leases.gate = async (call) => {
      if (call.verb !== "create" || losses-- <= 0) return;
      call.beforeAnswer = () => Promise.reject(refused("timeout"));
    };
    const candidate = join("a");
    await clock.advance(2_000);
    assert.equal(candidate.isLeading, true);
    assert.equal(leases.spec?.leaseTransitions, 0);
    assert.equal(leases.spec?.acquireTime, "2026-01-01T00:00:00.000000Z");
  });

  describe("leadership", () => {
    test("is certain until the last renewal was sent plus the duration, never later", async () => {
      const startMs = clock.now();
      const { leadership } = await leader();
      assert.equal(leadership?.certainUntilMs(), startMs + leaseMs);
      // The answer takes a second: it is not counted.
      leases.gate = (call) => {
        call.beforeAnswer = () => clock.sleep(1_000);
        return Promise.resolve();
      };
      await clock.advance(3_500);
      assert.equal(leadership?.certainUntilMs(), startMs + 2_000 + leaseMs);
    });

    test("is never thought to last longer when the wall clock is set, and is kept", async () => {
      const candidate = await leader();
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
      const candidate = await leader();
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
      const candidate = await leader();
      leases.gate = () => clock.sleep(10_000);
      await clock.advance(renewDeadlineMs);
      assert.equal(candidate.isLeading, false);
      await clock.advance(10_000);
    });

    test("survives renewals that fail for a moment", async () => {
      const candidate = await leader();
      for (let count = 0; count < 5; count++) {
        leases.gate = async () => Promise.reject(refused("network"));
        await clock.advance(1_500);
        leases.gate = async () => undefined;
        await clock.advance(3_000);
        assert.equal(candidate.isLeading, true);
      }
    });

    test("survives a renewal whose answer was lost: its own version is read again", async () => {
      const candidate = await leader();
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
      const candidate = await leader();
      if (leases.spec !== undefined) leases.set(leases.spec);
      await clock.advance(20_000);
      assert.equal(candidate.isLeading, true);
    });

    test("ends at once when another holds the Lease", async () => {
      const candidate = await leader();
      leases.set({ holderIdentity: "b", leaseDurationSeconds: 6 });
      await clock.advance(2_100);
      assert.equal(candidate.isLeading, false);
      assert.equal(leases.spec?.holderIdentity, "b");
    });

    test("ends, without a renewal, while the process does not get on with its work", async () => {
      const candidate = await leader();
      await clock.advance(10_000);
      const writes = leases.writes.length;
      candidate.obstacle = "a run hangs";
      await clock.advance(renewDeadlineMs);
      assert.equal(candidate.isLeading, false);
      assert.equal(leases.writes.length, writes);
      assert.match(String(candidate.leadership?.signal.reason), /a run hangs/);
    });

    test("ends for a leader that was paused and wakes late: nothing is written", async () => {
      const candidate = await leader();
      const wakingClock = new PausedClock(clock);
      const paused = join("b", wakingClock);
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
