/** An error as the wire brought it, with the contract's details taken apart. */
import { timestampMs, durationMs } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import {
  MutationOutcomeSchema,
  QuotaResetSchema,
} from "../../../proto/gen/dhp/provider/v1/errors_pb.ts";
import { CodeSchema } from "../../../proto/gen/google/rpc/code_pb.ts";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from "../../../proto/gen/google/rpc/error_details_pb.ts";
import { outcomeName } from "./wire-words.ts";

export interface RpcFailure {
  /** "NOT_FOUND". */
  readonly code: string;
  readonly message: string;
  /** Of ErrorInfo; absent: it has none. */
  readonly reason?: string;
  readonly domain?: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Of MutationOutcome, without prefix; absent: it has none. */
  readonly outcome?: string;
  /** The id that MutationOutcome names. */
  readonly providerId?: string;
  /** Paths of BadRequest. */
  readonly fields: readonly string[];
  readonly retryDelayMs?: number;
  readonly preconditions: readonly { readonly type: string; readonly subject: string }[];
  /** Subjects of QuotaFailure; absent: it has none. */
  readonly quotas?: readonly string[];
  readonly quotaResetsAtMs?: number;
  /** Of ResourceInfo. */
  readonly resource?: { readonly type: string; readonly name: string; readonly owner: string };
}

export function rpcFailureOf(error: ConnectError): RpcFailure {
  const [info] = error.findDetails(ErrorInfoSchema);
  const [mutation] = error.findDetails(MutationOutcomeSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  const [quota] = error.findDetails(QuotaFailureSchema);
  const [reset] = error.findDetails(QuotaResetSchema);
  const [resource] = error.findDetails(ResourceInfoSchema);
  return {
    code: CodeSchema.value[error.code]?.name ?? `code ${error.code}`,
    message: error.rawMessage,
    ...(info === undefined ? {} : { reason: info.reason, domain: info.domain }),
    metadata: info?.metadata ?? {},
    ...(mutation === undefined ? {} : { outcome: outcomeName(mutation.outcome) }),
    ...(mutation?.providerId === undefined ? {} : { providerId: mutation.providerId }),
    fields: error
      .findDetails(BadRequestSchema)
      .flatMap(({ fieldViolations }) => fieldViolations.map(({ field }) => field)),
    ...(retry?.retryDelay === undefined ? {} : { retryDelayMs: durationMs(retry.retryDelay) }),
    preconditions: error
      .findDetails(PreconditionFailureSchema)
      .flatMap(({ violations }) => violations.map(({ type, subject }) => ({ type, subject }))),
    ...(quota === undefined ? {} : { quotas: quota.violations.map(({ subject }) => subject) }),
    ...(reset?.resetsAt === undefined ? {} : { quotaResetsAtMs: timestampMs(reset.resetsAt) }),
    ...(resource === undefined
      ? {}
      : {
          resource: {
            type: resource.resourceType,
            name: resource.resourceName,
            owner: resource.owner,
          },
        }),
  };
}

/** For people: code, reason, outcome, message. */
export function describeFailure(failure: RpcFailure): string {
  const { code, reason, outcome, message } = failure;
  const details = [
    reason === undefined ? "no ErrorInfo" : reason,
    ...(outcome === undefined ? [] : [outcome]),
  ].join(", ");
  return `${code} (${details}): ${message}`;
}
