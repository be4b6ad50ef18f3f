/**
 * When a vendor says "not now", it says until when in one of five dialects: milliseconds, seconds,
 * a date, prose, or not at all. All become one duration with a ceiling.
 */

/** No hint, however long, makes anyone wait longer than this; the vendor is asked again then. */
export const retryAfterMsMax = 60 * 60 * 1000;

/** Only so much of a body is searched for prose. */
const proseCharactersMax = 2048;

const millisecondHeaders = [
  "retry-after-ms",
  "x-ms-retry-after-ms",
  "x-retry-after-ms",
  "x-acs-retry-after",
] as const;

/**
 * @param headers names in lower case
 * @param text the body, searched only when no header helps
 * @param nowMs wall time, for hints that are dates
 * @returns milliseconds within 0 and the ceiling; `undefined` when there is no hint that makes sense
 */
export function retryAfterMs(
  headers: Readonly<Record<string, string>>,
  text: string,
  nowMs: number,
): number | undefined {
  const hint =
    fromMilliseconds(headers) ??
    fromRetryAfter(headers["retry-after"], nowMs) ??
    fromEpochSeconds(headers["x-ratelimit-reset"], nowMs) ??
    fromProse(text);
  return hint === undefined ? undefined : Math.min(Math.max(Math.ceil(hint), 0), retryAfterMsMax);
}

function fromMilliseconds(headers: Readonly<Record<string, string>>): number | undefined {
  for (const name of millisecondHeaders) {
    const value = headers[name]?.trim();
    if (value !== undefined && /^\d{1,12}(\.\d+)?$/.test(value)) return Number(value);
  }
  return undefined;
}

function fromRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  const text = value?.trim() ?? "";
  if (/^\d{1,12}(\.\d+)?$/.test(text)) return Number(text) * 1000;
  // RFC 9110 dates only: Date.parse also takes "-5" and other things that are no date.
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return undefined;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : atMs - nowMs;
}

/** Epoch seconds only; small numbers would be seconds from now with some vendors. */
function fromEpochSeconds(value: string | undefined, nowMs: number): number | undefined {
  const text = value?.trim() ?? "";
  return /^\d{10}(\.\d+)?$/.test(text) ? Number(text) * 1000 - nowMs : undefined;
}

/** "try again in 1m30s", "please wait 45 minutes", "请 20 秒后重试". */
const prose =
  /(?:(?:again|retry|retrying)\s+(?:in|after)|wait(?:\s+for)?|请(?:等待|在)?)\s*((?:\d{1,9}(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|minutes?|mins?|hours?|[smh]|毫秒|秒|分钟|小时)(?![a-z])\s*)+)/i;
const quantity = /(\d+(?:\.\d+)?)\s*([a-z]+|毫秒|秒|分钟|小时)/gi;

function fromProse(text: string): number | undefined {
  const amount = prose.exec(text.slice(0, proseCharactersMax))?.[1];
  if (amount === undefined) return undefined;
  let sumMs = 0;
  for (const [, count = "", unit = ""] of amount.matchAll(quantity)) {
    sumMs += Number(count) * unitMs(unit.toLowerCase());
  }
  return sumMs;
}

function unitMs(unit: string): number {
  if (unit === "ms" || unit.startsWith("milli") || unit === "毫秒") return 1;
  if (unit.startsWith("s") || unit === "秒") return 1000;
  return unit.startsWith("h") || unit === "小时" ? 3_600_000 : 60_000;
}
