/**
 * The port for the cluster and its operators: /metrics, /healthz (the process lives) and /readyz (it
 * can do its work; ?verbose names each check). Nothing here needs a secret or changes anything.
 */
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";

import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { redactText } from "./redaction.ts";

/** Says why not, or nothing when all is well. Answers at once: it looks, it does not ask. */
export type Check = () => string | undefined;

export interface AdminServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly metrics: Metrics;
  /** Checks by name; /readyz answers 200 when each is well. */
  readonly readiness: Readonly<Record<string, Check>>;
  /** Checks by name; /healthz answers 200 when each is well. A failure gets the process restarted. */
  readonly liveness?: Readonly<Record<string, Check>>;
  readonly log: Log;
}

export interface AdminServer {
  readonly port: number;
  /** Stops listening and drops all connections. Safe to call twice. */
  close(): Promise<void>;
}

const connectionsMax = 64;
const requestTimeoutMs = 5_000;
const headerBytesMax = 8_192;
const reasonCharsMax = 500;

/** Starts listening; rejects when the port is not to be had. */
export async function startAdminServer(options: AdminServerOptions): Promise<AdminServer> {
  const server = createServer(
    {
      maxHeaderSize: headerBytesMax,
      headersTimeout: requestTimeoutMs,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: requestTimeoutMs,
      connectionsCheckingInterval: 1_000,
    },
    (request, response) => {
      answer(options, request, response).catch((error: unknown) => {
        options.log.error({ error }, "admin request failed");
        if (!response.headersSent) send(response, 500, "internal error\n");
        else response.destroy();
      });
    },
  );
  server.maxConnections = connectionsMax;
  server.maxRequestsPerSocket = 1_000;
  const port = await listen(server, options);
  options.log.info({ host: options.host, port }, "admin port open");
  return { port, close: () => close(server) };
}

async function answer(
  options: AdminServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // Nobody here takes a body; what is not read is bounded by the request's time.
  request.resume();
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    send(response, 405, "method not allowed\n");
    return;
  }
  const [path, query = ""] = (request.url ?? "").split("?", 2);
  const isVerbose = new URLSearchParams(query).has("verbose");
  switch (path) {
    case "/metrics":
      response.setHeader("content-type", options.metrics.contentType);
      send(response, 200, await options.metrics.text());
      return;
    case "/healthz":
      sendChecks(response, "healthz", options.liveness ?? {}, isVerbose);
      return;
    case "/readyz":
      sendChecks(response, "readyz", options.readiness, isVerbose);
      return;
    default:
      send(response, 404, "not found\n");
  }
}

/** The form of kube-apiserver's own /readyz, so that operators read it at a glance. */
function sendChecks(
  response: ServerResponse,
  name: string,
  checks: Readonly<Record<string, Check>>,
  isVerbose: boolean,
): void {
  const results = Object.entries(checks).map(([check, look]) => ({
    check,
    problem: problemOf(look),
  }));
  const isWell = results.every(({ problem }) => problem === undefined);
  if (isWell && !isVerbose) {
    send(response, 200, "ok");
    return;
  }
  const lines = results.map(({ check, problem }) =>
    problem === undefined ? `[+]${check} ok` : `[-]${check} failed: ${problem}`,
  );
  const verdict = `${name} check ${isWell ? "passed" : "failed"}`;
  send(response, isWell ? 200 : 503, [...lines, verdict, ""].join("\n"));
}

function problemOf(look: Check): string | undefined {
  try {
    const problem = look();
    return problem === undefined ? undefined : redactText(problem).slice(0, reasonCharsMax);
  } catch (error) {
    // A check that throws is no proof of health.
    return redactText(error instanceof Error ? error.message : String(error)).slice(
      0,
      reasonCharsMax,
    );
  }
}

function send(response: ServerResponse, status: number, body: string): void {
  response.statusCode = status;
  if (!response.hasHeader("content-type")) {
    response.setHeader("content-type", "text/plain; charset=utf-8");
  }
  response.setHeader("cache-control", "no-store");
  response.setHeader("x-content-type-options", "nosniff");
  response.end(body);
}

function listen(server: Server, options: AdminServerOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Error): void => {
      const where = `${options.host}:${options.port}`;
      reject(new Error(`cannot open the admin port at ${where}: ${cause.message}`, { cause }));
    };
    server.once("error", fail);
    server.listen(options.port, options.host, () => {
      server.removeListener("error", fail);
      server.on("error", (error) => options.log.error({ error }, "admin port failed"));
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : options.port);
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // An error here says that it was closed already.
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
