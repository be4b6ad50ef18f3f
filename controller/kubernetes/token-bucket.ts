import type { Clock } from "../../services/process/clock.ts";

/** Allows a burst, then one more each interval. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #refillMs: number;
  #tokens: number;
  #atMs: number;

  /** @param refillMs until one used token is back */
  constructor(clock: Clock, burst: number, refillMs: number) {
    this.#clock = clock;
    this.#burst = burst;
    this.#refillMs = refillMs;
    this.#tokens = burst;
    this.#atMs = clock.monotonicMs();
  }

  /** Takes a token where there is one. */
  take(): boolean {
    this.#refill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** How long until `take` succeeds; 0 where it would now. */
  get waitMs(): number {
    this.#refill();
    return this.#tokens >= 1 ? 0 : Math.ceil((1 - this.#tokens) * this.#refillMs);
  }

  #refill(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(this.#burst, this.#tokens + (nowMs - this.#atMs) / this.#refillMs);
    this.#atMs = nowMs;
  }
}
