/**
 * Calls ProviderAPI over gRPC. Whatever goes wrong arrives as ProviderError; everything of gRPC
 * stays here.
 *
 * A call is sent only on a connection that stands. Where there is none it fails at once with outcome
 * NOT_APPLIED, because nothing was sent; only what fails after sending leaves a mutation's outcome
 * open.
 */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type {
  DescMessage,
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageShape,
} from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";
import type { ClientReadableStream, ServiceError } from "@grpc/grpc-js";

import { ProviderAPI } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { systemClock } from "../process/clock.ts";
import type { Clock } from "../process/clock.ts";
import type { Log } from "../process/log.ts";
import { redactText } from "../process/redaction.ts";
import { Connection, defaultClientLimits } from "./connection.ts";
import type { ClientLimits, ClientTls, ConnectionState, Readiness } from "./connection.ts";
import { fromWireStatus } from "./error-from-status.ts";
import { detailsKey, grpcPathOf, isMutation, sameBytes } from "./grpc-service.ts";
import type { ObserveCall } from "./grpc-service.ts";
import type { CallOptions, ProviderClient, UnaryCall } from "./provider-client.ts";
import { ProviderError } from "./provider-error.ts";
import type { Code } from "./provider-error.ts";

export interface ConnectProviderOptions {
  /** gRPC target: "host:port", "dns:///host:port", "ipv4:a:1,b:2" (tried in order). */
  readonly address: string;
  /** Absent: plaintext, to loopback only unless `allowPlaintext`. */
  readonly tls?: ClientTls;
  readonly allowPlaintext?: boolean;
  readonly log: Log;
  readonly onCall?: ObserveCall;
  readonly limits?: Partial<ClientLimits>;
  readonly clock?: Clock;
}

/** 24 days: a longer one wraps round in grpc-js's timers at either end, and has passed at once. */
const deadlineMsMax = 24 * 86_400_000;

/** A client and the connection under it. */
export interface ConnectedClient extends ProviderClient {
  state(): ConnectionState;
  /** Calls `listener` on each change until the returned function is called. */
  onStateChange(listener: (state: ConnectionState) => void): () => void;
}

/**
 * Starts connecting and returns at once. Throws ProviderError: UNAVAILABLE while TLS files are
 * missing or do not fit together, FAILED_PRECONDITION for plaintext that is not allowed.
 */
export function connectProvider(options: ConnectProviderOptions): ConnectedClient {
  const caller = new Caller(options, openConnection(options));
  const { method } = ProviderAPI;
  return {
    getProviderInfo: caller.unary(method.getProviderInfo),
    ensure: caller.unary(method.ensure),
    describe: caller.unary(method.describe),
    list: caller.unary(method.list),
    delete: caller.unary(method.delete),
    release: caller.unary(method.release),
    watchHealth: (request, signal) => caller.stream(method.watchHealth, request, signal),
    state: () => caller.connection.state,
    onStateChange: (listener) => caller.connection.onStateChange(listener),
    close: () => caller.connection.close(),
  };
}

function openConnection(options: ConnectProviderOptions): Connection {
  const limits = { ...defaultClientLimits, ...options.limits };
  try {
    return new Connection({ ...options, limits, clock: options.clock ?? systemClock });
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    const code = options.tls === undefined ? "FAILED_PRECONDITION" : "UNAVAILABLE";
    throw ProviderError.foreign(code, message, cause, { outcome: "NOT_APPLIED" });
  }
}

class Caller {
  readonly connection: Connection;
  readonly #options: ConnectProviderOptions;
  readonly #clock: Clock;
  readonly #messageBytesMax: number;

