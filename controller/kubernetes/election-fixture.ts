/** For tests: processes that take part in an election over one Lease in memory. */
import assert from "node:assert/strict";

import { FakeClock } from "../../services/process/fake-clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { Election } from "./election.ts";
import { FakeLease } from "./fake-lease.ts";
import { electionTimes } from "./leadership.ts";
import type { Leadership } from "./leadership.ts";

export const leaseMs = 6_000;
export const renewDeadlineMs = 4_000;

/** One process that takes part. */
export class Candidate {
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

/** All that a test begins with. */
export class Candidates {
  readonly leases = new FakeLease();
  readonly clock = new FakeClock();
  readonly #all: Candidate[] = [];

  /** A process with a clock of its own where one is given. */
  join(identity: string, clock = this.clock, obstacle?: string): Candidate {
    const candidate = new Candidate(this.leases, identity, { clock, obstacle });
    this.#all.push(candidate);
    return candidate;
  }

  async leader(): Promise<Candidate> {
    const candidate = this.join("a");
    await this.clock.advance(0);
    assert.ok(candidate.isLeading);
    return candidate;
  }

  /** Stops all, and looks whether a timer is left. */
  async end(): Promise<void> {
    this.leases.gate = async () => undefined;
    for (const candidate of this.#all) {
      candidate.stopping.abort(new Error("the test is over"));
      await candidate.leadership?.release();
    }
    for (const candidate of this.#all) {
      await candidate.ended;
      assert.equal(candidate.clock.pendingTimerCount, 0);
    }
  }
}
