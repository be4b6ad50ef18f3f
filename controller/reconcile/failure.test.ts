import assert from "node:assert/strict";
import { test } from "node:test";

import { codeOfReason, ProviderError, reasons } from "../../services/contract/provider-error.ts";
import type { Code, Reason } from "../../services/contract/provider-error.ts";
import { failureOf, leavesDoubt } from "./failure.ts";

const nowMs = Date.UTC(2026, 0, 1);

/** "reason of Ready, effect on a Ready that was True, retry, condition" */
type Made = string;

/** The contract's table of errors, last column; the code is the wire's. */
const table: Readonly<Record<Reason, readonly [code: Code, made: Made]>> = {
  INVALID_FIELD: ["INVALID_ARGUMENT", "InvalidSpec, refused, terminal, -"],
  UNKNOWN_ACCOUNT: ["INVALID_ARGUMENT", "InvalidSpec, refused, terminal, -"],
  ENDPOINT_NOT_ALLOWED: ["INVALID_ARGUMENT", "InvalidSpec, refused, terminal, -"],
  NOT_FOUND: ["NOT_FOUND", "EnsureFailed, unknown, back-off, -"],
  NOT_OURS: ["NOT_FOUND", "OwnedByAnother, refused, terminal, -"],
  OWNED_BY_ANOTHER: ["ALREADY_EXISTS", "OwnedByAnother, refused, terminal, -"],
  WRONG_REALM: ["FAILED_PRECONDITION", "EnsureFailed, refused, terminal, -"],
  IMMUTABLE_FIELD: ["FAILED_PRECONDITION", "InvalidSpec, keep, terminal, ReplaceRequired"],
  UNSUPPORTED: ["UNIMPLEMENTED", "AdapterIncompatible, refused, terminal, -"],
  BAD_CREDENTIAL: ["UNAUTHENTICATED", "EnsureFailed, refused, terminal, -"],
  MISSING_SCOPE: ["PERMISSION_DENIED", "EnsureFailed, refused, terminal, -"],
  THROTTLED: ["RESOURCE_EXHAUSTED", "EnsureFailed, keep, hold, RateLimited"],
  QUOTA_EXHAUSTED: ["RESOURCE_EXHAUSTED", "EnsureFailed, keep, hold, QuotaExceeded"],
  BILLING_STOPPED: ["FAILED_PRECONDITION", "BillingStopped, refused, terminal, BillingOverdue"],
  BUSY: ["ABORTED", "EnsureFailed, keep, back-off, -"],
  IN_DOUBT: ["ABORTED", "EnsureFailed, keep, back-off, -"],
  TOO_LATE: ["ABORTED", "EnsureFailed, keep, back-off, -"],
  VENDOR_UNREACHABLE: ["UNAVAILABLE", "EnsureFailed, unknown, back-off, -"],
  VENDOR_TIMEOUT: ["DEADLINE_EXCEEDED", "EnsureFailed, unknown, back-off, -"],
  VENDOR_ERROR: ["UNAVAILABLE", "EnsureFailed, unknown, back-off, -"],
  VENDOR_UNREADABLE: ["UNAVAILABLE", "EnsureFailed, unknown, back-off, -"],
  CIRCUIT_OPEN: ["UNAVAILABLE", "CircuitOpen, unknown, hold, -"],
  CONTRACT_VERSION: ["UNIMPLEMENTED", "AdapterIncompatible, unknown, terminal, -"],
  SHUTTING_DOWN: ["UNAVAILABLE", "AdapterUnreachable, keep, back-off, -"],
};

function made(error: ProviderError): Made {
  const failure = failureOf(error, "ensure it", nowMs);
  assert.equal(failure.needsPerson, failure.retry === "terminal");
  const { readyReason, readyEffect, retry, condition = "-" } = failure;
  return `${readyReason}, ${readyEffect}, ${retry}, ${condition}`;
}

for (const reason of reasons) {
  const [code, expected] = table[reason];
  test(`${code} ${reason} becomes ${expected}`, () => {
    assert.equal(codeOfReason[reason], code);
    assert.equal(made(new ProviderError(reason, "no")), expected);
  });
}

test("an error without our details is the adapter's absence, or its age", () => {
  const byCode: readonly (readonly [Code, Made])[] = [
    ["UNIMPLEMENTED", "AdapterIncompatible, unknown, terminal, -"],
    ["UNAUTHENTICATED", "AdapterUnreachable, unknown, terminal, -"],
    ["PERMISSION_DENIED", "AdapterUnreachable, unknown, terminal, -"],
    ["UNAVAILABLE", "AdapterUnreachable, unknown, back-off, -"],
    ["DEADLINE_EXCEEDED", "AdapterUnreachable, unknown, back-off, -"],
    ["CANCELLED", "AdapterUnreachable, unknown, back-off, -"],
    ["NOT_FOUND", "AdapterUnreachable, unknown, back-off, -"],
    ["INTERNAL", "AdapterUnreachable, unknown, back-off, -"],
  ];
  for (const [code, expected] of byCode) {
    assert.equal(made(ProviderError.foreign(code, "no")), expected, code);
  }
});

test("only the adapter's word that nothing was applied takes doubt away", () => {
  for (const [outcome, expected] of [
    ["NOT_APPLIED", false],
    ["APPLIED", true],
    ["PARTIAL", true],
    ["UNKNOWN", true],
  ] as const) {
    assert.equal(leavesDoubt(new ProviderError("BUSY", "no", { outcome })), expected, outcome);
  }
  assert.equal(leavesDoubt(new ProviderError("BUSY", "no")), true);
  assert.equal(leavesDoubt(ProviderError.foreign("UNAVAILABLE", "no")), true);
});

test("refused fields are named as they stand in spec", () => {
  const fields = [
    { path: "parameters.voice", description: "is no voice" },
    { path: "spec.region", description: "is unknown" },
  ];
  const { message } = failureOf(
    new ProviderError("INVALID_FIELD", "2 fields", { fields }),
    'ensure "media/a" at https://a',
    nowMs,
  );
  assert.equal(
    message,
    'cannot ensure "media/a" at https://a: spec.parameters.voice: is no voice; spec.region: is unknown',
  );
});

test("a wait becomes an instant, so that telling it again later tells the same", () => {
  const error = new ProviderError("THROTTLED", "no", { retryAfterMs: 30_000 });
  assert.equal(failureOf(error, "ask", nowMs).retryAtMs, nowMs + 30_000);
  assert.equal(failureOf(new ProviderError("THROTTLED", "no"), "ask", nowMs).retryAtMs, undefined);
  const quota = new ProviderError("QUOTA_EXHAUSTED", "no", { resetsAtMs: 7 });
  assert.equal(failureOf(quota, "ask", nowMs).resetsAtMs, 7);
});
