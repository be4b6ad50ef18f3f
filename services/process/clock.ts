/** A timer that was set and can be taken back; cancelling twice, or after it fired, does nothing. */
export interface Timer {
  cancel(): void;
}

/** Time as it is passed in, so that tests own it. Durations are milliseconds. */
export interface Clock {
  /** Wall time in milliseconds since the epoch; may jump when the machine's clock is set. */
  now(): number;
  /** Milliseconds since an arbitrary start; never goes back. Measure durations with this one. */
  monotonicMs(): number;
  /** Calls `fn` once after `delayMs`. A pending timer keeps the process alive. */
  setTimer(delayMs: number, fn: () => void): Timer;
  /** Resolves after `delayMs`; rejects with the signal's reason when `signal` aborts before that. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** setTimeout silently turns a longer delay into 1 ms; about 24.8 days. */
export const delayMsMax = 2 ** 31 - 1;

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, fn) => {
    const handle = setTimeout(fn, clampDelayMs(delayMs));
    return { cancel: () => clearTimeout(handle) };
  },
  sleep: (delayMs, signal) => sleepOn(systemClock, delayMs, signal),
};

/** The one implementation of sleep, shared with the fake clock. */
export function sleepOn(
  clock: Pick<Clock, "setTimer">,
  delayMs: number,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.setTimer(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

function clampDelayMs(delayMs: number): number {
  return Math.min(Math.max(delayMs, 0), delayMsMax);
}
