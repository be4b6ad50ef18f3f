/** How many calls a second an account may make: a token bucket that callers wait at, briefly. */
import { ProviderError } from "../contract/provider-error.ts";
import type { Clock } from "../process/clock.ts";

const ownBudgetQuota = "calls per second of the adapter's account";

/** True for a THROTTLED that comes from here: the vendor was not asked. */
export function isOwnBudget(error: ProviderError): boolean {
  return error.reason === "THROTTLED" && error.facts.quota === ownBudgetQuota;
}

export interface CallBudgetOptions {
  readonly callsPerSecond: number;
  /** Longer waits are refused with THROTTLED instead, so that no queue forms here. */
  readonly waitMsMax: number;
}

/** Hands out turns in the order they were asked for. */
export class CallBudget {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #burstMs: number;
  readonly #waitMsMax: number;
  /** When the next turn is due; behind the clock by at most one second's worth of turns. */
  #nextTurnMs: number;

  constructor(clock: Clock, options: CallBudgetOptions) {
    this.#clock = clock;
    this.#intervalMs = 1000 / options.callsPerSecond;
    this.#burstMs = Math.max(1000 - this.#intervalMs, 0);
    this.#waitMsMax = options.waitMsMax;
    this.#nextTurnMs = clock.monotonicMs() - this.#burstMs;
  }

  /** Resolves when it is the caller's turn; rejects with THROTTLED or the signal's reason. */
  async take(signal: AbortSignal): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const turnMs = Math.max(this.#nextTurnMs, nowMs - this.#burstMs);
    const waitMs = turnMs - nowMs;
    if (waitMs > this.#waitMsMax) {
      throw new ProviderError("THROTTLED", "the account's own call budget is used up", {
        outcome: "NOT_APPLIED",
        quota: ownBudgetQuota,
        retryAfterMs: Math.ceil(waitMs),
      });
    }
    this.#nextTurnMs = turnMs + this.#intervalMs;
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal);
  }
}
