/** What a caller of an adapter holds: typed calls that either answer or reject with ProviderError. */
import type {
  DeleteRequest,
  DeleteResponse,
  DescribeRequest,
  DescribeResponse,
  EnsureRequest,
  EnsureResponse,
  GetProviderInfoRequest,
  GetProviderInfoResponse,
  ListRequest,
  ListResponse,
  ReleaseRequest,
  ReleaseResponse,
  WatchHealthRequest,
  WatchHealthResponse,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";

/** Limits of one call. There is no call without a deadline. */
export interface CallOptions {
  /** How long the call may take from now, connecting included. */
  readonly deadlineMs: number;
  readonly signal?: AbortSignal;
}

/** One unary RPC: answers, or rejects with ProviderError and nothing else. */
export type UnaryCall<Request, Response> = (
  request: Request,
  options: CallOptions,
) => Promise<Response>;

/** ProviderAPI as its caller sees it. Mutations are never retried by the transport. */
export interface ProviderClient {
  readonly getProviderInfo: UnaryCall<GetProviderInfoRequest, GetProviderInfoResponse>;
  readonly ensure: UnaryCall<EnsureRequest, EnsureResponse>;
  readonly describe: UnaryCall<DescribeRequest, DescribeResponse>;
  readonly list: UnaryCall<ListRequest, ListResponse>;
  readonly delete: UnaryCall<DeleteRequest, DeleteResponse>;
  readonly release: UnaryCall<ReleaseRequest, ReleaseResponse>;
  /** Ends when the signal aborts; rejects with ProviderError when the stream breaks. */
  watchHealth(request: WatchHealthRequest, signal: AbortSignal): AsyncIterable<WatchHealthResponse>;
  close(): void;
}
