/** When to sweep again, and what a failed sweep says of the whole account. Pure. */
import { ProviderError } from "../../contract/provider-error.ts";
import { isOwnBudget } from "../../vendor-http/call-budget.ts";

/** What the vendor states of the account by refusing to list. */
export interface AccountFacts {
  /** It refuses calls; `untilMs` (epoch) where it says until when. */
  readonly rateLimited?: { readonly untilMs: number | undefined };
  readonly billing?: "OVERDUE" | "EXHAUSTED";
}

export interface PaceOptions {
  readonly intervalMs: number;
  /** Longest wait of our own making; a vendor's hint may be longer. */
  readonly intervalMsMax: number;
}

/** Sweeps begin 10 % early or late, so that many places do not march in step. */
const jitterShare = 0.1;

/** After a sweep that succeeded. @param random 0 to 1 */
export function nextSweepMs(options: PaceOptions, tookMs: number, random: number): number {
  const periodMs = options.intervalMs * (1 - jitterShare + 2 * jitterShare * random);
  // However slow the vendor is, it gets a pause that is half as long as the work.
  return Math.max(periodMs - tookMs, tookMs / 2);
}

/** After one that failed. @param failures in a row, this one among them */
export function retrySweepMs(
  options: PaceOptions,
  error: ProviderError | undefined,
  failures: number,
): number {
  const backOffMs = Math.min(options.intervalMs * 2 ** (failures - 1), options.intervalMsMax);
  return Math.max(error?.facts.retryAfterMs ?? 0, backOffMs);
}

/** `undefined` members: the failure says nothing of that. */
export function factsOf(error: ProviderError | undefined, nowMs: number): AccountFacts {
  if (error === undefined) return {};
  switch (error.reason) {
    case "THROTTLED": {
      // Our own allowance is no statement of the vendor.
      if (isOwnBudget(error)) return {};
      const { retryAfterMs } = error.facts;
      const untilMs = retryAfterMs === undefined ? undefined : nowMs + retryAfterMs;
      return { rateLimited: { untilMs } };
    }
    case "QUOTA_EXHAUSTED":
      return { billing: "EXHAUSTED" };
    case "BILLING_STOPPED":
      return { billing: "OVERDUE" };
    default:
      return {};
  }
}

/** Plain words for TargetKnowledge.message. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return "the last look failed";
  const reason = error instanceof ProviderError ? `${error.reason ?? error.code}: ` : "";
  return `the last look failed: ${reason}${error.message}`;
}
