/**
 * ProviderAPI through either of two implementations of gRPC: grpc-js under our own client, as the
 * controller uses it, and connect-node, as a stranger would. What comes back has one form, so that a
 * difference between the two is a difference of what they heard.
 */
import { create } from "@bufbuild/protobuf";
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";

import {
  DeleteRequestSchema,
  DescribeRequestSchema,
  EnsureRequestSchema,
  GetProviderInfoRequestSchema,
  ListRequestSchema,
  ProviderAPI,
  WatchHealthRequestSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  DeleteResponse,
  DescribeResponse,
  EnsureResponse,
  GetProviderInfoResponse,
  ListResponse,
  WatchHealthResponse,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { connectProvider } from "../../services/contract/client.ts";
import type { ConnectedClient } from "../../services/contract/client.ts";
import type { UnaryCall } from "../../services/contract/provider-client.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { silentLog } from "../../services/process/log.ts";
import type { RpcFailure } from "../conformance/core/rpc-failure.ts";
import { WireClient } from "../conformance/core/wire-client.ts";
import type { Reply, TlsFiles } from "../conformance/core/wire-client.ts";

export const libraries = ["grpc-js", "connect-node"] as const;
export type Library = (typeof libraries)[number];

/** An error's facts, each undefined where the answer does not tell it. */
export interface HeardFailure {
  readonly code: string;
  /** Undefined with an error that is not the adapter's own: each library has words of its own. */
  readonly message: string | undefined;
  readonly reason: string | undefined;
  readonly outcome: string | undefined;
  readonly providerId: string | undefined;
  readonly realm: string | undefined;
  readonly fields: readonly string[];
  readonly retryAfterMs: number | undefined;
  readonly hasQuota: boolean;
  readonly resetsAtMs: number | undefined;
  readonly preconditions: readonly string[];
  readonly resource: string | undefined;
  readonly owner: string | undefined;
}

export type Heard<T> =
  | { readonly kind: "answer"; readonly answer: T }
  | { readonly kind: "failure"; readonly failure: HeardFailure };

export interface WireCallOptions {
  /** 20 s when absent; "none": as little of a deadline as the library allows. */
  readonly deadlineMs?: number | "none";
  readonly signal?: AbortSignal;
}

type Rpc<I extends DescMessage, O> = (
  request: MessageInitShape<I>,
  options?: WireCallOptions,
) => Promise<Heard<O>>;

export interface WireEnd {
  readonly library: Library;
  readonly getProviderInfo: Rpc<typeof GetProviderInfoRequestSchema, GetProviderInfoResponse>;
  readonly ensure: Rpc<typeof EnsureRequestSchema, EnsureResponse>;
  readonly describe: Rpc<typeof DescribeRequestSchema, DescribeResponse>;
  readonly list: Rpc<typeof ListRequestSchema, ListResponse>;
  readonly delete: Rpc<typeof DeleteRequestSchema, DeleteResponse>;
  /** Messages until `signal` aborts; a failure is the last element. */
  watchHealth(
    request: MessageInitShape<typeof WatchHealthRequestSchema>,
    signal: AbortSignal,
  ): AsyncGenerator<Heard<WatchHealthResponse>, void, undefined>;
  close(): void;
}

const deadlineMsDefault = 20_000;

/** @param address host:port */
export function openWireEnd(library: Library, address: string, tls?: TlsFiles): WireEnd {
  return library === "grpc-js" ? grpcJsEnd(address, tls) : connectNodeEnd(address, tls);
}

function grpcJsEnd(address: string, tls: TlsFiles | undefined): WireEnd {
  const client = connectProvider({ address, log: silentLog, ...tlsOptions(tls) });
  return {
    library: "grpc-js",
    getProviderInfo: overGrpcJs(GetProviderInfoRequestSchema, client.getProviderInfo),
    ensure: overGrpcJs(EnsureRequestSchema, client.ensure),
    describe: overGrpcJs(DescribeRequestSchema, client.describe),
    list: overGrpcJs(ListRequestSchema, client.list),
    delete: overGrpcJs(DeleteRequestSchema, client.delete),
    watchHealth: (request, signal) => watchOverGrpcJs(client, request, signal),
    close: () => client.close(),
  };
}

function tlsOptions(tls: TlsFiles | undefined): Pick<Parameters<typeof connectProvider>[0], "tls"> {
  if (tls === undefined) return {};
  const { ca, cert, key } = tls;
  const identity = cert === undefined || key === undefined ? {} : { certFile: cert, keyFile: key };
  return { tls: { caFile: ca, ...identity } };
}

function overGrpcJs<I extends DescMessage, O>(
  schema: I,
  call: UnaryCall<MessageShape<I>, O>,
): Rpc<I, O> {
  return async (request, { deadlineMs = deadlineMsDefault, signal } = {}) => {
    const options = {
      deadlineMs: deadlineMs === "none" ? Number.POSITIVE_INFINITY : deadlineMs,
      ...(signal === undefined ? {} : { signal }),
    };
    try {
      return { kind: "answer", answer: await call(create(schema, request), options) };
    } catch (error) {
      return failureOfGrpcJs(error);
    }
  };
}

async function* watchOverGrpcJs(
  client: ConnectedClient,
  request: MessageInitShape<typeof WatchHealthRequestSchema>,
  signal: AbortSignal,
): AsyncGenerator<Heard<WatchHealthResponse>, void, undefined> {
  try {
    const messages = client.watchHealth(create(WatchHealthRequestSchema, request), signal);
    for await (const message of messages) yield { kind: "answer", answer: message };
  } catch (error) {
    yield failureOfGrpcJs(error);
  }
}

function failureOfGrpcJs(error: unknown): { readonly kind: "failure"; failure: HeardFailure } {
  if (!(error instanceof ProviderError)) throw error;
  const { code, reason, facts, message } = error;
  const failure = {
    code,
    message: reason === undefined ? undefined : message,
    reason,
    outcome: facts.outcome,
    providerId: facts.providerId,
    realm: facts.realm,
    fields: (facts.fields ?? []).map(({ path }) => path),
    retryAfterMs: facts.retryAfterMs,
    hasQuota: facts.quota !== undefined,
    resetsAtMs: facts.resetsAtMs,
    preconditions: (facts.preconditions ?? []).map(({ type, subject }) => `${type} ${subject}`),
    resource: facts.resource,
    owner: facts.owner,
  };
  return { kind: "failure", failure };
}

function connectNodeEnd(address: string, tls: TlsFiles | undefined): WireEnd {
  const client = new WireClient({ address, secrets: [], ...(tls === undefined ? {} : { tls }) });
  const { method } = ProviderAPI;
  const rpc =
    <O>(send: (options: WireCallOptions) => Promise<Reply<O>>) =>
    async ({ deadlineMs = deadlineMsDefault, ...rest }: WireCallOptions = {}): Promise<Heard<O>> =>
      heardOf(await send({ deadlineMs, ...rest }));
  return {
    library: "connect-node",
    getProviderInfo: (request, options) =>
      rpc((call) => client.call(method.getProviderInfo, request, call))(options),
    ensure: (request, options) => rpc((call) => client.call(method.ensure, request, call))(options),
    describe: (request, options) =>
      rpc((call) => client.call(method.describe, request, call))(options),
    list: (request, options) => rpc((call) => client.call(method.list, request, call))(options),
    delete: (request, options) => rpc((call) => client.call(method.delete, request, call))(options),
    watchHealth: async function* (request, signal) {
      for await (const reply of client.watchHealth(request, signal)) yield heardOf(reply);
    },
    close: () => client.close(),
  };
}

function heardOf<T>(reply: Reply<T>): Heard<T> {
  return reply.kind === "answer"
    ? reply
    : { kind: "failure", failure: heardFailureOf(reply.failure) };
}

function heardFailureOf(failure: RpcFailure): HeardFailure {
  const { reason, resource } = failure;
  return {
    // The same code under the name that its library gives it.
    code: failure.code,
    message: reason === undefined ? undefined : failure.message,
    reason,
    outcome: failure.outcome,
    providerId: failure.providerId,
    realm: failure.metadata["realm"],
    fields: failure.fields,
    retryAfterMs: failure.retryDelayMs,
    hasQuota: failure.quotas !== undefined,
    resetsAtMs: failure.quotaResetsAtMs,
    preconditions: failure.preconditions.map(({ type, subject }) => `${type} ${subject}`),
    resource: emptyAsAbsent(resource?.name),
    owner: emptyAsAbsent(resource?.owner),
  };
}

function emptyAsAbsent(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}
