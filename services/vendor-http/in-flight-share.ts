/**
 * How many requests of one account are at vendors at a time: one hung account cannot take the others'
 * connections. Who comes too many waits, briefly and in order: a call that has changed something
 * must not lose its answer because newcomers took the room in which it would have looked again.
 */
import { ProviderError } from "../contract/provider-error.ts";
import type { Clock } from "../process/clock.ts";

export interface InFlightShareOptions {
  readonly inFlightMax: number;
  /** Longer waits are refused with BUSY instead: the vendor hangs. */
  readonly waitMsMax: number;
}

interface Waiting {
  readonly admit: () => void;
}

/** See the file comment. */
export class InFlightShare {
  readonly #clock: Clock;
  readonly #options: InFlightShareOptions;
  readonly #waiting = new Set<Waiting>();
  #inFlight = 0;

  constructor(clock: Clock, options: InFlightShareOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  /**
   * Resolves when there is room; what it answers gives the room back. Rejects with BUSY or with the
   * signal's reason: then nothing was sent.
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    if (this.#inFlight < this.#options.inFlightMax) this.#inFlight += 1;
    else await this.#room(signal);
    let isLeft = false;
    return () => {
      if (isLeft) return;
      isLeft = true;
      this.#leave();
    };
  }

  /** The room goes from hand to hand: who waits has it before anybody who comes newly. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#inFlight -= 1;
      return;
    }
    this.#waiting.delete(next);
    next.admit();
  }

  #room(signal: AbortSignal): Promise<void> {
    const { inFlightMax, waitMsMax } = this.#options;
    return new Promise((resolve, reject) => {
      const end = (): void => {
        timer.cancel();
        signal.removeEventListener("abort", onAbort);
        this.#waiting.delete(waiting);
      };
      const waiting: Waiting = {
        admit: () => {
          end();
          resolve();
        },
      };
      const onAbort = (): void => {
        end();
        reject(signal.reason);
      };
      const timer = this.#clock.setTimer(waitMsMax, () => {
        end();
        const message = `${inFlightMax} requests of the account are in flight`;
        reject(new ProviderError("BUSY", message, { outcome: "NOT_APPLIED", retryAfterMs: 1000 }));
      });
      this.#waiting.add(waiting);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
    });
  }
}
