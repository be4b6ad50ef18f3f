/**
 * The suite's own client: connect-node's gRPC over HTTP/2. Another implementation of the wire than
 * the controller's and the adapters', so that nothing passes because one library is at both ends.
 *
 * Whatever comes is a value: an answer or a failure. Only mistakes of the suite throw.
 */
import { readFileSync } from "node:fs";
import { create, toBinary } from "@bufbuild/protobuf";
import type {
  DescMessage,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import {
  ProviderAPI,
  WatchHealthRequestSchema,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { WatchHealthResponse } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { describeFailure, rpcFailureOf } from "./rpc-failure.ts";
import type { RpcFailure } from "./rpc-failure.ts";

export type Reply<T> =
  | { readonly kind: "answer"; readonly answer: T }
  | { readonly kind: "failure"; readonly failure: RpcFailure };

export interface TlsFiles {
  readonly ca: string;
  /** Absent: no certificate is shown. */
  readonly cert?: string;
  readonly key?: string;
}

export interface WireClientOptions {
  /** host:port */
  readonly address: string;
  readonly tls?: TlsFiles;
  /** Texts that no answer may hold. */
  readonly secrets: readonly string[];
}

export interface WireCall {
  /** 10 s when absent; "none": the call carries no deadline (and is given up after 10 s). */
  readonly deadlineMs?: number | "none";
  readonly signal?: AbortSignal;
}

/** A secret that was seen in an answer. The secret itself is not repeated. */
export interface SeenSecret {
  readonly method: string;
  readonly where: string;
}

const deadlineMsDefault = 10_000;

export class WireClient {
  readonly address: string;
  /** What leaked, in the order in which it was seen; at most 100. */
  readonly seenSecrets: SeenSecret[] = [];
  readonly transport: Transport;
  readonly #options: WireClientOptions;
  readonly #sessions: Http2SessionManager;

  constructor(options: WireClientOptions) {
    this.address = options.address;
    this.#options = options;
    const { tls } = options;
    const baseUrl = `${tls === undefined ? "http" : "https"}://${options.address}`;
    const files = tls === undefined ? {} : tlsOptionsOf(tls);
    this.#sessions = new Http2SessionManager(baseUrl, {}, files);
    this.transport = createGrpcTransport({ baseUrl, sessionManager: this.#sessions });
  }

  async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    call: WireCall = {},
  ): Promise<Reply<MessageShape<O>>> {
    const { deadlineMs = deadlineMsDefault } = call;
    const giveUp = AbortSignal.timeout(deadlineMsDefault * 6);
    const signal = call.signal === undefined ? giveUp : AbortSignal.any([call.signal, giveUp]);
    const timeoutMs = deadlineMs === "none" ? undefined : deadlineMs;
    try {
      const message = create(method.input, request);
      const response = await this.transport.unary(method, signal, timeoutMs, undefined, message);
      this.#look(method.name, "the answer", toBinary(method.output, response.message));
      return { kind: "answer", answer: response.message };
    } catch (error) {
      return { kind: "failure", failure: this.#failureOf(method.name, error) };
    }
  }

  /**
   * Messages of a health stream until `signal` aborts. A failure ends the sequence as its last
   * element; so does the adapter when it ends the stream, with code OK.
   */
  async *watchHealth(
    request: MessageInitShape<typeof WatchHealthRequestSchema>,
    signal: AbortSignal,
  ): AsyncGenerator<Reply<WatchHealthResponse>, void, undefined> {
    const { watchHealth } = createClient(ProviderAPI, this.transport);
    try {
      for await (const message of watchHealth(create(WatchHealthRequestSchema, request), {
        signal,
      })) {
        this.#look(
          "WatchHealth",
          "a message",
          toBinary(ProviderAPI.method.watchHealth.output, message),
        );
        yield { kind: "answer", answer: message };
      }
    } catch (error) {
      if (signal.aborted) return;
      yield { kind: "failure", failure: this.#failureOf("WatchHealth", error) };
    }
  }

  close(): void {
    this.#sessions.abort();
  }

  #failureOf(method: string, error: unknown): RpcFailure {
    const connectError = ConnectError.from(error, Code.Internal);
    this.#look(method, "the error's message", connectError.rawMessage);
    for (const detail of connectError.details) {
      if (isRawDetail(detail)) this.#look(method, "an error's detail", detail.value);
    }
    connectError.metadata.forEach((value, name) => this.#look(method, `trailer ${name}`, value));
    return rpcFailureOf(connectError);
  }

  #look(method: string, where: string, content: string | Uint8Array): void {
    const bytes = Buffer.from(content);
    const isSecret = this.#options.secrets.some((secret) => bytes.includes(secret));
    if (isSecret && this.seenSecrets.length < 100) this.seenSecrets.push({ method, where });
  }
}

/** As it came from the wire; the other form is for details that a server is about to send. */
function isRawDetail(
  detail: ConnectError["details"][number],
): detail is { readonly type: string; readonly value: Uint8Array } {
  return "value" in detail && detail.value instanceof Uint8Array;
}

/** For people: what a call came to. */
export function describeReply(reply: Reply<unknown>): string {
  return reply.kind === "failure" ? describeFailure(reply.failure) : "it was answered with OK";
}

function tlsOptionsOf({ ca, cert, key }: TlsFiles): Record<string, Buffer> {
  return {
    ca: readFileSync(ca),
    ...(cert === undefined ? {} : { cert: readFileSync(cert) }),
    ...(key === undefined ? {} : { key: readFileSync(key) }),
  };
}
