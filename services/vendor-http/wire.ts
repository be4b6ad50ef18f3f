/**
 * One HTTP exchange over undici, whole and bounded, that knows whether its request left this
 * process: a mutation that was never written cannot have been applied.
 *
 * HTTP/1.1 without pipelining: `onRequestStart` then comes right before the bytes are written, so
 * what is thrown there stops the request for certain. Redirects are not followed, bodies are not
 * decompressed, nothing is retried.
 */
import { Agent } from "undici";
import type { Dispatcher } from "undici";

import type { Clock, Timer } from "../process/clock.ts";
import type { AddressRules } from "./allow-list.ts";
import { guardedLookup } from "./guarded-lookup.ts";

/** Limits of the connections to vendors. Durations in ms, sizes in bytes. */
export interface WireOptions {
  readonly connectTimeoutMs: number;
  /** From the request's last byte to the answer's last header. */
  readonly headersTimeoutMs: number;
  /** Between two pieces of a body. */
  readonly bodyTimeoutMs: number;
  /** Of an answer, where its request says nothing else. */
  readonly bodyBytesMax: number;
  readonly headerBytesMax: number;
  readonly connectionsPerOriginMax: number;
  readonly originsMax: number;
  /** How long an idle connection is kept; short, so that few requests meet a connection just closed. */
  readonly idleMs: number;
  /** Certificates (PEM) to trust; absent: those that Node trusts. */
  readonly trustedCertificates?: readonly string[];
}

export const defaultWireOptions: WireOptions = {
  connectTimeoutMs: 5_000,
  headersTimeoutMs: 30_000,
  bodyTimeoutMs: 10_000,
  bodyBytesMax: 4 * 1024 * 1024,
  headerBytesMax: 16 * 1024,
  connectionsPerOriginMax: 256,
  originsMax: 1000,
  idleMs: 4_000,
};

/** One request as it goes out. */
export interface WireRequest {
  readonly origin: string;
  /** With query. */
  readonly path: string;
  readonly method: Dispatcher.HttpMethod;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Undefined: `WireOptions.bodyBytesMax`. */
  readonly answerBytesMax?: number | undefined;
  /** For the whole exchange, waiting for a connection included. */
  readonly totalMs: number;
  /** Ends the exchange; with `isDetachedOnceSent` only until the request is written. */
  readonly signal: AbortSignal;
  readonly isDetachedOnceSent: boolean;
  /** Called right before the first byte is written; what it throws stops the request. */
  readonly onSending: () => void;
}

export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Why an exchange brought no answer. */
export type WireFailureKind =
  | "stopped" // by onSending: `cause` is what it threw
  | "cancelled" // by the signal
  | "address-refused"
  | "unreachable"
  | "timeout"
  | "unreadable";

/** `message` says what happened in plain words, without the host. */
export class WireError extends Error {
  override readonly name = "WireError";
  readonly kind: WireFailureKind;
  /** False: no byte of the request was written. */
  readonly isSent: boolean;

  constructor(kind: WireFailureKind, message: string, isSent: boolean, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
    this.isSent = isSent;
  }
}

/** The connections of one process. */
export class Wire {
  readonly #agent: Agent;
  readonly #options: WireOptions;
  readonly #clock: Clock;

