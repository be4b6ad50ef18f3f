/**
 * One change a key at a time. A change that was sent runs on when its caller leaves: it keeps its key
 * until the vendor has answered, and what it made is remembered for the next call.
 */
import { Failure } from "./failure.ts";
import type { OutcomeName } from "./failure.ts";
import type { Mutations } from "./mutations.ts";

const keysMax = 10_000;
const retryMs = 300;

/** How far one call has come at the vendor. */
export interface Progress {
  outcome: OutcomeName;
  providerId?: string;
}

export class Flights {
  readonly #mutations: Mutations;
  readonly #held = new Set<string>();
  readonly #remembered = new Map<string, string>();
  /** All that run, also those whose callers left. */
  readonly #running = new Set<Promise<unknown>>();

  constructor(mutations: Mutations) {
    this.#mutations = mutations;
  }

  /** Runs `work` with the key held. A failure says how far it came. */
  async run<T>(
    key: string,
    signal: AbortSignal,
    work: (progress: Progress) => Promise<T>,
  ): Promise<T> {
    const held = this.#mutations.has("one-lock-for-all") ? "all" : key;
    if (this.#held.has(held) && !this.#mutations.has("no-lock")) {
      const message = "another call changes this instance";
      throw new Failure("BUSY", message, { outcome: "NOT_APPLIED", retryAfterMs: retryMs });
    }
    if (this.#held.size >= keysMax)
      throw new Failure("BUSY", "too many calls", { retryAfterMs: retryMs });
    const progress: Progress = { outcome: "NOT_APPLIED" };
    this.#held.add(held);
    const running = work(progress).finally(() => {
      this.#held.delete(held);
      this.#running.delete(running);
    });
    this.#running.add(running);
    try {
      return await Promise.race([running, left(signal)]);
    } catch (error) {
      if (signal.aborted && this.#mutations.has("frees-keys-early")) this.#held.delete(held);
      throw withProgress(error, progress);
    }
  }

  remember(key: string, id: string): void {
    this.#remembered.set(key, id);
    if (this.#remembered.size <= keysMax) return;
    for (const oldest of this.#remembered.keys()) {
      this.#remembered.delete(oldest);
      return;
    }
  }

  forget(key: string): void {
    this.#remembered.delete(key);
  }

  /** Empty: nothing is known. */
  remembered(key: string): string {
    return this.#remembered.get(key) ?? "";
  }

  /** Resolves when nothing runs any more. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }
}

/** Rejects when the caller is gone or its time is over; never resolves. */
function left(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const leave = (): void =>
      reject(new Failure("VENDOR_TIMEOUT", "the call's time is over; what was sent runs on"));
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  });
}

function withProgress(error: unknown, progress: Progress): unknown {
  if (!(error instanceof Failure)) return error;
  const { reason, message, facts } = error;
  const isSettled = progress.outcome === "NOT_APPLIED" || progress.outcome === "UNKNOWN";
  const outcome = isSettled ? (facts.outcome ?? progress.outcome) : progress.outcome;
  const { providerId } = progress;
  const own = { ...facts, outcome, ...(providerId === undefined ? {} : { providerId }) };
  return new Failure(reason, message, own, error.cause);
}
