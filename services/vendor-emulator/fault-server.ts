/** The port behind the scenes, HTTP and JSON on loopback; fault-words.ts says what it takes. */
import { createServer } from "node:http";
import type { IncomingMessage } from "node:http";

import { parseEdit, parseFault, parseNothing, parseSwitches } from "./fault-parse.ts";
import { closeServer, listenOnLoopback, readBody } from "./loopback-server.ts";
import type { LoopbackServer } from "./loopback-server.ts";
import type { VendorDesk } from "./vendor-desk.ts";

export interface FaultReply {
  readonly status: number;
  readonly body: unknown;
}

/** What one emulator answers beside the common words; undefined: it is none of its own either. */
export type OwnFaultRoutes = (method: string, path: string, body: string) => FaultReply | undefined;

export async function startFaultServer(
  desk: VendorDesk,
  options: { readonly port: number; readonly ownRoutes?: OwnFaultRoutes | undefined },
): Promise<LoopbackServer> {
  const server = createServer((request, response) => {
    reply(desk, request, options.ownRoutes)
      .catch((error: unknown): FaultReply => ({
        status: 400,
        body: { error: error instanceof Error ? error.message : String(error) },
      }))
      .then(({ status, body }) => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify(body));
      })
      .catch(() => response.destroy());
  });
  const port = await listenOnLoopback(server, options.port);
  return { port, close: () => closeServer(server) };
}

async function reply(
  desk: VendorDesk,
  request: IncomingMessage,
  ownRoutes: OwnFaultRoutes | undefined,
): Promise<FaultReply> {
  const { method = "GET" } = request;
  const url = new URL(request.url ?? "/", "http://emulator");
  const body = await readBody(request);
  const own = ownRoutes?.(method, url.pathname, body);
  if (own !== undefined) return own;
  switch (`${method} ${url.pathname}`) {
    case "GET /conformance":
      return { status: 200, body: desk.vocabulary };
    case "POST /conformance/faults":
      desk.faults.add(parseFault(jsonOf(body), desk.vocabulary));
      return { status: 200, body: {} };
    case "POST /conformance/switches":
      desk.turn(parseSwitches(jsonOf(body), desk.vocabulary));
      return { status: 200, body: {} };
    case "POST /conformance/edits":
      return {
        status: 200,
        body: { ids: desk.model.edit(parseEdit(jsonOf(body), desk.vocabulary)) },
      };
    case "POST /conformance/reset":
      parseNothing(jsonOf(body));
      desk.reset();
      return { status: 200, body: {} };
    case "GET /conformance/instances":
      return { status: 200, body: { instances: desk.model.instances() } };
    case "GET /conformance/requests":
      return {
        status: 200,
        body: { requests: desk.requests.since(sinceOf(url)), next: desk.requests.next },
      };
    default:
      return { status: 404, body: { error: `there is no ${method} ${url.pathname}` } };
  }
}

function sinceOf(url: URL): number {
  const since = Number(url.searchParams.get("since") ?? "0");
  if (Number.isInteger(since) && since >= 0) return since;
  throw new Error("since: want a whole number");
}

function jsonOf(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (cause) {
    throw new Error("the body is no JSON", { cause });
  }
}
