/**
 * Whether writes reach the API server. A leader whose status writes fail for long leaves old words
 * standing, and must not go on renewing the Lease that says they are true.
 */
import type { Clock } from "../services/process/clock.ts";
import { isApiError } from "./kubernetes/api-error.ts";
import type { ApiErrorKind } from "./kubernetes/api-error.ts";
import type { Connection } from "./kubernetes/connection.ts";

/** Failures that would meet any object; "conflict" or "invalid" say something about one. */
const failureKinds: readonly ApiErrorKind[] = [
  "forbidden",
  "network",
  "server",
  "throttled",
  "timeout",
  "unauthorized",
  "unreadable",
];

/** So long may every write fail. */
const failingMsMax = 30_000;
/** So long is it left to others to lead, after writes have failed here. */
const restMs = 30_000;

export class WriteHealth {
  readonly #clock: Clock;
  #failingSinceMs: number | undefined;
  #lastError = "";
  #restUntilMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same connection, its writes watched. */
  watch(connection: Pick<Connection, "request">): Pick<Connection, "request"> {
    return {
      request: async (request) => {
        try {
          const answer = await connection.request(request);
          if (request.method !== "GET") this.#failingSinceMs = undefined;
          return answer;
        } catch (error) {
          if (request.method !== "GET") this.#failed(error);
          throw error;
        }
      },
    };
  }

  /** Why this process should not lead; undefined: its writes are well, or were not tried yet. */
  obstacle(): string | undefined {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < this.#restUntilMs) return `writes failed here: ${this.#lastError}`;
    if (this.#failingSinceMs === undefined) return undefined;
    if (nowMs - this.#failingSinceMs < failingMsMax) return undefined;
    return `each write has failed for ${failingMsMax} ms: ${this.#lastError}`;
  }

  /** A term is over. If writes failed in it, others are given time before this process asks again. */
  termEnded(): void {
    if (this.obstacle() !== undefined) this.#restUntilMs = this.#clock.monotonicMs() + restMs;
    this.#failingSinceMs = undefined;
  }

  #failed(error: unknown): void {
    if (!isApiError(error, ...failureKinds)) return;
    this.#failingSinceMs ??= this.#clock.monotonicMs();
    this.#lastError = error.message;
  }
}
