/** What serves ProviderAPI: one function per RPC that answers or throws ProviderError. */
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

/** One call as its handler sees it. */
export interface CallContext {
  /**
   * Aborts when the caller leaves, when the deadline passes, or when the drain time of a stopping
   * server ends. It says that nobody waits any more; it undoes nothing.
   */
  readonly signal: AbortSignal;
  /** Wall time in ms since the epoch; Infinity for a WatchHealth without a deadline. */
  readonly deadlineAtMs: number;
}

/** Rejects with ProviderError; anything else is a bug and reaches the caller as INTERNAL. */
export type UnaryHandler<Request, Response> = (
  request: Request,
  context: CallContext,
) => Promise<Response>;

/** A missing handler answers UNIMPLEMENTED with reason UNSUPPORTED. */
export interface ProviderHandlers {
  readonly getProviderInfo?: UnaryHandler<GetProviderInfoRequest, GetProviderInfoResponse>;
  readonly ensure?: UnaryHandler<EnsureRequest, EnsureResponse>;
  readonly describe?: UnaryHandler<DescribeRequest, DescribeResponse>;
  readonly list?: UnaryHandler<ListRequest, ListResponse>;
  readonly delete?: UnaryHandler<DeleteRequest, DeleteResponse>;
  readonly release?: UnaryHandler<ReleaseRequest, ReleaseResponse>;
  /** The next message is asked for only when the caller has taken the one before. */
  readonly watchHealth?: (
    request: WatchHealthRequest,
    context: CallContext,
  ) => AsyncIterable<WatchHealthResponse>;
}
