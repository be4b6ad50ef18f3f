/** The vendor's API over HTTPS, with the faults of a script. */
import { createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

import { systemClock } from "../../../services/process/clock.ts";
import { answerApi, ownerOf } from "./api.ts";
import type { ApiAnswer, ApiRequest } from "./api.ts";
import type { Director } from "./director.ts";
import {
  closeServer,
  listenOnLoopback,
  readBody,
} from "../../../services/vendor-emulator/loopback-server.ts";
import type { LoopbackServer } from "../../../services/vendor-emulator/loopback-server.ts";
import type { Effect, Fault } from "./script.ts";
import { errorAnswer } from "./vendor-errors.ts";
import type { RequestRecord, World } from "./world.ts";

/** Hosts that lead to a workspace of their own; all others lead to "global". */
const workspaceOfHost: Readonly<Record<string, string>> = {
  "api.eu.residency.elevenlabs.io": "eu",
  "api.in.residency.elevenlabs.io": "in",
  "api.sg.residency.elevenlabs.io": "sg",
};

/** Names that the certificate has to carry. */
export const apiHosts: readonly string[] = [
  "api.elevenlabs.io",
  "api.us.elevenlabs.io",
  ...Object.keys(workspaceOfHost),
];

export interface ApiServerParts {
  readonly world: World;
  readonly director: Director;
  readonly tls: { readonly cert: string; readonly key: string };
  readonly port: number;
}

export async function startApiServer(parts: ApiServerParts): Promise<LoopbackServer> {
  const sockets = new Map<number, Socket>();
  const server = createServer({ ...parts.tls, minVersion: "TLSv1.2" }, (request, response) => {
    const desk = new Desk(parts, sockets);
    desk.serve(request, response).catch(() => request.socket.destroy());
  });
  // A reset has to happen below TLS: the encrypted socket can only say goodbye.
  server.on("connection", (socket: Socket) => {
    const port = socket.remotePort ?? 0;
    sockets.set(port, socket);
    socket.on("close", () => sockets.delete(port));
  });
  server.keepAliveTimeout = 30_000;
  const port = await listenOnLoopback(server, parts.port);
  return { port, close: () => closeServer(server) };
}

/** What one request comes to. */
interface Ending {
  readonly answer: ApiAnswer | undefined;
  readonly status: RequestRecord["status"];
  readonly isFaulty: boolean;
}

class Desk {
  readonly #parts: ApiServerParts;
  readonly #sockets: ReadonlyMap<number, Socket>;

  constructor(parts: ApiServerParts, sockets: ReadonlyMap<number, Socket>) {
    this.#parts = parts;
    this.#sockets = sockets;
  }

  async serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = apiRequestOf(incoming, await readBody(incoming));
    const { director, world } = this.#parts;
    const userId = ownerOf(world, request)?.userId ?? "";
    const fault = director.meet(request.method, request.path, userId);
    if (fault === undefined) {
      const answer = answerApi(world, request);
      this.#record(request, { answer, status: answer.status, isFaulty: false });
      send(response, answer);
      return;
    }
    if (fault.delayMs > 0) await systemClock.sleep(fault.delayMs);
    director.run(fault.console);
    this.#befall(request, response, fault);
  }

  #befall(request: ApiRequest, response: ServerResponse, { effect, isAfter }: Fault): void {
    const { world } = this.#parts;
    const isServed = isAfter || effect.kind === "pass" || effect.kind === "cut";
    const answer = isServed ? answerApi(world, request) : undefined;
    const end = (status: Ending["status"]): void =>
      this.#record(request, { answer, status, isFaulty: true });
    switch (effect.kind) {
      case "hang":
        end("hang");
        return;
      case "reset":
        end("reset");
        this.#sockets.get(response.socket?.remotePort ?? 0)?.resetAndDestroy();
        return;
      case "cut":
        end("cut");
        cut(response, answer);
        return;
      default:
        this.#answer(response, answer, effect, end);
    }
  }

  #answer(
    response: ServerResponse,
    answer: ApiAnswer | undefined,
    effect: Extract<Effect, { kind: "pass" | "error" | "answer" }>,
    end: (status: number) => void,
  ): void {
    switch (effect.kind) {
      case "error": {
        const error = errorAnswer(effect.name, this.#parts.world.settings);
        end(error.status);
        for (const [name, value] of Object.entries(effect.headers)) response.setHeader(name, value);
        send(response, error);
        return;
      }
      case "answer":
        end(effect.status);
        response.writeHead(effect.status, effect.headers).end(effect.text);
        return;
      default:
        end(answer?.status ?? 500);
        send(response, answer ?? { status: 500 });
    }
  }

  #record(request: ApiRequest, { answer, status, isFaulty }: Ending): void {
    const { world } = this.#parts;
    world.record({
      method: request.method,
      path: request.path,
      query: Object.fromEntries(request.query),
      userId: ownerOf(world, request)?.userId ?? "",
      status,
      change: answer?.change ?? "none",
      agentId: answer?.agentId ?? "",
      isFaulty,
    });
  }
}

function apiRequestOf(incoming: IncomingMessage, body: string): ApiRequest {
  const { method = "GET", headers } = incoming;
  const url = new URL(incoming.url ?? "/", "https://emulator");
  const host = (headers.host ?? "").replace(/:\d+$/, "");
  const apiKey = headers["xi-api-key"];
  return {
    method,
    path: url.pathname,
    query: url.searchParams,
    workspace:
      (Object.hasOwn(workspaceOfHost, host) ? workspaceOfHost[host] : undefined) ?? "global",
    apiKey: typeof apiKey === "string" ? apiKey : undefined,
    body,
  };
}

function send(
  response: ServerResponse,
  { status, body }: Pick<ApiAnswer, "status" | "body">,
): void {
  if (body === undefined) response.writeHead(status).end();
  else response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function cut(response: ServerResponse, answer: ApiAnswer | undefined): void {
  const text = JSON.stringify(answer?.body ?? {});
  const headers = { "content-type": "application/json", "content-length": text.length + 16 };
  response.writeHead(answer?.status ?? 200, headers);
  response.write(text.slice(0, Math.ceil(text.length / 2)), () => response.socket?.destroy());
}
