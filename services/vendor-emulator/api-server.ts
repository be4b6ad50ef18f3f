/** The vendor's API over HTTPS, with what befalls its requests. */
import { createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

import { systemClock } from "../process/clock.ts";
import { undisturbed } from "./incident.ts";
import type { Breakage, Ending } from "./incident.ts";
import { closeServer, listenOnLoopback, readBody } from "./loopback-server.ts";
import type { LoopbackServer } from "./loopback-server.ts";
import type { VendorDesk } from "./vendor-desk.ts";
import type { ApiAnswer, ApiRequest } from "./vendor-model.ts";

export interface ApiServerParts {
  readonly desk: VendorDesk;
  readonly tls: { readonly cert: string; readonly key: string };
  readonly port: number;
  /** How long every answer takes. */
  readonly answerMs: number;
}

const oversizedBytes = 64 << 20;
const pieceBytes = 1 << 20;

export async function startApiServer(parts: ApiServerParts): Promise<LoopbackServer> {
  const { desk, tls, port, answerMs } = parts;
  // By the port of the other side: a reset has to happen below TLS, since the encrypted socket can
  // only say goodbye.
  const sockets = new Map<number, Socket>();
  const stopping = new AbortController();
  const server = createServer({ ...tls, minVersion: "TLSv1.2" }, (request, response) => {
    const visit = new Visit({ desk, response, answerMs, stopped: stopping.signal });
    visit.serve(request).then(
      (ending) => {
        if (ending === "reset") sockets.get(request.socket.remotePort ?? 0)?.resetAndDestroy();
      },
      (error: unknown) => fail(response, error),
    );
  });
  server.on("connection", (socket: Socket) => {
    const remote = socket.remotePort ?? 0;
    sockets.set(remote, socket);
    socket.on("close", () => sockets.delete(remote));
  });
  server.keepAliveTimeout = 30_000;
  const taken = await listenOnLoopback(server, port);
  return {
    port: taken,
    close: async () => {
      stopping.abort(new Error("the emulator stops"));
      const closed = closeServer(server);
      for (const socket of sockets.values()) socket.destroy();
      await closed;
    },
  };
}

/** A mistake of the model's is told to whoever writes it; the vendor's own words are in `say`. */
function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const words = error instanceof Error ? error.message : String(error);
  response.writeHead(500, { "content-type": "text/plain; charset=utf-8" });
  response.end(`the emulator failed: ${words}`);
}

interface VisitParts {
  readonly desk: VendorDesk;
  readonly response: ServerResponse;
  readonly stopped: AbortSignal;
  readonly answerMs: number;
}

/** One request from its arrival to its answer. */
class Visit {
  readonly #desk: VendorDesk;
  readonly #response: ServerResponse;
  readonly #stopped: AbortSignal;
  readonly #answerMs: number;

  constructor(parts: VisitParts) {
    this.#desk = parts.desk;
    this.#response = parts.response;
    this.#stopped = parts.stopped;
    this.#answerMs = parts.answerMs;
  }

  /** @returns "reset": what is left to do, below TLS */
  async serve(incoming: IncomingMessage): Promise<Ending["kind"]> {
    const request = apiRequestOf(incoming, await readBody(incoming));
    const incident = this.#desk.meet(request);
    const { delayMs, meanwhile, isCarriedOut, answerDelayMs, ending } = incident;
    await this.#wait(delayMs);
    meanwhile?.();
    const truth = isCarriedOut ? this.#desk.model.answer(request) : undefined;
    const sent = ending.kind === "instead" ? ending.answer(truth) : (truth ?? { status: 200 });
    const isWhole = ending.kind === "truth" || ending.kind === "instead";
    this.#desk.record(request, {
      truth,
      sent: isWhole ? sent.status : ending.kind,
      isDisturbed: incident !== undisturbed,
    });
    await this.#wait(this.#answerMs + (answerDelayMs ?? 0));
    if (isWhole) this.#send(sent);
    else await this.#breakOff(ending.kind, sent);
    return ending.kind;
  }

  async #wait(delayMs = 0): Promise<void> {
    if (delayMs > 0) await systemClock.sleep(delayMs, this.#stopped);
  }

  async #breakOff(breakage: Breakage, truth: ApiAnswer): Promise<void> {
    if (breakage === "cut") this.#cut(truth);
    if (breakage === "oversized") await this.#flood(truth);
  }

  #cut({ status, body }: ApiAnswer): void {
    const response = this.#response;
    const end = (): void => void response.socket?.destroy();
    if (body === undefined) {
      // An empty answer is its head, so that is what is halved.
      response.socket?.write("HTTP/1.1 2", end);
      return;
    }
    const bytes = Buffer.from(textOf(body));
    const { type } = contentOf(body);
    response.writeHead(status, { "content-type": type, "content-length": bytes.length });
    response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), end);
  }

  /** Piece by piece, as far as the other side reads. */
  async #flood({ status, body = "" }: ApiAnswer): Promise<void> {
    this.#response.writeHead(status, { "content-type": "application/json" });
    const end = typeof body === "string" ? body : JSON.stringify(body);
    await pipeline(Readable.from(flood(end)), this.#response).catch(
      (_hungUp: unknown) => undefined,
    );
  }

  #send({ status, headers = {}, body }: ApiAnswer): void {
    if (body === undefined) this.#response.writeHead(status, headers).end();
    else {
      const head = { "content-type": contentOf(body).type, ...headers };
      this.#response.writeHead(status, head).end(textOf(body));
    }
  }
}

/** Blanks without meaning in JSON: whoever reads on and on understands the true answer in the end. */
function* flood(end: string): Generator<Buffer> {
  const piece = Buffer.alloc(pieceBytes, " ");
  for (let sent = 0; sent < oversizedBytes; sent += pieceBytes) yield piece;
  yield Buffer.from(end);
}

function contentOf(body: unknown): { readonly type: string } {
  return { type: typeof body === "string" ? "text/html; charset=utf-8" : "application/json" };
}

function textOf(body: unknown): string {
  return typeof body === "string" ? body : JSON.stringify(body);
}

function apiRequestOf(incoming: IncomingMessage, body: string): ApiRequest {
  const { method = "GET", headers } = incoming;
  const url = new URL(incoming.url ?? "/", "https://emulator");
  return {
    method,
    host: (headers.host ?? "").replace(/:\d+$/, ""),
    path: url.pathname,
    query: url.searchParams,
    headers: Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
      ),
    ),
    body,
  };
}
