/**
 * Leader election by a Lease: of all processes that ask for the same one, at most one leads.
 *
 * Nobody compares clocks. A Lease that another process holds counts as expired only when its content
 * has not changed for its whole duration as seen from here, on the monotonic clock. Writes are bound
 * to the version they were decided by.
 */
import { isApiError } from "./api-error.ts";
import { microTime } from "./event-object.ts";
import { jittered, Leadership, sentAt } from "./leadership.ts";
import type { ElectionOptions, SentAt } from "./leadership.ts";
import type { Lease } from "./lease.ts";

export class Election {
  readonly #options: ElectionOptions;
  /** The Lease as last seen, and since when it has been so. */
  #seen: { readonly lease: Lease; readonly sinceMs: number } | undefined;
  #hasRead = false;
  #problem = "the Lease is not read yet";

  constructor(options: ElectionOptions) {
    this.#options = options;
  }

  /** Why this process could not take part so far; undefined once the Lease was read. */
  get problem(): string | undefined {
    return this.#hasRead ? undefined : this.#problem;
  }

  /** Waits until this process leads, however long; rejects with the signal's reason. */
  async acquire(signal: AbortSignal): Promise<Leadership> {
    for (;;) {
      signal.throwIfAborted();
      const leadership = await this.#attempt(signal);
      if (leadership !== undefined) {
        if (!signal.aborted) return leadership;
        await leadership.release();
      }
      await this.#options.clock.sleep(this.#delayMs(), signal);
    }
  }

  async #attempt(signal: AbortSignal): Promise<Leadership | undefined> {
    const { leases, clock, log } = this.#options;
    const obstacle = this.#options.obstacle();
    if (obstacle !== undefined) {
      this.#problem = obstacle;
      return undefined;
    }
    try {
      const lease = await leases.read(signal);
      this.#hasRead = true;
      this.#see(lease);
      if (!this.#isFree(lease)) return undefined;
      const sent = sentAt(clock);
      // Not cut off by the signal: what may have been taken has to be given back.
      const taken = await this.#take(lease, sent);
      this.#see(taken);
      log.info({ transitions: taken.transitions, before: lease?.holder }, "Lease taken");
      return new Leadership(this.#options, taken, sent);
    } catch (error) {
      if (signal.aborted || isApiError(error, "conflict", "already-exists")) return undefined;
      const message = error instanceof Error ? error.message : String(error);
      // Once is enough for what goes on.
      log[message === this.#problem ? "debug" : "warn"]({ error }, "cannot ask for the Lease");
      this.#problem = message;
      return undefined;
    }
  }

  #see(lease: Lease | undefined): void {
    if (lease === undefined || lease.version === this.#seen?.lease.version) return;
    this.#seen = { lease, sinceMs: this.#options.clock.monotonicMs() };
  }

  /** A Lease that was deleted under its holder has not ended the holder's time. */
  #isFree(lease: Lease | undefined): boolean {
    const held = lease ?? this.#seen?.lease;
    if (held === undefined || held.holder === "" || held.holder === this.#options.identity) {
      return true;
    }
    return this.#expiresInMs() <= 0;
  }

  #expiresInMs(): number {
    if (this.#seen === undefined) return 0;
    const { lease, sinceMs } = this.#seen;
    const { times, clock } = this.#options;
    return sinceMs + (lease.durationMs || times.leaseMs) - clock.monotonicMs();
  }

  #take(lease: Lease | undefined, sent: SentAt): Promise<Lease> {
    const { leases, identity, times } = this.#options;
    const now = microTime(sent.wallMs);
    const held = {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(times.leaseMs / 1_000),
      renewTime: now,
    };
    if (lease === undefined) {
      return leases.create({ ...held, acquireTime: now, leaseTransitions: 0 });
    }
    // Ours from before, or from an attempt whose answer was lost: the same holder's same time.
    if (lease.holder === identity && lease.acquireTime !== "") return leases.update(lease, held);
    const leaseTransitions = lease.transitions + 1;
    return leases.update(lease, { ...held, acquireTime: now, leaseTransitions });
  }

  /** Not later than the moment at which the Lease expires, if nobody renews it. */
  #delayMs(): number {
    const { times, random } = this.#options;
    const delayMs = jittered(times.retryMs, random);
    const expiresInMs = this.#expiresInMs();
    return expiresInMs > 0 ? Math.min(delayMs, expiresInMs) : delayMs;
  }
}