  constructor(options: ConnectProviderOptions, connection: Connection) {
    this.connection = connection;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#messageBytesMax = options.limits?.messageBytesMax ?? defaultClientLimits.messageBytesMax;
  }

  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
  ): UnaryCall<MessageShape<I>, MessageShape<O>> {
    return (request, options) =>
      this.#observed(method, options.signal, async () => {
        const deadlineAtMs = this.#clock.now() + this.#checkDeadline(method, options.deadlineMs);
        const bytes = this.#encode(method, request);
        await this.#whenReady(method, options);
        return this.#decode(method, await this.#send(method, bytes, { ...options, deadlineAtMs }));
      });
  }

  async *stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageShape<I>,
    signal: AbortSignal,
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    if (signal.aborted) return;
    const call: ClientReadableStream<Buffer> = this.connection.client.makeServerStreamRequest(
      grpcPathOf(method),
      sameBytes,
      sameBytes,
      this.#encode(method, request),
      new Metadata(),
      {},
    );
    const cancel = (): void => call.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    // Cancelling makes the library emit one more error when nobody reads the stream any longer.
    call.on("error", () => undefined);
    const startMs = this.#clock.monotonicMs();
    let code: Code = "CANCELLED";
    try {
      for await (const bytes of call) yield this.#decode(method, bytes);
      throw this.#fail(method, "UNAVAILABLE", "the adapter ended the stream");
    } catch (error) {
      if (signal.aborted) return;
      const failure = this.#errorOf(method, error, signal);
      code = failure.code;
      throw failure;
    } finally {
      signal.removeEventListener("abort", cancel);
      call.cancel();
      const durationMs = this.#clock.monotonicMs() - startMs;
      this.#options.onCall?.({ method: method.name, code, durationMs });
    }
  }

  async #observed<T>(
    method: DescMethod,
    signal: AbortSignal | undefined,
    work: () => Promise<T>,
  ): Promise<T> {
    const startMs = this.#clock.monotonicMs();
    let code: Code | "OK" = "OK";
    try {
      return await work();
    } catch (error) {
      const failure = this.#errorOf(method, error, signal);
      code = failure.code;
      throw failure;
    } finally {
      const durationMs = this.#clock.monotonicMs() - startMs;
      this.#options.onCall?.({ method: method.name, code, durationMs });
    }
  }

  #checkDeadline(method: DescMethod, deadlineMs: number): number {
    if (Number.isFinite(deadlineMs) && deadlineMs > 0) return Math.min(deadlineMs, deadlineMsMax);
    const code = deadlineMs <= 0 ? "DEADLINE_EXCEEDED" : "INVALID_ARGUMENT";
    throw this.#unsent(method, code, `deadline of ${deadlineMs} ms`);
  }

  #encode<I extends DescMessage>(
    method: DescMethod & { readonly input: I },
    request: MessageShape<I>,
  ): Buffer {
    let bytes: Uint8Array;
    try {
      bytes = toBinary(method.input, request);
    } catch (cause) {
      throw this.#unsent(method, "INVALID_ARGUMENT", "the request cannot be encoded", cause);
    }
    if (bytes.length > this.#messageBytesMax) {
      throw this.#unsent(method, "INVALID_ARGUMENT", `the request has ${bytes.length} bytes`);
    }
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  #decode<O extends DescMessage>(
    method: DescMethod & { readonly output: O },
    bytes: Uint8Array,
  ): MessageShape<O> {
    try {
      return fromBinary(method.output, bytes);
    } catch (cause) {
      throw this.#fail(method, "INTERNAL", "the answer cannot be decoded", cause);
    }
  }

  async #whenReady(method: DescMethod, options: CallOptions): Promise<void> {
    const readiness = await this.connection.ready(options.deadlineMs, options.signal);
    if (readiness === "ready") return;
    // A read may try all the same: it has no outcome to keep clear, and the library's error says
    // why there is no connection.
    if (readiness === "unconnected" && !isMutation(method)) return;
    throw this.#unsent(method, codeOfReadiness[readiness], wordsOfReadiness[readiness]);
  }

  #send(
    method: DescMethod,
    bytes: Buffer,
    options: { readonly deadlineAtMs: number; readonly signal?: AbortSignal },
  ): Promise<Buffer> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      const call = this.connection.client.makeUnaryRequest(
        grpcPathOf(method),
        sameBytes,
        sameBytes,
        bytes,
        new Metadata(),
        { deadline: options.deadlineAtMs },
        (error, answer) => {
          signal?.removeEventListener("abort", cancel);
          if (error !== null) reject(error);
          else if (answer === undefined) reject(this.#fail(method, "INTERNAL", "an empty answer"));
          else resolve(answer);
        },
      );
      const cancel = (): void => call.cancel();
      signal?.addEventListener("abort", cancel, { once: true });
      if (signal?.aborted === true) cancel();
    });
  }

  #errorOf(method: DescMethod, error: unknown, signal: AbortSignal | undefined): ProviderError {
    if (error instanceof ProviderError) return error;
    if (!isServiceError(error)) return this.#fail(method, "INTERNAL", String(error), error);
    const details = error.metadata.get(detailsKey)[0];
    const { code, details: message } = error;
    const bytes = details instanceof Uint8Array ? details : undefined;
    const failure = fromWireStatus({ code, message, details: bytes }, error);
    if (failure.reason !== undefined) return failure;
    // A connection that is torn down says CANCELLED too; only our own signal means that we did it.
    const isTornDown = failure.code === "CANCELLED" && signal?.aborted !== true;
    const shownCode = isTornDown ? "UNAVAILABLE" : failure.code;
    return this.#fail(method, shownCode, steadyWords(failure), error, failure.facts);
  }

  /** An error without a reason of ours; names the call, which the library's text does not. */
  #fail(
    method: DescMethod,
    code: Code,
    ...[what, cause, facts]: readonly [string, unknown?, ProviderError["facts"]?]
  ): ProviderError {
    const message = `cannot call ${method.name} at "${this.#options.address}": ${what}`;
    return ProviderError.foreign(code, redactText(message), cause, facts);
  }

  #unsent(method: DescMethod, code: Code, what: string, cause?: unknown): ProviderError {
    return this.#fail(method, code, `${what}; nothing was sent`, cause, { outcome: "NOT_APPLIED" });
  }
}

const codeOfReadiness: Readonly<Record<Exclude<Readiness, "ready">, Code>> = {
  unconnected: "UNAVAILABLE",
  late: "DEADLINE_EXCEEDED",
  aborted: "CANCELLED",
};

const wordsOfReadiness: Readonly<Record<Exclude<Readiness, "ready">, string>> = {
  unconnected: "not connected",
  late: "not connected before the deadline",
  aborted: "cancelled by the caller",
};

/**
 * The library's words without times and measurements: they end up in conditions, where the same
 * failure told twice must not be news. The whole text stays in `cause`.
 */
function steadyWords({ code, message }: ProviderError): string {
  if (code === "DEADLINE_EXCEEDED") return "no answer before the deadline";
  return message
    .replaceAll(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)/g, "")
    .replace(/\.? Resolution note: $/, "");
}

function isServiceError(error: unknown): error is ServiceError {
  return (
    error instanceof Error &&
    "code" in error &&
    typeof error.code === "number" &&
    "details" in error &&
    typeof error.details === "string" &&
    "metadata" in error &&
    error.metadata instanceof Metadata
  );
}
