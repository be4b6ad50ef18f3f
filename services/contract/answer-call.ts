/**
 * One call at the server, from its bytes to its bytes: what is refused before a handler sees it, the
 * signal that the handler gets, and what its error becomes. Knows which calls are in flight.
 */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type {
  DescMessage,
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageShape,
} from "@bufbuild/protobuf";
import { Metadata, status } from "@grpc/grpc-js";
import type {
  handleServerStreamingCall,
  handleUnaryCall,
  ServerErrorResponse,
  ServerUnaryCall,
  ServerWritableStream,
} from "@grpc/grpc-js";

import type { Clock } from "../process/clock.ts";
import type { Log } from "../process/log.ts";
import { detailsKey, isMutation, pushbackKey } from "./grpc-service.ts";
import type { ObserveCall } from "./grpc-service.ts";
import type { CallContext, UnaryHandler } from "./provider-handlers.ts";
import { ProviderError } from "./provider-error.ts";
import { toWireStatus } from "./status-from-error.ts";

export interface CallDeskOptions {
  readonly log: Log;
  readonly observe: ObserveCall;
  readonly clock: Clock;
  /** Calls answered at the same time, over all connections; more are refused with BUSY. */
  readonly callsInFlightMax: number;
  readonly responseBytesMax: number;
}

type AnyCall = ServerUnaryCall<Buffer, Buffer> | ServerWritableStream<Buffer, Buffer>;

interface InFlight {
  readonly abort: AbortController;
  readonly isStream: boolean;
  readonly done: Promise<void>;
}

/** Answers calls; see the file comment. */
export class CallDesk {
  readonly #options: CallDeskOptions;
  readonly #inFlight = new Set<InFlight>();
  /** Answers that are not yet written to their connections. */
  readonly #leaving = new Set<Promise<void>>();
  #isDraining = false;

  constructor(options: CallDeskOptions) {
    this.#options = options;
  }

