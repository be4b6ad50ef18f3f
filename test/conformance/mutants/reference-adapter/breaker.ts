/** Stops asking a vendor that fails: open for a while, then one call tries. */
import { Failure } from "./failure.ts";
import type { Mutations } from "./mutations.ts";

const failuresMax = 8;

export class Breaker {
  readonly #openMs: number;
  readonly #mutations: Mutations;
  #failures = 0;
  #openUntilMs = 0;
  #isTrying = false;

  constructor(openMs: number, mutations: Mutations) {
    this.#openMs = openMs;
    this.#mutations = mutations;
  }

  /** Throws CIRCUIT_OPEN unless a call may go. Each that goes has to end with `leave`. */
  enter(): void {
    if (this.#failures < failuresMax || this.#mutations.has("circuit-never-opens")) return;
    const waitMs = this.#openUntilMs - Date.now();
    const mayTry = waitMs <= 0 && !this.#mutations.has("circuit-never-closes");
    if (mayTry && !this.#isTrying) {
      this.#isTrying = true;
      return;
    }
    throw new Failure("CIRCUIT_OPEN", "the vendor keeps failing and is left alone for a while", {
      retryAfterMs: Math.max(waitMs, 100),
    });
  }

  /** @param isFailure of the vendor's own; what callers do wrong is none */
  leave(isFailure: boolean): void {
    this.#isTrying = false;
    if (!isFailure) {
      this.#failures = 0;
      return;
    }
    this.#failures += 1;
    if (this.#failures >= failuresMax) this.#openUntilMs = Date.now() + this.#openMs;
  }
}
