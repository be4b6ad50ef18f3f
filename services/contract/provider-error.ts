/**
 * The one error that crosses ProviderAPI. Its reason is from the contract's closed list, its code
 * follows from the reason, and for a mutation it says what happened at the vendor.
 *
 * An error that came without our details (a proxy, a library, a dead connection) has no reason:
 * for a mutation it means that the outcome is unknown.
 */

/** Reasons of `ErrorReason` in errors.proto, without prefix. Closed. */
export const reasons = [
  "INVALID_FIELD",
  "UNKNOWN_ACCOUNT",
  "ENDPOINT_NOT_ALLOWED",
  "NOT_FOUND",
  "NOT_OURS",
  "OWNED_BY_ANOTHER",
  "WRONG_REALM",
  "IMMUTABLE_FIELD",
  "UNSUPPORTED",
  "BAD_CREDENTIAL",
  "MISSING_SCOPE",
  "THROTTLED",
  "QUOTA_EXHAUSTED",
  "BILLING_STOPPED",
  "BUSY",
  "IN_DOUBT",
  "TOO_LATE",
  "VENDOR_UNREACHABLE",
  "VENDOR_TIMEOUT",
  "VENDOR_ERROR",
  "VENDOR_UNREADABLE",
  "CIRCUIT_OPEN",
  "CONTRACT_VERSION",
  "SHUTTING_DOWN",
] as const;
export type Reason = (typeof reasons)[number];

/** gRPC status codes by name; the numbers stay behind the gRPC door. */
export type Code =
  | "CANCELLED"
  | "UNKNOWN"
  | "INVALID_ARGUMENT"
  | "DEADLINE_EXCEEDED"
  | "NOT_FOUND"
  | "ALREADY_EXISTS"
  | "PERMISSION_DENIED"
  | "RESOURCE_EXHAUSTED"
  | "FAILED_PRECONDITION"
  | "ABORTED"
  | "OUT_OF_RANGE"
  | "UNIMPLEMENTED"
  | "INTERNAL"
  | "UNAVAILABLE"
  | "DATA_LOSS"
  | "UNAUTHENTICATED";

/** The code that each reason travels under: contract, closed table of errors. */
export const codeOfReason: Readonly<Record<Reason, Code>> = {
  INVALID_FIELD: "INVALID_ARGUMENT",
  UNKNOWN_ACCOUNT: "INVALID_ARGUMENT",
  ENDPOINT_NOT_ALLOWED: "INVALID_ARGUMENT",
  NOT_FOUND: "NOT_FOUND",
  NOT_OURS: "NOT_FOUND",
  OWNED_BY_ANOTHER: "ALREADY_EXISTS",
  WRONG_REALM: "FAILED_PRECONDITION",
  IMMUTABLE_FIELD: "FAILED_PRECONDITION",
  UNSUPPORTED: "UNIMPLEMENTED",
  BAD_CREDENTIAL: "UNAUTHENTICATED",
  MISSING_SCOPE: "PERMISSION_DENIED",
  THROTTLED: "RESOURCE_EXHAUSTED",
  QUOTA_EXHAUSTED: "RESOURCE_EXHAUSTED",
  BILLING_STOPPED: "FAILED_PRECONDITION",
  BUSY: "ABORTED",
  IN_DOUBT: "ABORTED",
  TOO_LATE: "ABORTED",
  VENDOR_UNREACHABLE: "UNAVAILABLE",
  VENDOR_TIMEOUT: "DEADLINE_EXCEEDED",
  VENDOR_ERROR: "UNAVAILABLE",
  VENDOR_UNREADABLE: "UNAVAILABLE",
  CIRCUIT_OPEN: "UNAVAILABLE",
  CONTRACT_VERSION: "UNIMPLEMENTED",
  SHUTTING_DOWN: "UNAVAILABLE",
};

/** What a failed mutation did at the vendor: `Outcome` in errors.proto, without prefix. */
export type MutationEffect = "NOT_APPLIED" | "APPLIED" | "PARTIAL" | "UNKNOWN";

/** One refused field; `path` is within the Kubernetes spec: "parameters.maxParticipants". */
export interface FieldViolation {
  readonly path: string;
  readonly description: string;
}

/** One failed precondition: `PreconditionType` without prefix, its subject, and words. */
export interface PreconditionViolation {
  readonly type: "BILLING" | "IMMUTABLE" | "REALM" | "STATE";
  readonly subject: string;
  readonly description: string;
}

/** All that an error can say besides its reason and message. Times are epoch ms, durations ms. */
export interface ProviderErrorFacts {
  /** Only where the reason travels under two codes (UNSUPPORTED as FAILED_PRECONDITION). */
  readonly code?: Code;
  /** On every failed mutation. */
  readonly outcome?: MutationEffect;
  /** The id the vendor named before things went wrong. */
  readonly providerId?: string;
  readonly retryAfterMs?: number;
  readonly resetsAtMs?: number;
  /** Which quota is used up, in the vendor's words. */
  readonly quota?: string;
  readonly fields?: readonly FieldViolation[];
  readonly preconditions?: readonly PreconditionViolation[];
  /** Who owns the instance instead of us: the cluster as stamped. */
  readonly owner?: string;
  /** The account and region the statement holds for. */
  readonly realm?: string;
  /** What is missing or not found: an instance key, a capability. */
  readonly resource?: string;
  readonly cause?: unknown;
}

/** See the file comment. `message` is for people: what failed, where, for which input; no secrets. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  readonly reason: Reason | undefined;
  readonly code: Code;
  readonly facts: ProviderErrorFacts;

  constructor(reason: Reason, message: string, facts: ProviderErrorFacts = {}) {
    super(message, facts.cause === undefined ? {} : { cause: facts.cause });
    this.reason = reason;
    this.code = facts.code ?? codeOfReason[reason];
    this.facts = facts;
  }

  /**
   * An error without a reason of ours: a library's, a proxy's, or a newer peer's. Only its code is
   * known, and what `facts` tells (an outcome that came beside an unknown reason, or that we know
   * ourselves because nothing was sent).
   */
  static foreign(
    code: Code,
    message: string,
    cause?: unknown,
    facts: ProviderErrorFacts = {},
  ): ProviderError {
    return new ForeignError(code, message, { ...facts, ...(cause === undefined ? {} : { cause }) });
  }

  /** What a mutation that failed like this may have done; without a statement: unknown. */
  get outcome(): MutationEffect {
    return this.facts.outcome ?? "UNKNOWN";
  }

  /** The same error, saying what it did to the vendor. */
  withOutcome(outcome: MutationEffect, providerId?: string): ProviderError {
    const facts = {
      ...this.facts,
      outcome,
      ...(providerId === undefined ? {} : { providerId }),
    };
    return this.reason === undefined
      ? new ForeignError(this.code, this.message, facts)
      : new ProviderError(this.reason, this.message, facts);
  }
}

class ForeignError extends ProviderError {
  override readonly reason: Reason | undefined;

  constructor(code: Code, message: string, facts: ProviderErrorFacts) {
    super("VENDOR_ERROR", message, { ...facts, code });
    this.reason = undefined;
  }
}
