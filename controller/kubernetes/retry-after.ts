/** No server may silence us for longer than this, whatever it says. */
export const retryAfterMsMax = 10 * 60_000;

/**
 * Reads a Retry-After header: whole seconds or an HTTP date, as milliseconds from `nowMs`.
 * Undefined where there is none or it cannot be read.
 */
export function retryAfterHeaderMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d+$/.test(text)) return bounded(Number(text) * 1000);
  const dateMs = Date.parse(text);
  return Number.isNaN(dateMs) ? undefined : bounded(dateMs - nowMs);
}

/** Reads metav1.Status details.retryAfterSeconds; 0 and absent say nothing. */
export function retryAfterSecondsMs(seconds: unknown): number | undefined {
  if (typeof seconds !== "number" || !(seconds > 0)) return undefined;
  return bounded(seconds * 1000);
}

function bounded(delayMs: number): number {
  return Math.min(Math.max(delayMs, 0), retryAfterMsMax);
}
