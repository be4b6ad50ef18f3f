/**
 * Leading: from the write that took the Lease to its loss or release. Renews by itself. Times count
 * from when a request was sent, on the monotonic clock: what the API server believes begins later.
 */
import type { Clock, Timer } from "../../services/process/clock.ts";
import type { Log } from "../../services/process/log.ts";
import { isApiError } from "./api-error.ts";
import { microTime } from "./event-object.ts";
import type { Lease, LeaseStore } from "./lease.ts";

/** Each is shorter than the one before it. */
export interface ElectionTimes {
  /** How long others wait, after the Lease's last change, before they take it. Whole seconds. */
  readonly leaseMs: number;
  /** A leader that could not renew for so long leads no more. */
  readonly renewDeadlineMs: number;
  readonly renewMs: number;
  /** Between looks of who waits, and between attempts after a failed renewal; jittered. */
  readonly retryMs: number;
}

/** The usual proportions: 6 s make 4 s, 2 s and 1 s. */
export function electionTimes(leaseMs: number): ElectionTimes {
  return {
    leaseMs,
    renewDeadlineMs: (leaseMs * 2) / 3,
    renewMs: leaseMs / 3,
    retryMs: leaseMs / 6,
  };
}

export interface ElectionOptions {
  readonly leases: LeaseStore;
  /** Of this process alone: no other, before it or beside it, has the same. */
  readonly identity: string;
  readonly times: ElectionTimes;
  readonly clock: Clock;
  /** In [0, 1), as Math.random. */
  readonly random: () => number;
  readonly log: Log;
  /** Why this process must neither take nor renew the Lease now; undefined: all goes on well. */
  readonly obstacle: () => string | undefined;
}

/** The moment at which a request was sent, on both clocks. */
export interface SentAt {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

export function sentAt(clock: Clock): SentAt {
  return { wallMs: clock.now(), monotonicMs: clock.monotonicMs() };
}

/** This process leads no more; nothing that changes anything may be sent. */
export class NotLeadingError extends Error {
  override readonly name = "NotLeadingError";

  constructor(why: string) {
    super(`this process does not lead any more: ${why}`);
  }
}

export class Leadership {
  readonly #options: ElectionOptions;
  readonly #lost = new AbortController();
  readonly #releasing = new AbortController();
  readonly #renewing: Promise<void>;
  #lease: Lease;
  #renewedAt: SentAt;
  #deadline: Timer | undefined;
  #problem = "";

  /** `sent`: when the request was sent by which `lease` was taken. */
  constructor(options: ElectionOptions, lease: Lease, sent: SentAt) {
    this.#options = options;
    this.#lease = lease;
    this.#renewedAt = sent;
    this.#setDeadline();
    this.#renewing = this.#renewUntilEnd();
  }

  /** Aborts, with a NotLeadingError, when this process stops leading, for whatever reason. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /**
   * Whole epoch ms until which no other process leads; in the past once this one leads no more. By
   * the earlier of both clocks, so that it is never too late when the wall clock is set.
   */
  certainUntilMs(): number {
    if (!this.#isHeld()) return 0;
    const { clock, times } = this.#options;
    const { wallMs, monotonicMs } = this.#renewedAt;
    const leftMs = monotonicMs + times.leaseMs - clock.monotonicMs();
    return Math.floor(Math.min(wallMs + times.leaseMs, clock.now() + leftMs));
  }

  /**
   * Call it right before anything is sent: a process that was paused wakes long after its timers.
   * @throws NotLeadingError
   */
  requireHeld(): void {
    if (!this.#isHeld()) throw this.signal.reason;
  }

  /** Gives the Lease up, so that others need not wait. Only when nothing goes on any more. */
  async release(): Promise<void> {
    const { leases, log } = this.#options;
    this.#releasing.abort(new Error("the Lease is being released"));
    await this.#renewing;
    if (!this.#isHeld()) return;
    this.#end("it has released the Lease");
    try {
      await leases.update(this.#lease, { holderIdentity: "" });
    } catch (error) {
      // Others take it when it has expired.
      log.warn({ error }, "cannot release the Lease");
    }
  }

  /** Looks at the time, not only at what timers have done. */
  #isHeld(): boolean {
    const { clock, times } = this.#options;
    if (this.signal.aborted) return false;
    if (clock.monotonicMs() - this.#renewedAt.monotonicMs < times.renewDeadlineMs) return true;
    const why = this.#problem === "" ? "" : `: ${this.#problem}`;
    this.#lose(`not renewed for ${times.renewDeadlineMs} ms${why}`);
    return false;
  }

  #lose(why: string): void {
    if (this.signal.aborted) return;
    this.#options.log.warn({ why }, "leadership lost");
    this.#end(why);
  }

  #end(why: string): void {
    this.#deadline?.cancel();
    this.#lost.abort(new NotLeadingError(why));
  }

  #setDeadline(): void {
    const { clock, times } = this.#options;
    this.#deadline?.cancel();
    const atMs = this.#renewedAt.monotonicMs + times.renewDeadlineMs;
    this.#deadline = clock.setTimer(Math.max(0, atMs - clock.monotonicMs()), () => {
      // Timers are rounded; this one may be a little early.
      if (this.#isHeld()) this.#setDeadline();
    });
  }

