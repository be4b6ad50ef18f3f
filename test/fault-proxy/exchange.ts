/** One request on its way through the proxy, and what befalls it there and back. */
import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  IncomingHttpHeaders,
  ServerHttp2Stream,
} from "node:http2";
import { setTimeout as delay } from "node:timers/promises";

import { assertNever } from "../../services/process/assert-never.ts";
import type { Fault } from "./fault-rule.ts";
import { splitInsideCharacter, WatchLines } from "./watch-lines.ts";
import type { OpenRequest } from "./seen-requests.ts";

/** An answer as it was recorded. */
export interface Recorded {
  status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly chunks: Buffer[];
}

export interface ExchangeParts {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly request: OpenRequest;
  readonly faults: readonly Fault[];
  /** As the rules stand at the moment. */
  readonly lineFaults: () => readonly Fault[];
  readonly records: Map<string, Recorded>;
  readonly upstream: () => ClientHttp2Session;
  /** Of the client's connection. */
  readonly connection: {
    cut(): void;
    blackHole(): void;
    goaway(code: number): void;
  };
}

const bodyBytesMax = 16 << 20;
const recordBytesMax = 64 << 20;
const refusedStreamCode = 7;
const cancelCode = 8;
const internalErrorCode = 2;

export class Exchange {
  readonly #parts: ExchangeParts;
  readonly #lines: WatchLines;
  #sentBytes = 0;
  #isRecording = true;
  #upstream: ClientHttp2Stream | undefined;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
    this.#lines = new WatchLines((line) => this.#send(line), parts.lineFaults);
    const { stream, request } = parts;
    // Errors end in "close".
    stream.on("error", () => undefined);
    stream.on("close", () => {
      request.endedAtMs = Date.now();
      this.#upstream?.close(cancelCode);
    });
  }

  /** Call it when the rules have changed. */
  rulesChanged(): void {
    this.#isRecording = false;
    this.#lines.release();
  }

  async run(): Promise<void> {
    const body = await readBody(this.#parts.stream);
    for (const fault of this.#parts.faults) {
      if ((await this.#before(fault)) === "over" || this.#parts.stream.destroyed) return;
    }
    if (!this.#parts.stream.destroyed) this.#forward(body);
  }

  /** Before anything is passed on; "over" where nothing shall be. */
  async #before(fault: Fault): Promise<"over" | "goes-on"> {
    const { connection } = this.#parts;
    switch (fault.kind) {
      case "delay":
        await delay(fault.ms, undefined, { ref: false });
        return "goes-on";
      case "goaway":
        connection.goaway(fault.code);
        return "goes-on";
      case "drop":
        return "over";
      case "half-open":
        connection.blackHole();
        return "over";
      case "status":
        this.#answerStatus(fault);
        return "over";
      case "watch-error":
        this.#respond(200);
        this.#send(line({ type: "ERROR", object: statusOf(fault) }));
        this.#parts.stream.end();
        return "over";
      case "replay":
        return this.#replay(fault);
      case "cut":
      case "reset":
      case "lose-answer":
      case "record":
      case "split":
      case "hold-events":
      case "drop-bookmarks":
      case "rewrite":
        return "goes-on";
      default:
        return assertNever(fault);
    }
  }

  #answerStatus(fault: Fault & { readonly kind: "status" }): void {
    const { retryAfterSeconds } = fault;
    const hint = retryAfterSeconds === undefined ? {} : { "retry-after": `${retryAfterSeconds}` };
    this.#respond(fault.status, hint);
    this.#send(line(statusOf(fault)));
    this.#parts.stream.end();
  }

  #replay(fault: Fault & { readonly kind: "replay" }): "over" | "goes-on" {
    const record = this.#parts.records.get(fault.of);
    if (record === undefined) throw new Error(`nothing is recorded as "${fault.of}"`);
    this.#respond(record.status, record.headers);
    for (const chunk of record.chunks) this.#send(chunk);
    if (fault.afterwards === "live") return "goes-on";
    if (fault.afterwards === "end") this.#parts.stream.end();
    return "over";
  }

  #forward(body: Buffer): void {
    const { stream, headers, request } = this.#parts;
    const session = this.#parts.upstream();
    // The API server is leaving: nothing of this request was done.
    if (session.closed || session.destroyed) return stream.close(refusedStreamCode);
    const upstream = session.request(passedOn(headers), { endStream: body.length === 0 });
    this.#upstream = upstream;
    if (body.length > 0) upstream.end(body);
    upstream.on("error", () => {
      if (!stream.closed) stream.close(internalErrorCode);
    });
    upstream.on("response", (answered) => {
      const status = answered[":status"] ?? 502;
      const kept = plainHeaders(answered);
      const lost = this.#fault("lose-answer");
      const chunks = this.#record({ status, headers: kept });
      if (lost === undefined) this.#respond(status, kept);
      upstream.on("data", (chunk: Buffer) => {
        chunks?.push(chunk);
        if (lost !== undefined || stream.destroyed) return;
        if (request.isWatch) this.#lines.push(chunk);
        else this.#send(chunk);
        if (stream.writableNeedDrain && !upstream.isPaused()) {
          upstream.pause();
          stream.once("drain", () => upstream.resume());
        }
      });
      upstream.on("end", () => {
        if (lost !== undefined) this.#lose(lost.how);
        else if (this.#sentBytes < this.#bytesUntilEnd()) stream.end();
      });
    });
  }

  /** Where the answer is to be kept; undefined: nowhere. */
  #record(answered: Omit<Recorded, "chunks">): { push(chunk: Buffer): void } | undefined {
    const fault = this.#fault("record");
    if (fault === undefined) return undefined;
    const record: Recorded = { ...answered, chunks: [] };
    this.#parts.records.set(fault.as, record);
    let bytes = 0;
    return {
      push: (chunk) => {
        bytes += chunk.length;
        if (this.#isRecording && bytes <= recordBytesMax) record.chunks.push(Buffer.from(chunk));
      },
    };
  }

  #lose(how: "reset" | "cut" | "silence"): void {
    if (how === "cut") this.#parts.connection.cut();
    else if (how === "reset") this.#parts.stream.close(internalErrorCode);
  }

  #respond(status: number, headers: Readonly<Record<string, string>> = {}): void {
    const { stream, request } = this.#parts;
    if (stream.destroyed || stream.closed || stream.headersSent) return;
    const reset = this.#fault("reset");
    if (reset?.afterBytes === 0) return stream.close(reset.code);
    request.status = status;
    // Node ends a stream before it resets it; with trailers to come, that end says nothing yet.
    const waitForTrailers = reset !== undefined;
    if (waitForTrailers) stream.on("wantTrailers", () => stream.close());
    const sent = { ":status": status, "content-type": "application/json", ...headers };
    stream.respond(sent, { waitForTrailers });
    this.#endIfDue();
  }

  #send(answered: Buffer): void {
    const { stream } = this.#parts;
    const bytes = this.#rewritten(answered);
    const parts = this.#fault("split") === undefined ? [bytes] : splitInsideCharacter(bytes);
    for (const part of parts) {
      if (stream.destroyed || stream.closed || stream.writableEnded) return;
      const leftBytes = this.#bytesUntilEnd() - this.#sentBytes;
      stream.write(part.subarray(0, leftBytes));
      this.#sentBytes += Math.min(part.length, leftBytes);
      this.#endIfDue();
    }
  }

  #rewritten(bytes: Buffer): Buffer {
    let now = bytes;
    for (const fault of this.#parts.lineFaults()) {
      if (fault.kind !== "rewrite" || !now.includes(fault.text)) continue;
      now = Buffer.from(now.toString("latin1").replaceAll(fault.text, fault.by), "latin1");
    }
    return now;
  }

  #bytesUntilEnd(): number {
    const fault = this.#fault("cut") ?? this.#fault("reset");
    return fault?.afterBytes ?? Number.POSITIVE_INFINITY;
  }

  /** After the bytes that a fault lets through, once they have left. */
  #endIfDue(): void {
    if (this.#sentBytes < this.#bytesUntilEnd()) return;
    const { stream, connection } = this.#parts;
    const reset = this.#fault("reset");
    setImmediate(() => {
      if (this.#fault("cut") !== undefined) connection.cut();
      else if (reset !== undefined && !stream.closed) stream.close(reset.code);
    });
  }

  #fault<Kind extends Fault["kind"]>(kind: Kind): (Fault & { readonly kind: Kind }) | undefined {
    const isOfKind = (fault: Fault): fault is Fault & { readonly kind: Kind } =>
      fault.kind === kind;
    return this.#parts.faults.find(isOfKind);
  }
}

function statusOf({
  status,
  reason,
  ...rest
}: {
  readonly status: number;
  readonly reason: string;
  readonly retryAfterSeconds?: number;
}): object {
  const { retryAfterSeconds } = rest;
  const details = retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } };
  const message = "a fault of the test's proxy";
  return {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code: status,
    reason,
    message,
    ...details,
  };
}

function line(json: object): Buffer {
  return Buffer.from(`${JSON.stringify(json)}\n`);
}

/** Credentials among them: who asks is for the API server to judge. */
function passedOn(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && ![":authority", ":scheme", "host"].includes(name)) {
      kept[name] = value;
    }
  }
  return kept;
}

/** Without those that speak of a length, which faults change. */
function plainHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === "string" && !name.startsWith(":") && name !== "content-length") {
      kept[name] = value;
    }
  }
  return kept;
}

async function readBody(stream: ServerHttp2Stream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    const part = Buffer.from(chunk);
    bytes += part.length;
    if (bytes > bodyBytesMax) throw new Error(`a body of more than ${bodyBytesMax} bytes`);
    chunks.push(part);
  }
  return Buffer.concat(chunks);
}
