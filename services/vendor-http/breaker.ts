/**
 * Circuit breakers, one per (account, endpoint, read or write), so that a dead vendor is left alone
 * and one account's trouble is not another's.
 *
 * opossum keeps the window and the state, but never runs the call. Its errorFilter counts filtered
 * errors as successes (401s mixed with 500s keep a circuit closed, and a 401 closes a half-open
 * one), and its abortController is shared between calls. So: `admit` refuses while the circuit is
 * open, the call runs outside with a signal of its own, and only a verdict on the vendor is fired.
 */
import CircuitBreaker from "opossum";

import { ProviderError } from "../contract/provider-error.ts";
import type { Clock } from "../process/clock.ts";

/** What one call says about the vendor. "none": nothing (the caller's mistake, a bad credential). */
export type Verdict = "success" | "failure" | "none";

export type CircuitState = "closed" | "open" | "half-open";

export interface BreakerOptions {
  /** Length of the window in which failures are counted. */
  readonly windowMs: number;
  /** The circuit opens when more than this share of the window's verdicts are failures, ... */
  readonly failurePercentMax: number;
  /** ... and there are at least so many verdicts. */
  readonly verdictCountMin: number;
  /** How long it stays open before one call may try. */
  readonly openMs: number;
  /** What a caller is told to wait while another's call tries. */
  readonly probeRetryMs: number;
}

export const defaultBreakerOptions: BreakerOptions = {
  windowMs: 10_000,
  failurePercentMax: 50,
  verdictCountMin: 5,
  openMs: 5_000,
  probeRetryMs: 500,
};

/** Identifies one circuit; the endpoint without query. */
export interface CircuitName {
  readonly account: string;
  readonly endpoint: string;
  readonly kind: "read" | "write";
}

/** The right to make one call. Settle it exactly once, whatever happened. */
export interface Ticket {
  settle(verdict: Verdict): Promise<void>;
}

export interface BreakerContext {
  readonly clock: Clock;
  readonly options: BreakerOptions;
  readonly onStateChange: (name: CircuitName, state: CircuitState) => void;
}

const bucketCount = 10;

class VendorFailure extends Error {}

/** One circuit. */
export class Breaker {
  readonly #name: CircuitName;
  readonly #context: BreakerContext;
  readonly #circuit: CircuitBreaker<[isSuccess: boolean], void>;
  /** Counts state changes: a verdict from before one says nothing about the state after it. */
  #epoch = 0;
  #openedAtMs = 0;
  #isProbing = false;

  constructor(name: CircuitName, context: BreakerContext) {
    this.#name = name;
    this.#context = context;
    this.#circuit = openCircuit(context.options);
    this.#circuit.on("open", () => {
      this.#openedAtMs = context.clock.monotonicMs();
      this.#enter("open");
    });
    this.#circuit.on("halfOpen", () => this.#enter("half-open"));
    this.#circuit.on("close", () => this.#enter("closed"));
  }

  get state(): CircuitState {
    if (this.#circuit.opened) return "open";
    return this.#circuit.halfOpen ? "half-open" : "closed";
  }

  /** Throws CIRCUIT_OPEN (NOT_APPLIED, with retryAfterMs) while calls are refused. */
  admit(): Ticket {
    const { options, clock } = this.#context;
    if (this.state === "open") {
      const leftMs = this.#openedAtMs + options.openMs - clock.monotonicMs();
      throw this.#refusal(Math.max(Math.ceil(leftMs), 1));
    }
    const isProbe = this.state === "half-open";
    if (isProbe && this.#isProbing) throw this.#refusal(options.probeRetryMs);
    this.#isProbing = isProbe;
    return this.#ticket(this.#epoch);
  }

  /** Ends the timers; a call in flight may still settle. */
  shutdown(): void {
    this.#epoch += 1;
    this.#circuit.shutdown();
  }

  #ticket(epoch: number): Ticket {
    let isSettled = false;
    return {
      settle: async (verdict) => {
        if (isSettled || epoch !== this.#epoch) return;
        isSettled = true;
        // The state changes some ticks after the verdict; the next probe waits for that.
        if (verdict !== "none")
          await this.#circuit.fire(verdict === "success").catch(ignoreVerdict);
        if (epoch === this.#epoch) this.#isProbing = false;
      },
    };
  }

  #enter(state: CircuitState): void {
    this.#epoch += 1;
    this.#isProbing = false;
    this.#context.onStateChange(this.#name, state);
  }

  #refusal(retryAfterMs: number): ProviderError {
    const { account, endpoint, kind } = this.#name;
    return new ProviderError(
      "CIRCUIT_OPEN",
      `${kind}s at ${endpoint} with account "${account}" are held back after repeated failures`,
      { outcome: "NOT_APPLIED", retryAfterMs },
    );
  }
}

/** All circuits of a process; the least recently used ones go beyond the limit. */
export class Breakers {
  readonly #context: BreakerContext;
  readonly #breakers = new Map<string, Breaker>();
  readonly #breakersMax: number;

  constructor(context: BreakerContext, breakersMax = 1000) {
    this.#context = context;
    this.#breakersMax = breakersMax;
  }

  get(name: CircuitName): Breaker {
    const key = JSON.stringify([name.account, name.endpoint, name.kind]);
    const known = this.#breakers.get(key);
    const breaker = known ?? new Breaker(name, this.#context);
    // So that its state is on record before it first changes.
    if (known === undefined) this.#context.onStateChange(name, "closed");
    this.#breakers.delete(key);
    this.#breakers.set(key, breaker);
    const [eldest] = this.#breakers;
    if (this.#breakers.size > this.#breakersMax && eldest !== undefined) {
      this.#breakers.delete(eldest[0]);
      eldest[1].shutdown();
    }
    return breaker;
  }

  shutdown(): void {
    for (const breaker of this.#breakers.values()) breaker.shutdown();
    this.#breakers.clear();
  }
}

/** Every option that matters is spelled out; those left out belong to parts that are off. */
function openCircuit(options: BreakerOptions): CircuitBreaker<[isSuccess: boolean], void> {
  return new CircuitBreaker(takeVerdict, {
    timeout: false,
    resetTimeout: options.openMs,
    errorThresholdPercentage: options.failurePercentMax,
    volumeThreshold: options.verdictCountMin,
    rollingCountTimeout: options.windowMs,
    rollingCountBuckets: bucketCount,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
    allowWarmUp: false,
    capacity: Number.MAX_SAFE_INTEGER,
    cache: false,
    errorFilter: () => false,
    enabled: true,
    name: "vendor",
  });
}

function takeVerdict(isSuccess: boolean): Promise<void> {
  return isSuccess ? Promise.resolve() : Promise.reject(new VendorFailure());
}

/** opossum hands the verdict back as a rejection; whoever made the call has the real error. */
function ignoreVerdict(error: unknown): void {
  const isOwn = error instanceof VendorFailure || CircuitBreaker.isOurError(asError(error));
  if (!isOwn) throw error;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error("not an error", { cause: error });
}