  async #renewUntilEnd(): Promise<void> {
    const { clock, times } = this.#options;
    const ending = AbortSignal.any([this.signal, this.#releasing.signal]);
    let dueMs = this.#renewedAt.monotonicMs + times.renewMs;
    while (!ending.aborted) {
      const delayMs = Math.max(0, dueMs - clock.monotonicMs());
      await clock.sleep(delayMs, ending).catch(() => undefined);
      if (ending.aborted) return;
      const isRenewed = await this.#renew();
      dueMs = isRenewed
        ? this.#renewedAt.monotonicMs + times.renewMs
        : clock.monotonicMs() + jittered(times.retryMs, this.#options.random) / 2;
    }
  }

  async #renew(): Promise<boolean> {
    const { clock, log, leases } = this.#options;
    if (!this.#isHeld()) return false;
    const obstacle = this.#options.obstacle();
    if (obstacle !== undefined) {
      if (obstacle !== this.#problem) log.warn({ obstacle }, "Lease is not renewed");
      this.#problem = obstacle;
      return false;
    }
    const sent = sentAt(clock);
    try {
      this.#renewed(await leases.update(this.#lease, this.#renewal(sent), this.signal), sent);
      return true;
    } catch (error) {
      if (this.signal.aborted) return false;
      this.#problem = error instanceof Error ? error.message : String(error);
      log.warn({ error }, "cannot renew the Lease");
      // Perhaps it was renewed and the answer lost; perhaps it is another's.
      if (isApiError(error, "conflict", "not-found", "already-exists")) await this.#lookAgain();
      return false;
    }
  }

  #renewal(sent: SentAt) {
    const { identity, times } = this.#options;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(times.leaseMs / 1_000),
      renewTime: microTime(sent.wallMs),
    };
  }

  #renewed(lease: Lease, sent: SentAt): void {
    this.#lease = lease;
    this.#renewedAt = sent;
    this.#problem = "";
    if (this.#isHeld()) this.#setDeadline();
  }

  /** After a refused renewal: the next one is made from what is there now, if that is still ours. */
  async #lookAgain(): Promise<void> {
    const { leases, identity, clock, log } = this.#options;
    try {
      const lease = await leases.read(this.signal);
      if (lease !== undefined && lease.holder !== identity) {
        this.#lose(`"${lease.holder}" holds the Lease`);
      } else if (lease !== undefined) {
        this.#lease = lease;
      } else {
        // Deleted by hand. Whoever is faster leads: the other one is refused the name.
        const sent = sentAt(clock);
        const spec = {
          ...this.#renewal(sent),
          acquireTime: microTime(sent.wallMs),
          leaseTransitions: this.#lease.transitions,
        };
        this.#renewed(await leases.create(spec, this.signal), sent);
      }
    } catch (error) {
      if (!this.signal.aborted) log.warn({ error }, "cannot read the Lease");
    }
  }
}

/** Around `ms`, so that those who wait for the same do not come at once. */
export function jittered(ms: number, random: () => number): number {
  return ms * (0.8 + random() * 0.4);
}
