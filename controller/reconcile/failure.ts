/**
 * The last column of the contract's error table: what the controller makes of a failed call. Pure;
 * the table test walks every reason.
 */
import type { ProviderError, Reason } from "../../services/contract/provider-error.ts";

/** Reasons of condition Ready that a failure can lead to. */
export type FailureReason =
  | "EnsureFailed"
  | "InvalidSpec"
  | "AdapterUnreachable"
  | "AdapterIncompatible"
  | "CircuitOpen"
  | "OwnedByAnother"
  | "BillingStopped"
  | "DeleteBlocked";

/** When the next attempt is made. */
export type Retry =
  /** Exponential back-off of the queue, not before a hint. */
  | "back-off"
  /** Not until spec or class changes; a slow re-probe all the same. */
  | "terminal"
  /** Only after the stated time (or back-off where none is stated). */
  | "hold";

export interface Failure {
  readonly readyReason: FailureReason;
  /**
   * What it does to a Ready that was True: "refused" makes it False, "unknown" Unknown, "keep"
   * leaves it, because the failure says nothing about the instance.
   */
  readonly readyEffect: "refused" | "unknown" | "keep";
  readonly retry: Retry;
  /** True: a person has to act; condition Stalled. */
  readonly needsPerson: boolean;
  /** Also sets this condition True. */
  readonly condition?: "RateLimited" | "QuotaExceeded" | "BillingOverdue" | "ReplaceRequired";
  readonly message: string;
  readonly reason: Reason | undefined;
  /** No attempt before this, epoch ms. */
  readonly retryAtMs?: number;
  /** When a quota is filled again, epoch ms. */
  readonly resetsAtMs?: number;
}

/** A hint to wait beyond this is not believed: an hour. */
export const holdMsMax = 3_600_000;

type Row = Pick<Failure, "readyReason" | "readyEffect" | "retry" | "needsPerson" | "condition">;

const row = (
  readyReason: FailureReason,
  readyEffect: Failure["readyEffect"],
  retry: Retry,
  extra: Partial<Row> = {},
): Row => ({ readyReason, readyEffect, retry, needsPerson: retry === "terminal", ...extra });

const table: Readonly<Record<Reason, Row>> = {
  INVALID_FIELD: row("InvalidSpec", "refused", "terminal"),
  UNKNOWN_ACCOUNT: row("InvalidSpec", "refused", "terminal"),
  ENDPOINT_NOT_ALLOWED: row("InvalidSpec", "refused", "terminal"),
  NOT_FOUND: row("EnsureFailed", "unknown", "back-off"),
  NOT_OURS: row("OwnedByAnother", "refused", "terminal"),
  OWNED_BY_ANOTHER: row("OwnedByAnother", "refused", "terminal"),
  WRONG_REALM: row("EnsureFailed", "refused", "terminal"), // of a removal: DeleteBlocked
  IMMUTABLE_FIELD: row("InvalidSpec", "keep", "terminal", { condition: "ReplaceRequired" }),
  UNSUPPORTED: row("AdapterIncompatible", "refused", "terminal"),
  BAD_CREDENTIAL: row("EnsureFailed", "refused", "terminal"),
  MISSING_SCOPE: row("EnsureFailed", "refused", "terminal"),
  THROTTLED: row("EnsureFailed", "keep", "hold", { condition: "RateLimited" }),
  QUOTA_EXHAUSTED: row("EnsureFailed", "keep", "hold", { condition: "QuotaExceeded" }),
  BILLING_STOPPED: row("BillingStopped", "refused", "terminal", { condition: "BillingOverdue" }),
  BUSY: row("EnsureFailed", "keep", "back-off"),
  IN_DOUBT: row("EnsureFailed", "keep", "back-off"),
  TOO_LATE: row("EnsureFailed", "keep", "back-off"),
  VENDOR_UNREACHABLE: row("EnsureFailed", "unknown", "back-off"),
  VENDOR_TIMEOUT: row("EnsureFailed", "unknown", "back-off"),
  VENDOR_ERROR: row("EnsureFailed", "unknown", "back-off"),
  VENDOR_UNREADABLE: row("EnsureFailed", "unknown", "back-off"),
  CIRCUIT_OPEN: row("CircuitOpen", "unknown", "hold"),
  CONTRACT_VERSION: row("AdapterIncompatible", "unknown", "terminal"),
  SHUTTING_DOWN: row("AdapterUnreachable", "keep", "back-off"),
};

/** An error without our details came from a library or a proxy: its code is all there is. */
function foreignRow(error: ProviderError): Row {
  switch (error.code) {
    case "UNIMPLEMENTED":
      return row("AdapterIncompatible", "unknown", "terminal");
    case "UNAUTHENTICATED":
    case "PERMISSION_DENIED":
      return row("AdapterUnreachable", "unknown", "terminal");
    default:
      return row("AdapterUnreachable", "unknown", "back-off");
  }
}

/** `doing` begins the message: 'ensure "media/a" at https://tts.example.com'. */
export function failureOf(error: ProviderError, doing: string, nowMs: number): Failure {
  const { facts, reason } = error;
  const fields = (facts.fields ?? []).map(
    (violation) => `${fieldPath(violation.path)}: ${violation.description}`,
  );
  const what = fields.length > 0 ? fields.join("; ") : error.message;
  return {
    ...(reason === undefined ? foreignRow(error) : table[reason]),
    // Our own adapters' words say already what could not be done.
    message: what.startsWith("cannot ") ? what : `cannot ${doing}: ${what}`,
    reason,
    ...(facts.retryAfterMs === undefined ? {} : { retryAtMs: nowMs + facts.retryAfterMs }),
    ...(facts.resetsAtMs === undefined ? {} : { resetsAtMs: facts.resetsAtMs }),
  };
}

/** Message of the RateLimited condition that such a failure leads to. */
export function rateLimitedMessage({ message, retryAtMs }: Failure): string {
  return retryAtMs === undefined ? message : `${message}${untilHint}`;
}

/** The failure that led to a RateLimited condition with this message. */
export function rateLimitedFailure(conditionMessage: string, retryAtMs: number): Failure {
  const message = conditionMessage.endsWith(untilHint)
    ? conditionMessage.slice(0, -untilHint.length)
    : conditionMessage;
  return { ...table.THROTTLED, message, reason: "THROTTLED", retryAtMs };
}

const untilHint = "; no attempt before status.rateLimitedUntil";

function fieldPath(path: string): string {
  return path.startsWith("spec.") ? path : `spec.${path}`;
}

/**
 * Whether a failed mutation leaves doubt. Only the adapter's own statement that nothing was applied
 * takes it away: an error without our details says UNKNOWN.
 */
export function leavesDoubt(error: ProviderError): boolean {
  return error.outcome !== "NOT_APPLIED";
}
