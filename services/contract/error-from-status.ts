/**
 * google.rpc.Status to ProviderError: the contract's table of errors as code, inward half. Pure. What
 * a peer sends is not trusted to be short, complete or known.
 */
import { fromBinary } from "@bufbuild/protobuf";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import type { Any, Duration } from "@bufbuild/protobuf/wkt";

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
import type { Status } from "../../proto/gen/google/rpc/status_pb.ts";
import {
  clampRetryMs,
  cutToBytes,
  errorDomain,
  isTimestampMs,
  messageBytesMax,
  textBytesMax,
  violationsMax,
  wholeOrAbsent,
} from "./detail-limits.ts";
import type { WireStatus } from "./detail-limits.ts";
import { codeOfReason, ProviderError, reasons } from "./provider-error.ts";
import type { Code, MutationEffect, ProviderErrorFacts, Reason } from "./provider-error.ts";

const detailsMax = 16;

/**
 * The error as its caller sees it. Without ErrorInfo of our domain, with a reason that this build
 * does not know, or with a code that the reason does not travel under, the reason stays undefined;
 * what MutationOutcome and the other details say is kept. Details that cannot be read count as none.
 */
export function fromWireStatus(status: WireStatus, cause?: unknown): ProviderError {
  const code = codeOfNumber(status.code);
  const message = cutToBytes(status.message, messageBytesMax * 4);
  const parsed = parseStatus(status);
  if (parsed === undefined) return ProviderError.foreign(code, message, cause);
  const { reason, facts } = readDetails(parsed.details.slice(0, detailsMax));
  if (reason === undefined || !travelsUnder(reason, code)) {
    return ProviderError.foreign(code, message, cause, facts);
  }
  return new ProviderError(reason, message, {
    ...facts,
    ...(code === codeOfReason[reason] ? {} : { code }),
    ...(cause === undefined ? {} : { cause }),
  });
}

/** The name of a gRPC status number; numbers outside the protocol read as UNKNOWN. */
export function codeOfNumber(number: number): Code {
  return codeByNumber.get(number) ?? "UNKNOWN";
}

const codeByNumber = new Map<number, Code>(
  Object.entries(CodeNumber).flatMap(([name, number]) =>
    isCode(name) ? [[number, name] as const] : [],
  ),
);

function isCode(name: string): name is Code {
  return name in CodeNumber && name !== "OK";
}

function travelsUnder(reason: Reason, code: Code): boolean {
  return (
    code === codeOfReason[reason] || (reason === "UNSUPPORTED" && code === "FAILED_PRECONDITION")
  );
}

function parseStatus(status: WireStatus): Status | undefined {
  if (status.details === undefined) return undefined;
  try {
    const parsed = fromBinary(StatusSchema, status.details);
    // Whoever changed the code did not know our details: then they say nothing about this answer.
    return parsed.code === status.code ? parsed : undefined;
  } catch (_malformed) {
    // Not google.rpc.Status: some other party's trailer of the same name.
    return undefined;
  }
}

type MutableFacts = { -readonly [Name in keyof ProviderErrorFacts]: ProviderErrorFacts[Name] };

interface ReadDetails {
  reason: Reason | undefined;
  readonly facts: MutableFacts;
}

function readDetails(details: readonly Any[]): ReadDetails {
  const read: ReadDetails = { reason: undefined, facts: {} };
  for (const detail of details) {
    for (const reader of readers) {
      if (readOne(detail, reader, read)) break;
    }
  }
  return read;
}

/** Returns false when the detail is of another type; throws when its bytes are not of its type. */
type Reader = (detail: Any, into: ReadDetails) => boolean;

function readOne(detail: Any, reader: Reader, into: ReadDetails): boolean {
  try {
    return reader(detail, into);
  } catch (_malformed) {
    // The type's name is ours and its bytes are not: one unreadable detail does not spoil the others.
    return true;
  }
}

function reader<Desc extends DescMessage>(
  schema: Desc,
  fill: (message: MessageShape<Desc>, into: ReadDetails) => void,
): Reader {
  return (detail, into) => {
    const message = anyUnpack(detail, schema);
    if (message === undefined) return false;
    fill(message, into);
    return true;
  };
}

const readers: readonly Reader[] = [
  reader(ErrorInfoSchema, (info, into) => {
    if (info.domain !== errorDomain) return;
    into.reason = reasons.find((reason) => reason === info.reason);
    const realm = wholeOrAbsent(info.metadata["realm"]);
    if (realm !== undefined) into.facts.realm = realm;
  }),
  reader(MutationOutcomeSchema, (message, into) => {
    into.facts.outcome = effectByNumber.get(message.outcome) ?? "UNKNOWN";
    const providerId = wholeOrAbsent(message.providerId);
    if (providerId !== undefined) into.facts.providerId = providerId;
  }),
  reader(RetryInfoSchema, (info, into) => {
    if (info.retryDelay !== undefined) into.facts.retryAfterMs = msOfDuration(info.retryDelay);
  }),
  reader(QuotaFailureSchema, (failure, into) => {
    const violation = failure.violations[0];
    if (violation === undefined) return;
    into.facts.quota = incoming(
      violation.description === "" ? violation.subject : violation.description,
    );
  }),
  reader(QuotaResetSchema, (reset, into) => {
    if (reset.resetsAt === undefined) return;
    const resetsAtMs =
      Number(reset.resetsAt.seconds) * 1_000 + Math.floor(reset.resetsAt.nanos / 1e6);
    if (isTimestampMs(resetsAtMs)) into.facts.resetsAtMs = resetsAtMs;
  }),
  reader(BadRequestSchema, (request, into) => {
    into.facts.fields = request.fieldViolations.slice(0, violationsMax).map((violation) => ({
      path: incoming(violation.field),
      description: incoming(violation.description),
    }));
  }),
  reader(PreconditionFailureSchema, (failure, into) => {
    into.facts.preconditions = failure.violations.slice(0, violationsMax).flatMap((violation) => {
      const type = preconditionTypes.find((known) => known === violation.type);
      if (type === undefined) return [];
      const { subject, description } = violation;
      return [{ type, subject: incoming(subject), description: incoming(description) }];
    });
  }),
  reader(ResourceInfoSchema, (info, into) => {
    const resource = wholeOrAbsent(info.resourceName);
    if (resource !== undefined && resource !== "") into.facts.resource = resource;
    const owner = wholeOrAbsent(info.owner);
    if (owner !== undefined && owner !== "") into.facts.owner = owner;
  }),
];

const preconditionTypes = ["BILLING", "IMMUTABLE", "REALM", "STATE"] as const;

const effectByNumber = new Map<number, MutationEffect>([
  [Outcome.NOT_APPLIED, "NOT_APPLIED"],
  [Outcome.APPLIED, "APPLIED"],
  [Outcome.PARTIAL, "PARTIAL"],
  [Outcome.UNKNOWN, "UNKNOWN"],
]);

function incoming(text: string): string {
  return cutToBytes(text, textBytesMax * 4);
}

function msOfDuration(duration: Duration): number {
  return clampRetryMs(Number(duration.seconds) * 1_000 + Math.ceil(duration.nanos / 1e6));
}
