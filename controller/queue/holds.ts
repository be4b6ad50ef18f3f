import type { Clock } from "../../services/process/clock.ts";

/** Names that must not run before an instant, such as until when a vendor asked to be left alone. */
export class Holds {
  readonly #clock: Clock;
  readonly #untilMs = new Map<string, number>();
  #sizeAtSweep = sweepSizeMin;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Holds for at least `delayMs` from now; a hold that lasts longer already stays. */
  hold(name: string, delayMs: number): void {
    const untilMs = this.#clock.monotonicMs() + Math.min(Math.max(delayMs, 0), holdMsMax);
    this.#untilMs.set(name, Math.max(untilMs, this.untilMs(name)));
    if (this.#untilMs.size < this.#sizeAtSweep) return;
    for (const held of this.#untilMs.keys()) this.untilMs(held);
    this.#sizeAtSweep = Math.max(sweepSizeMin, this.#untilMs.size * 2);
  }

  lift(name: string): void {
    this.#untilMs.delete(name);
  }

  /** The monotonic instant the hold ends at; minus infinity where there is none. */
  untilMs(name: string): number {
    const untilMs = this.#untilMs.get(name);
    if (untilMs === undefined) return Number.NEGATIVE_INFINITY;
    if (untilMs > this.#clock.monotonicMs()) return untilMs;
    this.#untilMs.delete(name);
    return Number.NEGATIVE_INFINITY;
  }

  isHeld(name: string): boolean {
    return this.untilMs(name) > this.#clock.monotonicMs();
  }
}

/** No hint holds longer, whatever it says: quotas reset within a day. */
const holdMsMax = 24 * 60 * 60_000;
const sweepSizeMin = 1_024;