  /** The grpc-js handler of a unary RPC. */
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    handler: UnaryHandler<MessageShape<I>, MessageShape<O>> | undefined,
  ): handleUnaryCall<Buffer, Buffer> {
    return (call, callback) => {
      let answer: Buffer | undefined;
      void this.#answer(method, call, async (context) => {
        if (handler === undefined) throw unsupported(method);
        const response = await handler(parseRequest(method.input, call.request), context);
        answer = this.#encode(method.output, response);
      }).then((failure) => {
        if (failure === undefined && answer !== undefined) callback(null, answer);
        else callback(failure ?? null);
      });
    };
  }

  /** The grpc-js handler of an RPC that answers with a stream. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    handler:
      | ((request: MessageShape<I>, context: CallContext) => AsyncIterable<MessageShape<O>>)
      | undefined,
  ): handleServerStreamingCall<Buffer, Buffer> {
    return (call) => {
      void this.#answer(method, call, async (context) => {
        if (handler === undefined) throw unsupported(method);
        const messages = handler(parseRequest(method.input, call.request), context);
        await this.#writeAll(call, method.output, messages, context.signal);
      }).then((failure) => {
        if (failure === undefined) call.end();
        else call.emit("error", failure);
      });
    };
  }

  /** From now on new calls are refused with SHUTTING_DOWN; streams end at once with the same. */
  startDraining(): void {
    this.#isDraining = true;
    for (const call of this.#inFlight) if (call.isStream) call.abort.abort(shuttingDown("ended"));
  }

  /** Resolves when the last call in flight has been answered. */
  async drained(): Promise<void> {
    while (this.#inFlight.size > 0) {
      await Promise.all([...this.#inFlight].map((call) => call.done));
    }
  }

  /** Resolves when each answer given so far is written to its connection, or nobody takes it. */
  async sent(): Promise<void> {
    await Promise.all(this.#leaving);
  }

  /** Tells what is still in flight that nobody waits any more. Returns how many calls that were. */
  abortAll(): number {
    for (const call of this.#inFlight) call.abort.abort(shuttingDown("cut off"));
    return this.#inFlight.size;
  }

  /** Runs `work` as one call in flight; resolves with what to send when it fails. */
  async #answer(
    method: DescMethod,
    call: AnyCall,
    work: (context: CallContext) => Promise<void>,
  ): Promise<ServerErrorResponse | undefined> {
    const startMs = this.#options.clock.monotonicMs();
    const { promise: done, resolve: settle } = Promise.withResolvers<void>();
    const isStream = method.methodKind === "server_streaming";
    const entry: InFlight = { abort: new AbortController(), isStream, done };
    const leave = (): void =>
      entry.abort.abort(new Error("the caller left or its deadline passed"));
    call.on("cancelled", leave);
    let thrown: { readonly error: unknown } | undefined;
    try {
      const deadlineAtMs = this.#admit(method, call);
      this.#inFlight.add(entry);
      await work({ signal: entry.abort.signal, deadlineAtMs });
    } catch (error) {
      thrown = { error };
    }
    // The library says "cancelled" of each call once its answer has left, or its caller: what
    // outlives the call must not hear that.
    call.removeListener("cancelled", leave);
    this.#awaitLeaving(call);
    this.#inFlight.delete(entry);
    settle();
    const failure =
      thrown === undefined ? undefined : errorToSend(thrown.error, entry.abort.signal);
    this.#report(method, failure, { startMs, thrown: thrown?.error });
    return failure === undefined ? undefined : responseOf(failure, isMutation(method));
  }

  #awaitLeaving(call: AnyCall): void {
    if (call.cancelled) return;
    const left = new Promise<void>((resolve) => call.once("cancelled", () => resolve()));
    this.#leaving.add(left);
    void left.then(() => this.#leaving.delete(left));
  }

  /** Refuses or returns the deadline. Whatever is refused here has touched nothing. */
  #admit(method: DescMethod, call: AnyCall): number {
    if (this.#isDraining) throw shuttingDown("refused");
    if (this.#inFlight.size >= this.#options.callsInFlightMax) {
      throw new ProviderError("BUSY", "cannot answer: too many calls in flight", {
        outcome: "NOT_APPLIED",
        retryAfterMs: 1_000,
      });
    }
    const deadlineAtMs = Number(call.getDeadline());
    if (!Number.isFinite(deadlineAtMs) && needsDeadline(method)) {
      throw new ProviderError("INVALID_FIELD", `cannot answer ${method.name}: it has no deadline`, {
        outcome: "NOT_APPLIED",
        fields: [{ path: "grpc-timeout", description: "every call carries a deadline" }],
      });
    }
    return deadlineAtMs;
  }

  #encode<O extends DescMessage>(schema: O, message: MessageShape<O>): Buffer {
    const bytes = toBinary(schema, message);
    if (bytes.length > this.#options.responseBytesMax) {
      throw new Error(
        `${schema.name} of ${bytes.length} bytes exceeds ${this.#options.responseBytesMax}`,
      );
    }
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  async #writeAll<O extends DescMessage>(
    call: ServerWritableStream<Buffer, Buffer>,
    schema: O,
    messages: AsyncIterable<MessageShape<O>>,
    signal: AbortSignal,
  ): Promise<void> {
    const iterator = messages[Symbol.asyncIterator]();
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    aborted.catch(() => undefined);
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      // Ends with the iterator, the caller, or the server: each of them is bounded elsewhere.
      for (;;) {
        signal.throwIfAborted();
        const next = await Promise.race([iterator.next(), aborted]);
        if (next.done === true) return;
        if (!call.write(this.#encode(schema, next.value))) {
          await Promise.race([drainOf(call), aborted]);
        }
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
      // Not awaited: a generator that waits for something else must not hold the call.
      void Promise.resolve(iterator.return?.()).catch((error: unknown) => {
        this.#options.log.warn({ error }, "stream handler failed while it ended");
      });
    }
  }

  #report(
    method: DescMethod,
    failure: ProviderError | undefined,
    call: { readonly startMs: number; readonly thrown: unknown },
  ): void {
    const durationMs = this.#options.clock.monotonicMs() - call.startMs;
    const code = failure?.code ?? "OK";
    this.#options.observe({ method: method.name, code, durationMs });
    const fields = { method: method.name, code, durationMs: Math.round(durationMs) };
    if (failure === undefined) {
      this.#options.log.info(fields, "call answered");
    } else if (failure.code === "INTERNAL" && failure !== call.thrown) {
      this.#options.log.error({ ...fields, error: call.thrown }, "call failed on a bug");
    } else {
      const { reason, message: error, facts } = failure;
      this.#options.log.info({ ...fields, reason, error, outcome: facts.outcome }, "call refused");
    }
  }
}

/** A health stream may last for ever, and GetProviderInfo touches no vendor; the rest must end. */
function needsDeadline(method: DescMethod): boolean {
  return method.methodKind === "unary" && method.name !== "GetProviderInfo";
}

function parseRequest<I extends DescMessage>(schema: I, bytes: Buffer): MessageShape<I> {
  try {
    return fromBinary(schema, bytes);
  } catch (cause) {
    throw new ProviderError("INVALID_FIELD", `cannot read ${schema.name}: it is not protobuf`, {
      outcome: "NOT_APPLIED",
      fields: [{ path: "", description: "the message cannot be decoded" }],
      cause,
    });
  }
}

function unsupported(method: DescMethod): ProviderError {
  return new ProviderError("UNSUPPORTED", `this adapter does not serve ${method.name}`, {
    outcome: "NOT_APPLIED",
    resource: method.name,
  });
}

function shuttingDown(what: string): ProviderError {
  // Nothing was applied by a call that is refused; one that is cut off must not claim so.
  return new ProviderError("SHUTTING_DOWN", `call ${what}: the adapter is stopping`, {
    outcome: what === "refused" ? "NOT_APPLIED" : "UNKNOWN",
  });
}

/** What the caller is told. A bug tells nothing of itself: it may hold anything. */
function errorToSend(error: unknown, signal: AbortSignal): ProviderError {
  if (error instanceof ProviderError) return error;
  if (signal.aborted) {
    if (signal.reason instanceof ProviderError) return signal.reason;
    return ProviderError.foreign("CANCELLED", "the caller left or its deadline passed");
  }
  return ProviderError.foreign("INTERNAL", "the adapter failed on a bug; its log says more");
}

function responseOf(error: ProviderError, isMutation: boolean): ServerErrorResponse {
  const wire = toWireStatus(error, { isMutation });
  const metadata = new Metadata();
  metadata.set(detailsKey, Buffer.from(wire.details));
  // Our answers are not the transport's to retry; only a stopping replica leaves it to try another.
  if (error.reason !== "SHUTTING_DOWN") metadata.set(pushbackKey, "-1");
  const { message } = wire;
  return { name: "ProviderError", code: status[error.code], message, details: message, metadata };
}

function drainOf(call: ServerWritableStream<Buffer, Buffer>): Promise<void> {
  return new Promise((resolve) => call.once("drain", () => resolve()));
}
