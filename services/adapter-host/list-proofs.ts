/**
 * Whole lists, read for many at once. Where a vendor has no look-up by key, each call would read the
 * list twice to prove an absence; with many calls the reads would multiply, and our own mutations
 * would keep the list changing under them. So calls that wait at the same time share one reading that
 * began after all of them asked, and our own mutations in that realm wait meanwhile, for a while.
 */
import type { Clock } from "../process/clock.ts";

export interface ListProofsOptions {
  readonly clock: Clock;
  /** How long a mutation in flight holds back readings in all, and a reading a mutation. */
  readonly holdMsMax: number;
}

/** What goes on in one realm. */
interface RealmTraffic {
  /** The reading under way. */
  current: Promise<unknown> | undefined;
  /** The one that follows it, for all who asked since it began. */
  next: Promise<unknown> | undefined;
  /** Those in flight, and since when (monotonic ms). */
  readonly mutations: Map<Promise<unknown>, number>;
}

/** Followers of a reading whose starter left begin one of their own, so many times. */
const attemptsMax = 3;

/** See the file comment. `Proof` is what one reading answers. */
export class ListProofs<Proof> {
  readonly #options: ListProofsOptions;
  readonly #realms = new Map<string, RealmTraffic>();

  constructor(options: ListProofsOptions) {
    this.#options = options;
  }

  /** The answer of a reading that begins after this call; `read` is used where none can be joined. */
  async prove(realm: string, read: () => Promise<Proof>): Promise<Proof> {
    for (let attempt = 1; ; attempt += 1) {
      const started = { isOurs: false };
      try {
        return await this.#join(realm, () => {
          started.isOurs = true;
          return read();
        });
      } catch (error) {
        // Another call's deadline must not end this one.
        if (started.isOurs || attempt === attemptsMax) throw error;
      }
    }
  }

  /** Runs a mutation of ours, not while a reading is under way unless that takes too long. */
  async mutation<T>(realm: string, mutate: () => Promise<T>): Promise<T> {
    const traffic = this.#traffic(realm);
    const { clock, holdMsMax } = this.#options;
    if (traffic.current !== undefined) await this.#atMost(holdMsMax, traffic.current);
    const running = mutate();
    traffic.mutations.set(running, clock.monotonicMs());
    try {
      return await running;
    } finally {
      traffic.mutations.delete(running);
      this.#forgetIfIdle(realm, traffic);
    }
  }

  async #join(realm: string, read: () => Promise<Proof>): Promise<Proof> {
    const traffic = this.#traffic(realm);
    if (traffic.current === undefined) return this.#begin(realm, traffic, read);
    // The door: only `read`s of this class's Proof are kept here.
    traffic.next ??= settled(traffic.current).then(() => {
      traffic.next = undefined;
      return this.#begin(realm, traffic, read);
    });
    return traffic.next as Promise<Proof>;
  }

  #begin(realm: string, traffic: RealmTraffic, read: () => Promise<Proof>): Promise<Proof> {
    const reading = this.#quiet(traffic).then(read);
    traffic.current = reading;
    const end = (): void => {
      if (traffic.current === reading) traffic.current = undefined;
      this.#forgetIfIdle(realm, traffic);
    };
    reading.then(end, end);
    return reading;
  }

  /** Resolves when no mutation is in flight, but for those that have held readings long enough. */
  async #quiet({ mutations }: RealmTraffic): Promise<void> {
    const { clock, holdMsMax } = this.#options;
    const nowMs = clock.monotonicMs();
    const waits = [...mutations].flatMap(([running, sinceMs]) => {
      const leftMs = sinceMs + holdMsMax - nowMs;
      return leftMs > 0 ? [this.#atMost(leftMs, running)] : [];
    });
    await Promise.all(waits);
  }

  /** Resolves with `work`, however it ends, or when the time is over. */
  async #atMost(waitMs: number, work: Promise<unknown>): Promise<void> {
    const over = new AbortController();
    const limit = this.#options.clock.sleep(waitMs, over.signal);
    await Promise.race([settled(work), settled(limit)]);
    over.abort();
  }

  #traffic(realm: string): RealmTraffic {
    const known = this.#realms.get(realm);
    if (known !== undefined) return known;
    const traffic: RealmTraffic = { current: undefined, next: undefined, mutations: new Map() };
    this.#realms.set(realm, traffic);
    return traffic;
  }

  #forgetIfIdle(realm: string, traffic: RealmTraffic): void {
    const isIdle =
      traffic.current === undefined && traffic.next === undefined && traffic.mutations.size === 0;
    if (isIdle && this.#realms.get(realm) === traffic) this.#realms.delete(realm);
  }
}

function settled(work: Promise<unknown>): Promise<void> {
  const done = (): void => undefined;
  return work.then(done, done);
}
