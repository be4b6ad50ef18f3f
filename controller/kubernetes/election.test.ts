import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import { FakeClock } from "../../services/process/fake-clock.ts";
import { Candidates, leaseMs } from "./election-fixture.ts";
import { refused } from "./fake-lease.ts";
import type { FakeLease } from "./fake-lease.ts";
import { NotLeadingError } from "./leadership.ts";

describe("election", () => {
  let candidates: Candidates;
  let leases: FakeLease;
  let clock: FakeClock;

  beforeEach(() => {
    candidates = new Candidates();
    ({ leases, clock } = candidates);
  });
  afterEach(() => candidates.end());

  test("without a Lease the first one leads at once", async () => {
    await candidates.leader();
    assert.deepEqual(leases.spec, {
      holderIdentity: "a",
      leaseDurationSeconds: 6,
      acquireTime: "2026-01-01T00:00:00.000000Z",
      renewTime: "2026-01-01T00:00:00.000000Z",
      leaseTransitions: 0,
    });
  });

  test("of two that come at once one leads", async () => {
    const both = [candidates.join("a"), candidates.join("b")];
    await clock.advance(60_000);
    assert.equal(both.filter(({ isLeading }) => isLeading).length, 1);
  });

  test("the leader renews every third of the duration, and nothing but renewTime changes", async () => {
    await candidates.leader();
    const before = leases.spec;
    await clock.advance(60_000);
    assert.equal(leases.writes.length, 1 + 30);
    assert.deepEqual(leases.spec, { ...before, renewTime: "2026-01-01T00:01:00.000000Z" });
  });

  test("a dead leader's Lease is taken a whole duration after its last change was seen", async () => {
    leases.set({ holderIdentity: "dead", leaseDurationSeconds: 6, leaseTransitions: 4 });
    const successor = candidates.join("b");
    await clock.advance(leaseMs - 1);
    assert.equal(successor.isLeading, false);
    await clock.advance(1);
    assert.equal(successor.isLeading, true);
    assert.equal(leases.spec?.leaseTransitions, 5);
    assert.equal(leases.spec?.acquireTime, leases.spec?.renewTime);
  });

  test("the duration that counts is the one the holder has written", async () => {
    leases.set({ holderIdentity: "dead", leaseDurationSeconds: 15 });
    const successor = candidates.join("b");
    await clock.advance(14_999);
    assert.equal(successor.isLeading, false);
    await clock.advance(1);
    assert.equal(successor.isLeading, true);
  });

  test("a renewTime of long ago or of tomorrow says nothing: clocks are not compared", async () => {
    for (const renewTime of ["2001-01-01T00:00:00.000000Z", "2101-01-01T00:00:00.000000Z"]) {
      leases.set({ holderIdentity: "other", leaseDurationSeconds: 6, renewTime });
      const candidate = candidates.join("b");
      await clock.advance(leaseMs - 1);
      assert.equal(candidate.isLeading, false);
      await clock.advance(1);
      assert.equal(candidate.isLeading, true);
      await candidate.leadership?.release();
    }
  });

  test("a standby's wall clock set forward or back changes nothing", async () => {
    await candidates.leader();
    const standbyClock = new FakeClock();
    const standby = candidates.join("b", standbyClock);
    for (const jumpMs of [3_600_000, -7_200_000]) {
      await standbyClock.advance(1_000);
      standbyClock.setWallTime(standbyClock.now() + jumpMs);
      await clock.advance(3_000);
      await standbyClock.advance(3_000);
      assert.equal(standby.isLeading, false);
    }
  });

  test("a standby that was paused looks again before it believes that the leader is dead", async () => {
    await candidates.leader();
    const standbyClock = new FakeClock();
    const standby = candidates.join("b", standbyClock);
    await standbyClock.advance(2_000);
    await clock.advance(100_000);
    await standbyClock.advance(1_000);
    assert.equal(standby.isLeading, false);
  });

  test("a standby paused between its look and its write is refused by the version", async () => {
    const { isLeading } = await candidates.leader();
    const standbyClock = new FakeClock();
    const standby = candidates.join("b", standbyClock);
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
    const first = await candidates.leader();
    const second = candidates.join("b");
    await clock.advance(10_000);
    await first.leadership?.release();
    assert.equal(leases.spec?.holderIdentity, "");
    await clock.advance(1_200);
    assert.equal(second.isLeading, true);
    assert.equal(first.isLeading, false);
    assert.equal(leases.spec?.leaseTransitions, 1);
  });

  test("releasing says of whoever released that it leads no more, before it says so to others", async () => {
    const first = await candidates.leader();
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
    const candidate = candidates.join("a");
    await clock.advance(0);
    candidate.stopping.abort(new Error("stop"));
    answer.resolve();
    await candidate.ended;
    assert.equal(candidate.leadership, undefined);
    assert.equal(leases.spec?.holderIdentity, "");
  });

  test("a standby that is told to stop writes nothing", async () => {
    await candidates.leader();
    const standby = candidates.join("b");
    await clock.advance(5_000);
    standby.stopping.abort(new Error("stop"));
    await standby.ended;
    assert.ok(leases.writes.every(({ spec }) => spec?.holderIdentity === "a"));
  });

  test("a process that must not lead does not ask, and says why it takes no part", async () => {
    const candidate = candidates.join("a", clock, "the watch has heard nothing");
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
    const candidate = candidates.join("a");
    await clock.advance(5_000);
    assert.match(candidate.election.problem ?? "", /forbidden/);
    leases.gate = async () => undefined;
    await clock.advance(2_000);
    assert.equal(candidate.isLeading, true);
  });

  test("a Lease deleted under its holder is not free before the holder's time is over", async () => {
    const first = await candidates.leader();
    const second = candidates.join("b");
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
    const candidate = candidates.join("a");
    await clock.advance(2_000);
    assert.equal(candidate.isLeading, true);
    assert.equal(leases.spec?.leaseTransitions, 0);
    assert.equal(leases.spec?.acquireTime, "2026-01-01T00:00:00.000000Z");
  });
});
