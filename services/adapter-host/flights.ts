/**
 * One change in flight per key, and what became of the last create. A mutation that was sent goes on
 * after its caller has left: it keeps its key, so that nobody acts on the same instance meanwhile,
 * and its result is remembered, so that the next caller does not create a second one.
 */
import { ProviderError } from "../contract/provider-error.ts";
import type { Clock } from "../process/clock.ts";

/** What is known of a create whose instance may not be visible yet. */
export interface Aftermath {
  /** The id that the vendor named; absent: the create's answer was lost. */
  readonly id?: string;
  /** True once a read by id has shown it: should that id be absent later, it is gone. */
  readonly isSeen: boolean;
  /** Until when (monotonic ms) the vendor may show nothing although the instance exists or will. */
  readonly untilMs: number;
}

export interface FlightOptions {
  /** RetryInfo of the call that finds its key taken. */
  readonly busyRetryMs: number;
  readonly aftermathsMax: number;
}

/** What one caller brings. */
export interface Caller {
  readonly signal: AbortSignal;
  /** True once something was sent that cannot be called back. */
  readonly isCommitted: () => boolean;
}

/** See the file comment. Keys are opaque texts. */
export class Flights {
  readonly #clock: Clock;
  readonly #options: FlightOptions;
  readonly #held = new Map<string, Promise<unknown>>();
  readonly #aftermaths = new Map<string, Aftermath>();

  constructor(clock: Clock, options: FlightOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  /**
   * Runs `work` as the only one on `key`; BUSY when the key is taken. Settles with the work, or, when
   * the caller leaves after something was sent, with VENDOR_TIMEOUT and outcome UNKNOWN while the work
   * goes on and the key stays taken.
   */
  async run<T>(key: string, caller: Caller, work: () => Promise<T>): Promise<T> {
    return leaveWith(caller, this.alone(key, work));
  }

  /** Runs `work` to its end as the only one on `key`; BUSY when the key is taken. */
  async alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.#held.has(key)) {
      throw new ProviderError("BUSY", "another call on this key is in flight", {
        outcome: "NOT_APPLIED",
        retryAfterMs: this.#options.busyRetryMs,
      });
    }
    const working = work();
    this.#held.set(key, working);
    try {
      return await working;
    } finally {
      this.#held.delete(key);
    }
  }

  /** Resolves when nothing is in flight, or when `signal` aborts. Calls may still begin. */
  async idle(signal: AbortSignal): Promise<void> {
    while (this.#held.size > 0 && !signal.aborted) {
      const left = aborted(signal);
      await Promise.race([Promise.allSettled(this.#held.values()), left.promise]);
      left.forget();
    }
  }

  /** How many keys are taken. */
  get heldCount(): number {
    return this.#held.size;
  }

  remember(key: string, aftermath: Aftermath): void {
    this.#aftermaths.delete(key);
    this.#aftermaths.set(key, aftermath);
    for (const [old, { untilMs }] of this.#aftermaths) {
      const isOver = untilMs <= this.#clock.monotonicMs();
      if (!isOver && this.#aftermaths.size <= this.#options.aftermathsMax) break;
      this.#aftermaths.delete(old);
    }
  }

  forget(key: string): void {
    this.#aftermaths.delete(key);
  }

  /** The id that a recent create brought; empty: none is remembered. */
  rememberedId(key: string): string {
    return this.#current(key)?.id ?? "";
  }

  /** For how many ms an instance may still come to be or to show; `undefined`: no doubt. */
  doubtMs(key: string): number | undefined {
    const aftermath = this.#current(key);
    if (aftermath === undefined || aftermath.isSeen) return undefined;
    return Math.ceil(aftermath.untilMs - this.#clock.monotonicMs());
  }

  #current(key: string): Aftermath | undefined {
    const aftermath = this.#aftermaths.get(key);
    const isOver = aftermath === undefined || aftermath.untilMs <= this.#clock.monotonicMs();
    return isOver ? undefined : aftermath;
  }
}

async function leaveWith<T>(caller: Caller, working: Promise<T>): Promise<T> {
  const left = aborted(caller.signal);
  try {
    const first = await Promise.race([working.then(() => "done" as const), left.promise]);
    // Nothing was sent: the work hears the same signal and ends by itself.
    if (first === "done" || !caller.isCommitted()) return await working;
  } finally {
    left.forget();
  }
  throw new ProviderError(
    "VENDOR_TIMEOUT",
    "the caller's deadline ended while the vendor was at it; the change goes on",
    { outcome: "UNKNOWN" },
  );
}

function aborted(signal: AbortSignal): {
  readonly promise: Promise<"left">;
  readonly forget: () => void;
} {
  let forget = (): void => undefined;
  const promise = new Promise<"left">((resolve) => {
    const leave = (): void => resolve("left");
    if (signal.aborted) leave();
    signal.addEventListener("abort", leave, { once: true });
    forget = () => signal.removeEventListener("abort", leave);
  });
  return { promise, forget: () => forget() };
}
