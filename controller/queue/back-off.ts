/** Exponential back-off with jitter; all durations are milliseconds. */
export interface BackOff {
  readonly minMs: number;
  /** No delay is longer, jitter included. */
  readonly maxMs: number;
}

/**
 * The delay after the nth failure in a row (1 for the first): doubles each time, then drawn between
 * half of that and all of it, so that what failed together does not come back together.
 * @param random in [0, 1)
 */
export function backOffMs(backOff: BackOff, failures: number, random: () => number): number {
  const doublings = Math.min(Math.max(failures - 1, 0), doublingsMax);
  const fullMs = Math.min(backOff.minMs * 2 ** doublings, backOff.maxMs);
  return fullMs * (0.5 + random() / 2);
}

/** Keeps the power finite whatever the count. */
const doublingsMax = 40;
