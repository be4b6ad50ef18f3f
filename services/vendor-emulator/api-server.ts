/** The vendor's API over HTTPS, with what befalls its requests. */
import { createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

import { assertNever } from "../process/assert-never.ts";
import { systemClock } from "../process/clock.ts";
import { closeServer, listenOnLoopback, readBody } from "./loopback-server.ts";
import type { LoopbackServer } from "./loopback-server.ts";
import type { Fault, NetworkEffect, Operation, VendorEffect } from "./fault-words.ts";
import { networkEffects } from "./fault-words.ts";
import type { VendorDesk } from "./vendor-desk.ts";
import type { ApiAnswer, ApiRequest } from "./vendor-model.ts";

export interface ApiServerParts {
  readonly desk: VendorDesk;
  readonly tls: { readonly cert: string; readonly key: string };
  readonly port: number;
}

const oversizedBytes = 64 << 20;
const pieceBytes = 1 << 20;

export async function startApiServer({ desk, tls, port }: ApiServerParts): Promise<LoopbackServer> {
  const sockets = new Map<number, Socket>();
  const server = createServer({ ...tls, minVersion: "TLSv1.2" }, (request, response) => {
    const visit = new Visit(desk, response, sockets);
    visit.serve(request).catch(() => request.socket.destroy());
  });
  // A reset has to happen below TLS: the encrypted socket can only say goodbye.
  server.on("connection", (socket: Socket) => {
    const remote = socket.remotePort ?? 0;
    sockets.set(remote, socket);
    socket.on("close", () => sockets.delete(remote));
  });
  server.keepAliveTimeout = 30_000;
  const taken = await listenOnLoopback(server, port);
  return { port: taken, close: () => closeServer(server) };
}

/** One request from its arrival to its answer. */
class Visit {
  readonly #desk: VendorDesk;
  readonly #response: ServerResponse;
  readonly #sockets: ReadonlyMap<number, Socket>;

  constructor(desk: VendorDesk, response: ServerResponse, sockets: ReadonlyMap<number, Socket>) {
    this.#desk = desk;
    this.#response = response;
    this.#sockets = sockets;
  }

  async serve(incoming: IncomingMessage): Promise<void> {
    const request = apiRequestOf(incoming, await readBody(incoming));
    const { model, faults } = this.#desk;
    const operation = model.operationOf(request) ?? "any";
    const fault = faults.meet(operation);
    if (fault === undefined) {
      this.#send(this.#carryOut(operation, request));
      return;
    }
    if (isNetworkEffect(fault.effect))
      await this.#befall(fault.effect, { fault, operation, request });
    else this.#refuse(fault.effect, { fault, operation, request });
  }

  #carryOut(operation: Operation, request: ApiRequest): ApiAnswer {
    const answer = this.#desk.model.answer(request);
    this.#desk.record(operation, answer);
    return answer;
  }

  /** The true answer where the fault comes after the effect; else none, and the request is recorded. */
  #effectOf({ fault, operation, request }: Befallen): ApiAnswer | undefined {
    if (fault.moment === "after") return this.#carryOut(operation, request);
    this.#desk.record(operation, undefined);
    return undefined;
  }

  #refuse(effect: VendorEffect, befallen: Befallen): void {
    this.#effectOf(befallen);
    const { fault, request } = befallen;
    this.#send(this.#desk.model.say(effect, request, fault.retryAfterMs));
  }

  async #befall(effect: NetworkEffect, befallen: Befallen): Promise<void> {
    const { fault, operation, request } = befallen;
    switch (effect) {
      case "slow": {
        // Before: the vendor takes its time; after: its answer does.
        const early = fault.moment === "after" ? this.#carryOut(operation, request) : undefined;
        await systemClock.sleep(fault.delayMs ?? 0);
        this.#send(early ?? this.#carryOut(operation, request));
        return;
      }
      case "hang":
        this.#effectOf(befallen);
        return;
      case "reset":
        this.#effectOf(befallen);
        this.#sockets.get(this.#response.socket?.remotePort ?? 0)?.resetAndDestroy();
        return;
      case "cut":
        this.#cut(this.#carryOut(operation, request));
        return;
      case "html":
        this.#effectOf(befallen);
        this.#send({ status: 200, headers: html, body: "<html><h1>Welcome</h1></html>" });
        return;
      case "oversized":
        this.#effectOf(befallen);
        await this.#flood();
        return;
      case "redirect":
        this.#effectOf(befallen);
        this.#send({ status: 302, headers: { location: "https://elsewhere.example/" } });
        return;
      default:
        assertNever(effect);
    }
  }

  #cut({ status, body }: ApiAnswer): void {
    const text = JSON.stringify(body ?? { cut: "off in the middle of this text" });
    const headers = { "content-type": "application/json", "content-length": text.length + 16 };
    this.#response.writeHead(status, headers);
    const half = text.slice(0, Math.ceil(text.length / 2));
    this.#response.write(half, () => this.#response.socket?.destroy());
  }

  /** Piece by piece, as far as the other side reads. */
  async #flood(): Promise<void> {
    const response = this.#response;
    response.writeHead(200, { "content-type": "application/json" });
    const piece = Buffer.alloc(pieceBytes, " ");
    for (let sent = 0; sent < oversizedBytes && !response.destroyed; sent += pieceBytes) {
      if (response.write(piece)) continue;
      await Promise.race([
        new Promise((resolve) => response.once("drain", resolve)),
        new Promise((resolve) => response.once("close", resolve)),
      ]);
    }
    response.end("{}");
  }

  #send({ status, headers = {}, body }: ApiAnswer): void {
    const type = typeof body === "string" ? html : json;
    if (body === undefined) this.#response.writeHead(status, { ...headers }).end();
    else {
      this.#response
        .writeHead(status, { ...type, ...headers })
        .end(typeof body === "string" ? body : JSON.stringify(body));
    }
  }
}

interface Befallen {
  readonly fault: Fault;
  readonly operation: Operation;
  readonly request: ApiRequest;
}

const html = { "content-type": "text/html; charset=utf-8" } as const;
const json = { "content-type": "application/json" } as const;

function isNetworkEffect(effect: Fault["effect"]): effect is NetworkEffect {
  return networkEffects.some((name) => name === effect);
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