  constructor(options: WireOptions, addresses: AddressRules, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    const { trustedCertificates } = options;
    this.#agent = new Agent({
      allowH2: false,
      pipelining: 1,
      connections: options.connectionsPerOriginMax,
      maxOrigins: options.originsMax,
      connectTimeout: options.connectTimeoutMs,
      headersTimeout: options.headersTimeoutMs,
      bodyTimeout: options.bodyTimeoutMs,
      keepAliveTimeout: options.idleMs,
      keepAliveMaxTimeout: options.idleMs,
      keepAliveTimeoutThreshold: 1000,
      maxHeaderSize: options.headerBytesMax,
      strictContentLength: true,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: 250,
      connect: {
        lookup: guardedLookup(addresses),
        rejectUnauthorized: true,
        minVersion: "TLSv1.2",
        keepAlive: true,
        keepAliveInitialDelay: 15_000,
        ...(trustedCertificates === undefined ? {} : { ca: [...trustedCertificates] }),
      },
    });
  }

  /** Rejects with WireError and nothing else. */
  exchange(request: WireRequest): Promise<WireAnswer> {
    return new Promise((resolve, reject) => {
      const exchange = new Exchange(request, this.#options, { resolve, reject });
      if (!exchange.begin(this.#clock)) return;
      const { origin, path, method, headers, body } = request;
      try {
        this.#agent.dispatch({ origin, path, method, headers, body: body ?? null }, exchange);
      } catch (error) {
        exchange.onResponseError(undefined, asError(error));
      }
    });
  }

  /** Ends all connections; exchanges in flight fail. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

interface Settlers {
  resolve(answer: WireAnswer): void;
  reject(error: WireError): void;
}

/** One exchange's state, as undici tells it. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: WireRequest;
  readonly #options: WireOptions;
  readonly #settlers: Settlers;
  #timer: Timer | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #isSent = false;
  #failure: WireError | undefined;
  #isSettled = false;
  #head: { readonly status: number; readonly headers: Record<string, string> } | undefined;
  readonly #chunks: Buffer[] = [];
  #bodyBytes = 0;

  constructor(request: WireRequest, options: WireOptions, settlers: Settlers) {
    this.#request = request;
    this.#options = options;
    this.#settlers = settlers;
  }

  /** Starts the clock; false when the signal had ended it already. */
  begin(clock: Clock): boolean {
    const { signal, totalMs } = this.#request;
    if (signal.aborted) {
      this.#onAbort();
      return false;
    }
    signal.addEventListener("abort", this.#onAbort, { once: true });
    this.#timer = clock.setTimer(totalMs, () =>
      this.#fail("timeout", `no complete answer within ${totalMs} ms`),
    );
    return true;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#failure !== undefined) throw this.#failure;
    try {
      this.#request.onSending();
    } catch (error) {
      this.#fail("stopped", "stopped before sending", error);
      throw error;
    }
    this.#isSent = true;
    if (this.#request.isDetachedOnceSent) {
      this.#request.signal.removeEventListener("abort", this.#onAbort);
    }
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // 1xx is no answer yet.
    if (status < 200) return;
    this.#head = { status, headers: flatten(headers) };
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bodyBytes += chunk.length;
    const bytesMax = this.#request.answerBytesMax ?? this.#options.bodyBytesMax;
    if (this.#bodyBytes > bytesMax) {
      this.#fail("unreadable", `body larger than ${bytesMax} bytes`);
      return;
    }
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (this.#isSettled || this.#head === undefined) return;
    this.#settle();
    this.#settlers.resolve({ ...this.#head, text: Buffer.concat(this.#chunks).toString("utf8") });
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    const { kind, message } = explain(error, this.#head !== undefined);
    this.#fail(kind, message, error);
  }

  readonly #onAbort = (): void => {
    this.#fail("cancelled", "the caller's deadline ended or the caller left");
  };

  #fail(kind: WireFailureKind, message: string, cause?: unknown): void {
    if (this.#isSettled) return;
    this.#settle();
    this.#failure = new WireError(kind, message, this.#isSent, cause);
    this.#settlers.reject(this.#failure);
    // Without a controller it still waits for a connection: onRequestStart will stop it.
    if (this.#controller?.aborted === false) this.#controller.abort(this.#failure);
  }

  #settle(): void {
    this.#isSettled = true;
    this.#timer?.cancel();
    this.#request.signal.removeEventListener("abort", this.#onAbort);
  }
}

function flatten(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return flat;
}

interface Explanation {
  readonly kind: WireFailureKind;
  readonly message: string;
}

/** Node's and undici's error codes in plain words; those of TLS are told apart by their prefix. */
const words: Readonly<Record<string, Explanation>> = {
  DHP_ADDRESS_REFUSED: { kind: "address-refused", message: "the host has a private address" },
  ECONNREFUSED: { kind: "unreachable", message: "connection refused" },
  ECONNRESET: { kind: "unreachable", message: "connection reset" },
  UND_ERR_SOCKET: { kind: "unreachable", message: "connection closed by the other side" },
  ENOTFOUND: { kind: "unreachable", message: "host name not found" },
  EAI_AGAIN: { kind: "unreachable", message: "host name lookup failed" },
  EHOSTUNREACH: { kind: "unreachable", message: "host unreachable" },
  ENETUNREACH: { kind: "unreachable", message: "network unreachable" },
  ETIMEDOUT: { kind: "unreachable", message: "connection timed out" },
  UND_ERR_CONNECT_TIMEOUT: { kind: "unreachable", message: "connection timed out" },
  UND_ERR_HEADERS_TIMEOUT: { kind: "timeout", message: "no answer in time" },
  UND_ERR_BODY_TIMEOUT: { kind: "timeout", message: "the answer stopped halfway" },
  UND_ERR_HEADERS_OVERFLOW: { kind: "unreadable", message: "answer headers too large" },
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: { kind: "unreadable", message: "answer of another length" },
};

function explain(error: Error, hasHead: boolean): Explanation {
  const code = codeOf(error);
  const known = words[code];
  const isCut = hasHead && (known === undefined || known.kind === "unreachable");
  if (isCut) return { kind: "unreadable", message: "the answer was cut off" };
  if (known?.kind === "address-refused") return { kind: known.kind, message: error.message };
  if (known !== undefined) return known;
  if (code.startsWith("HPE_")) return { kind: "unreadable", message: "the answer is not HTTP" };
  const isTls = /^(ERR_TLS|ERR_SSL|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|EPROTO)/.test(code);
  if (isTls) return { kind: "unreachable", message: `TLS failed (${code})` };
  return { kind: "unreachable", message: code === "" ? error.name : code };
}

/** With several addresses tried, the code is on the attempts. */
function codeOf(error: Error): string {
  if ("code" in error && typeof error.code === "string") return error.code;
  if (error instanceof AggregateError) {
    const [first] = error.errors;
    if (first instanceof Error) return codeOf(first);
  }
  return "";
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error("not an error", { cause: error });
}
