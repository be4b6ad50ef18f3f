/**
 * ProviderError to google.rpc.Status: the contract's table of errors as code, outward half. Pure but
 * for redaction: words pass through it. Ids, realms and owners are not words: they are compared by
 * the caller, stand in answers too, and are not secret.
 */
import { create, toBinary } from "@bufbuild/protobuf";
import type { DescMessage } from "@bufbuild/protobuf";
import { anyPack, DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { Any } from "@bufbuild/protobuf/wkt";

import {
  MutationOutcomeSchema,
  Outcome,
  QuotaResetSchema,
} from "../../proto/gen/dhp/provider/v1/errors_pb.ts";
import { Code as CodeNumber } from "../../proto/gen/google/rpc/code_pb.ts";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from "../../proto/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../proto/gen/google/rpc/status_pb.ts";
import { redactText } from "../process/redaction.ts";
import {
  clampRetryMs,
  cutToBytes,
  detailBytesMax,
  errorDomain,
  isTimestampMs,
  messageBytesMax,
  textBytesMax,
  violationsMax,
  wholeOrAbsent,
} from "./detail-limits.ts";
import type { WireStatus } from "./detail-limits.ts";
import type {
  FieldViolation,
  MutationEffect,
  PreconditionViolation,
  ProviderError,
  ProviderErrorFacts,
  Reason,
} from "./provider-error.ts";

/**
 * The error as it goes out. A mutation's error always says its outcome: UNKNOWN where the thrower
 * did not say. Details that the contract's table asks for and that follow from other facts (the field
 * of IMMUTABLE_FIELD, the realm of WRONG_REALM) are filled in.
 */
export function toWireStatus(
  error: ProviderError,
  call: { readonly isMutation: boolean },
): WireStatus & { readonly details: Uint8Array } {
  const code = CodeNumber[error.code];
  const message = outgoing(error.message, messageBytesMax);
  const facts = completeFacts(error);
  // The most needed first: what does not fit into the trailers is dropped from the end.
  const details = [
    ...errorInfo(error.reason, facts.realm),
    ...mutationOutcome(facts, call.isMutation),
    ...retryInfo(facts.retryAfterMs),
    ...quotaDetails(facts),
    ...resourceInfo(error.reason, facts),
    ...preconditionFailure(facts.preconditions ?? []),
    ...badRequest(facts.fields ?? []),
  ];
  return { code, message, details: encodeWithin(detailBytesMax, { code, message, details }) };
}

function encodeWithin(
  bytesMax: number,
  status: { readonly code: number; readonly message: string; readonly details: readonly Any[] },
): Uint8Array {
  const bytes = toBinary(
    StatusSchema,
    create(StatusSchema, { ...status, details: [...status.details] }),
  );
  if (bytes.length <= bytesMax || status.details.length === 0) return bytes;
  return encodeWithin(bytesMax, { ...status, details: status.details.slice(0, -1) });
}

function completeFacts(error: ProviderError): ProviderErrorFacts {
  const { facts, reason } = error;
  const quota =
    facts.quota ??
    (reason === "THROTTLED" ? "call rate" : reason === "QUOTA_EXHAUSTED" ? "quota" : undefined);
  const preconditions = facts.preconditions ?? impliedPreconditions(error);
  return { ...facts, preconditions, ...(quota === undefined ? {} : { quota }) };
}

function impliedPreconditions(error: ProviderError): readonly PreconditionViolation[] {
  const { facts, reason, message: description } = error;
  switch (reason) {
    case "IMMUTABLE_FIELD":
      return (facts.fields ?? []).map((field) => ({
        type: "IMMUTABLE",
        subject: field.path,
        description: field.description,
      }));
    case "WRONG_REALM":
      return [{ type: "REALM", subject: facts.realm ?? "", description }];
    case "BILLING_STOPPED":
      return [{ type: "BILLING", subject: facts.realm ?? "", description }];
    default:
      return [];
  }
}

function errorInfo(reason: Reason | undefined, realm: string | undefined): Any[] {
  if (reason === undefined) return [];
  const wholeRealm = wholeOrAbsent(realm);
  const metadata: Record<string, string> = wholeRealm === undefined ? {} : { realm: wholeRealm };
  return [pack(ErrorInfoSchema, { reason, domain: errorDomain, metadata })];
}

function mutationOutcome(facts: ProviderErrorFacts, isMutation: boolean): Any[] {
  if (!isMutation && facts.outcome === undefined) return [];
  const providerId = wholeOrAbsent(facts.providerId);
  return [
    pack(MutationOutcomeSchema, {
      outcome: outcomeNumber[facts.outcome ?? "UNKNOWN"],
      ...(providerId === undefined ? {} : { providerId }),
    }),
  ];
}

function retryInfo(retryAfterMs: number | undefined): Any[] {
  if (retryAfterMs === undefined) return [];
  const boundedMs = clampRetryMs(retryAfterMs);
  return [
    pack(RetryInfoSchema, {
      retryDelay: create(DurationSchema, {
        seconds: BigInt(Math.floor(boundedMs / 1_000)),
        nanos: Math.floor(boundedMs % 1_000) * 1_000_000,
      }),
    }),
  ];
}

function quotaDetails(facts: ProviderErrorFacts): Any[] {
  const details: Any[] = [];
  if (facts.quota !== undefined) {
    const description = outgoing(facts.quota, textBytesMax);
    const subject = wholeOrAbsent(facts.realm) ?? "";
    details.push(pack(QuotaFailureSchema, { violations: [{ subject, description }] }));
  }
  if (facts.resetsAtMs !== undefined && isTimestampMs(facts.resetsAtMs)) {
    details.push(
      pack(QuotaResetSchema, {
        resetsAt: create(TimestampSchema, {
          seconds: BigInt(Math.floor(facts.resetsAtMs / 1_000)),
          nanos: Math.floor(facts.resetsAtMs % 1_000) * 1_000_000,
        }),
      }),
    );
  }
  return details;
}

function badRequest(fields: readonly FieldViolation[]): Any[] {
  if (fields.length === 0) return [];
  const fieldViolations = fields.slice(0, violationsMax).map((field) => ({
    field: outgoing(field.path, textBytesMax),
    description: outgoing(field.description, textBytesMax),
  }));
  return [pack(BadRequestSchema, { fieldViolations })];
}

function preconditionFailure(preconditions: readonly PreconditionViolation[]): Any[] {
  if (preconditions.length === 0) return [];
  const violations = preconditions.slice(0, violationsMax).map((violation) => ({
    type: violation.type,
    subject: outgoing(violation.subject, textBytesMax),
    description: outgoing(violation.description, textBytesMax),
  }));
  return [pack(PreconditionFailureSchema, { violations })];
}

function resourceInfo(reason: Reason | undefined, facts: ProviderErrorFacts): Any[] {
  if (facts.resource === undefined && facts.owner === undefined) return [];
  return [
    pack(ResourceInfoSchema, {
      resourceType:
        reason === "UNSUPPORTED" || reason === "CONTRACT_VERSION" ? "capability" : "instance",
      resourceName: wholeOrAbsent(facts.resource) ?? "",
      owner: wholeOrAbsent(facts.owner) ?? "",
    }),
  ];
}

function pack<Desc extends DescMessage>(
  schema: Desc,
  init: Parameters<typeof create<Desc>>[1],
): Any {
  return anyPack(schema, create(schema, init));
}

function outgoing(text: string, bytesMax: number): string {
  return cutToBytes(redactText(text), bytesMax);
}

const outcomeNumber = {
  NOT_APPLIED: Outcome.NOT_APPLIED,
  APPLIED: Outcome.APPLIED,
  PARTIAL: Outcome.PARTIAL,
  UNKNOWN: Outcome.UNKNOWN,
} as const satisfies Record<MutationEffect, number>;
