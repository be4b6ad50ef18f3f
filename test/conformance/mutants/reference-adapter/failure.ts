/** Errors of the adapter, and how they go out: google.rpc.Status with the contract's details. */
import { create, toBinary } from "@bufbuild/protobuf";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { anyPack, DurationSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Any } from "@bufbuild/protobuf/wkt";
import {
  MutationOutcomeSchema,
  Outcome,
  QuotaResetSchema,
} from "../../../../proto/gen/dhp/provider/v1/errors_pb.ts";
import { Code } from "../../../../proto/gen/google/rpc/code_pb.ts";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from "../../../../proto/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../../proto/gen/google/rpc/status_pb.ts";
import type { Mutations } from "./mutations.ts";

/** Each reason with its code. */
const codes = {
  INVALID_FIELD: Code.INVALID_ARGUMENT,
  UNKNOWN_ACCOUNT: Code.INVALID_ARGUMENT,
  ENDPOINT_NOT_ALLOWED: Code.INVALID_ARGUMENT,
  NOT_FOUND: Code.NOT_FOUND,
  NOT_OURS: Code.NOT_FOUND,
  OWNED_BY_ANOTHER: Code.ALREADY_EXISTS,
  WRONG_REALM: Code.FAILED_PRECONDITION,
  IMMUTABLE_FIELD: Code.FAILED_PRECONDITION,
  UNSUPPORTED: Code.UNIMPLEMENTED,
  BAD_CREDENTIAL: Code.UNAUTHENTICATED,
  MISSING_SCOPE: Code.PERMISSION_DENIED,
  THROTTLED: Code.RESOURCE_EXHAUSTED,
  QUOTA_EXHAUSTED: Code.RESOURCE_EXHAUSTED,
  BILLING_STOPPED: Code.FAILED_PRECONDITION,
  BUSY: Code.ABORTED,
  IN_DOUBT: Code.ABORTED,
  TOO_LATE: Code.ABORTED,
  VENDOR_UNREACHABLE: Code.UNAVAILABLE,
  VENDOR_TIMEOUT: Code.DEADLINE_EXCEEDED,
  VENDOR_ERROR: Code.UNAVAILABLE,
  VENDOR_UNREADABLE: Code.UNAVAILABLE,
  CIRCUIT_OPEN: Code.UNAVAILABLE,
  SHUTTING_DOWN: Code.UNAVAILABLE,
} as const;
export type Reason = keyof typeof codes;

export type OutcomeName = "NOT_APPLIED" | "APPLIED" | "PARTIAL" | "UNKNOWN";

/** What goes with a reason. */
export interface FailureFacts {
  /** What happened to the vendor; absent: what the call has come to so far. */
  readonly outcome?: OutcomeName;
  readonly providerId?: string;
  readonly fields?: readonly string[];
  readonly retryAfterMs?: number;
  readonly quota?: string;
  readonly resetsAtMs?: number;
  readonly precondition?: { readonly type: string; readonly subjects: readonly string[] };
  readonly resource?: string;
  readonly owner?: string;
  readonly realm?: string;
}

export class Failure extends Error {
  override readonly name = "Failure";
  readonly reason: Reason;
  readonly facts: FailureFacts;

  constructor(reason: Reason, message: string, facts: FailureFacts = {}, cause?: unknown) {
    super(message, { cause });
    this.reason = reason;
    this.facts = facts;
  }
}

export interface WireStatus {
  readonly code: Code;
  readonly message: string;
  /** google.rpc.Status in binary. */
  readonly details: Uint8Array;
}

/** The error as it goes out. `message` must be free of secrets. */
export function statusOf(
  failure: Failure,
  { isMutation, mutations }: { readonly isMutation: boolean; readonly mutations: Mutations },
): WireStatus {
  const { reason, message } = failure;
  const code =
    mutations.has("busy-is-internal") && reason === "BUSY"
      ? Code.INTERNAL
      : codeOf(failure, mutations);
  const details = mutations.has("drops-details") ? [] : detailsOf(failure, isMutation, mutations);
  const status = create(StatusSchema, { code, message, details });
  return { code, message, details: toBinary(StatusSchema, status) };
}

function codeOf({ reason }: Failure, mutations: Mutations): Code {
  if (mutations.has("throttled-is-unavailable") && reason === "THROTTLED") return Code.UNAVAILABLE;
  if (mutations.has("overdue-is-exhausted") && reason === "BILLING_STOPPED") {
    return Code.RESOURCE_EXHAUSTED;
  }
  if (mutations.has("owned-by-another-is-denied") && reason === "OWNED_BY_ANOTHER") {
    return Code.PERMISSION_DENIED;
  }
  return codes[reason];
}

function detailsOf({ reason, facts }: Failure, isMutation: boolean, mutations: Mutations): Any[] {
  const { realm, outcome, providerId, retryAfterMs, quota, resetsAtMs, fields = [] } = facts;
  const { precondition } = facts;
  const details: Any[] = [
    pack(ErrorInfoSchema, {
      reason: mutations.has("invents-a-reason") && reason === "BUSY" ? "VENDOR_BUSY" : reason,
      domain: mutations.has("wrong-domain") ? "reference.example" : "dhp.example.com",
      metadata: realm === undefined || mutations.has("absence-without-realm") ? {} : { realm },
    }),
  ];
  if (isMutation && !mutations.has("no-outcome")) {
    details.push(
      pack(MutationOutcomeSchema, {
        outcome: Outcome[outcome ?? "UNKNOWN"],
        ...(providerId === undefined ? {} : { providerId }),
      }),
    );
  }
  if (retryAfterMs !== undefined && !hidesHint(reason, mutations)) {
    const nanos = Math.floor(retryAfterMs % 1_000) * 1_000_000;
    const seconds = BigInt(Math.floor(retryAfterMs / 1_000));
    details.push(pack(RetryInfoSchema, { retryDelay: create(DurationSchema, { seconds, nanos }) }));
  }
  if (quota !== undefined && !mutations.has("no-quota-failure")) {
    details.push(
      pack(QuotaFailureSchema, { violations: [{ subject: quota, description: quota }] }),
    );
  }
  if (resetsAtMs !== undefined && !mutations.has("no-quota-reset")) {
    details.push(pack(QuotaResetSchema, { resetsAt: timestampFromMs(resetsAtMs) }));
  }
  if (precondition !== undefined && !mutations.has("no-precondition")) {
    const type = mutations.has("invents-a-precondition") ? "INVOICE" : precondition.type;
    const violations = precondition.subjects.map((subject) => ({ type, subject }));
    details.push(pack(PreconditionFailureSchema, { violations }));
  }
  if (fields.length > 0) {
    const prefix = mutations.has("paths-of-its-own") ? "spec." : "";
    const fieldViolations = fields.map((field) => ({ field: `${prefix}${field}` }));
    details.push(pack(BadRequestSchema, { fieldViolations }));
  }
  const { resource, owner } = facts;
  if (resource !== undefined || owner !== undefined) {
    const resourceInfo = {
      resourceType: "instance",
      resourceName: resource ?? "",
      owner: owner ?? "",
    };
    details.push(pack(ResourceInfoSchema, resourceInfo));
  }
  return details;
}

function hidesHint(reason: Reason, mutations: Mutations): boolean {
  return (
    (mutations.has("throttled-without-hint") && reason === "THROTTLED") ||
    (mutations.has("circuit-without-hint") && reason === "CIRCUIT_OPEN") ||
    (mutations.has("in-doubt-without-hint") && reason === "IN_DOUBT")
  );
}

function pack<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): Any {
  return anyPack(schema, create(schema, init));
}
