/** Rows of the table of errors that ElevenLabs' own answers and failures lead to. */
import { breaksCreate, breaksReads, refusesCreate, script } from "./error-row.ts";
import type { ErrorRow, WireError } from "./error-row.ts";

const notTrue = { Ready: "False EnsureFailed" };
const refused = { ...notTrue, Available: "Unknown EnsureFailed", Stalled: "True EnsureFailed" };
const failing = { ...notTrue, Reconciling: "True EnsureFailed", Stalled: "False NotStalled" };
const html = "<html>busy</html>";

function unavailable(reason: WireError["reason"], outcome?: WireError["outcome"]): WireError {
  return { code: "UNAVAILABLE", reason, ...(outcome === undefined ? {} : { outcome }) };
}

export const vendorErrorRows: readonly ErrorRow[] = [
  {
    says: "bad value",
    vendor: "422 with the place of the value",
    spec: { parameters: { language: "zzz" } },
    wire: {
      code: "INVALID_ARGUMENT",
      reason: "INVALID_FIELD",
      outcome: "NOT_APPLIED",
      details: ["fields"],
    },
    conditions: { Ready: "False InvalidSpec", Stalled: "True InvalidSpec" },
    message: /spec\.parameters\.language/,
    next: "slowly",
  },
  {
    says: "bad credential",
    vendor: "401 invalid_api_key",
    arrange: refusesCreate("invalid_api_key"),
    wire: { code: "UNAUTHENTICATED", reason: "BAD_CREDENTIAL", outcome: "NOT_APPLIED" },
    conditions: refused,
    message: /api\.elevenlabs\.io/,
    next: "slowly",
  },
  {
    says: "missing scope",
    vendor: "401 missing_permissions",
    arrange: refusesCreate("missing_permissions"),
    wire: { code: "PERMISSION_DENIED", reason: "MISSING_SCOPE", outcome: "NOT_APPLIED" },
    conditions: refused,
    next: "slowly",
  },
  {
    says: "missing scope",
    vendor: "403 only_for_creator+",
    arrange: refusesCreate("only_for_creator+"),
    wire: { code: "PERMISSION_DENIED", reason: "MISSING_SCOPE", outcome: "NOT_APPLIED" },
    conditions: refused,
    next: "slowly",
  },
  {
    says: "throttled",
    vendor: "429 too_many_concurrent_requests with Retry-After",
    arrange: refusesCreate("too_many_concurrent_requests", { "Retry-After": "60" }),
    wire: {
      code: "RESOURCE_EXHAUSTED",
      reason: "THROTTLED",
      outcome: "NOT_APPLIED",
      details: ["retryAfterMs", "quota"],
    },
    conditions: { ...notTrue, RateLimited: "True Throttled", Stalled: "False NotStalled" },
    next: "not before",
  },
  {
    says: "throttled, when it is ready",
    vendor: "429 without a hint",
    object: "ready",
    arrange: script({
      do: "fault",
      method: "GET",
      effect: { kind: "error", name: "too_many_concurrent_requests" },
    }),
    wire: {
      code: "RESOURCE_EXHAUSTED",
      reason: "THROTTLED",
      outcome: "NOT_APPLIED",
      details: ["retryAfterMs", "quota"],
    },
    conditions: { Ready: "True ProviderReady", RateLimited: "True Throttled" },
    next: "not before",
  },
  {
    says: "daily quota, credits gone",
    vendor: "401 quota_exceeded",
    arrange: refusesCreate("quota_exceeded"),
    wire: {
      code: "RESOURCE_EXHAUSTED",
      reason: "QUOTA_EXHAUSTED",
      outcome: "NOT_APPLIED",
      details: ["quota", "resetsAtMs"],
    },
    conditions: { ...notTrue, QuotaExceeded: "True Exhausted", Stalled: "False NotStalled" },
    next: "not before",
  },
  {
    says: "invoice overdue, account stopped",
    vendor: "402 payment_required",
    arrange: refusesCreate("payment_required"),
    wire: {
      code: "FAILED_PRECONDITION",
      reason: "BILLING_STOPPED",
      outcome: "NOT_APPLIED",
      details: ["preconditions"],
    },
    conditions: {
      Ready: "False BillingStopped",
      BillingOverdue: "True Stopped",
      Stalled: "True BillingStopped",
    },
    next: "slowly",
  },
  {
    says: "busy, wrong state, etag",
    vendor: "429 system_busy with Retry-After",
    arrange: refusesCreate("system_busy", { "Retry-After": "2" }),
    wire: { code: "ABORTED", reason: "BUSY", outcome: "NOT_APPLIED", details: ["retryAfterMs"] },
    conditions: failing,
    next: "back-off",
  },
  {
    says: "busy, wrong state, etag",
    vendor: "409",
    arrange: refusesCreate("conflict"),
    wire: { code: "ABORTED", reason: "BUSY", outcome: "NOT_APPLIED", details: ["retryAfterMs"] },
    conditions: failing,
    next: "back-off",
  },
  {
    says: "5xx",
    vendor: "500 before it commits",
    arrange: refusesCreate("internal_error"),
    wire: unavailable("VENDOR_ERROR", "UNKNOWN"),
    conditions: failing,
    next: "back-off",
  },
  {
    says: "5xx",
    vendor: "502 in HTML after it has committed",
    arrange: breaksCreate({ kind: "answer", status: 502, text: html }, { isAfter: true }),
    wire: unavailable("VENDOR_ERROR", "UNKNOWN"),
    conditions: failing,
    next: "back-off",
  },
  {
    says: "5xx, when it is ready",
    vendor: "500 to reads",
    object: "ready",
    arrange: script({
      do: "fault",
      method: "GET",
      effect: { kind: "error", name: "internal_error" },
    }),
    wire: unavailable("VENDOR_ERROR", "NOT_APPLIED"),
    conditions: { Ready: "Unknown EnsureFailed", Available: "Unknown EnsureFailed" },
    next: "back-off",
  },
  {
    says: "reset",
    vendor: "a reset of the create",
    arrange: breaksCreate({ kind: "reset" }),
    wire: unavailable("VENDOR_UNREACHABLE", "UNKNOWN"),
    conditions: failing,
    next: "back-off",
  },
  {
    says: "time-out",
    vendor: "no answer to a read",
    arrange: breaksReads({ kind: "hang" }),
    wire: { code: "DEADLINE_EXCEEDED", reason: "VENDOR_TIMEOUT" },
    conditions: failing,
    message: /no complete answer within 1000 ms/,
    next: "back-off",
  },
  {
    says: "unreadable body",
    vendor: "a create answered with 200 in HTML",
    arrange: breaksCreate({ kind: "answer", status: 200, text: html }),
    wire: unavailable("VENDOR_UNREADABLE", "UNKNOWN"),
    conditions: failing,
    next: "back-off",
  },
  {
    says: "unreadable body",
    vendor: "half a create's answer",
    arrange: breaksCreate({ kind: "cut" }),
    wire: unavailable("VENDOR_UNREADABLE", "UNKNOWN"),
    conditions: failing,
    next: "back-off",
  },
  {
    says: "unreadable body",
    vendor: "a proxy's 404, which attests nothing",
    arrange: breaksReads({ kind: "answer", status: 404, text: html }),
    wire: unavailable("VENDOR_UNREADABLE"),
    conditions: failing,
    next: "back-off",
  },
];
