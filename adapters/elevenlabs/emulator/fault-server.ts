/**
 * The port behind the scenes, HTTP and JSON on loopback:
 *
 *     POST /script    a step or a list of steps (script.ts); answers {"agentIds": [...]}
 *     GET  /world     {"agents", "settings", "faults", "nowMs"}: what is there now
 *     GET  /requests  {"requests", "dropped"}: who called what when, and what it changed
 */
import { createServer } from "node:http";
import type { IncomingMessage } from "node:http";

import type { Director } from "./director.ts";
import { parseJson } from "./json-shapes.ts";
import { closeServer, listenOnLoopback, readBody } from "./loopback-server.ts";
import type { LoopbackServer } from "./loopback-server.ts";
import { parseScript } from "./script.ts";
import type { World } from "./world.ts";

interface Reply {
  readonly status: number;
  readonly body: unknown;
}

export async function startFaultServer(
  world: World,
  director: Director,
  port: number,
): Promise<LoopbackServer> {
  const server = createServer((request, response) => {
    reply(world, director, request)
      .catch((error: unknown): Reply => ({
        status: 400,
        body: { error: error instanceof Error ? error.message : String(error) },
      }))
      .then(({ status, body }) => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify(body));
      })
      .catch(() => response.destroy());
  });
  const taken = await listenOnLoopback(server, port);
  return { port: taken, close: () => closeServer(server) };
}

async function reply(world: World, director: Director, request: IncomingMessage): Promise<Reply> {
  const body = await readBody(request);
  switch (`${request.method} ${request.url}`) {
    case "POST /script": {
      const json = parseJson(body);
      if (json === undefined) throw new Error("the script is no JSON");
      return { status: 200, body: { agentIds: director.run(parseScript(json)) } };
    }
    case "GET /world":
      return {
        status: 200,
        body: {
          agents: world.agents(),
          settings: world.settings,
          faults: director.pendingFaults,
          nowMs: world.now(),
        },
      };
    case "GET /requests":
      return { status: 200, body: { requests: world.requests, dropped: world.requestsDropped } };
    default:
      return { status: 404, body: { error: "there are POST /script, GET /world, GET /requests" } };
  }
}
