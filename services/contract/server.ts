/**
 * Serves ProviderAPI over gRPC, with health and reflection beside it. The handlers see messages and
 * throw ProviderError; everything of gRPC stays here.
 */
import { setImmediate } from "node:timers/promises";

import { experimental, Server, ServerCredentials } from "@grpc/grpc-js";
import type { ServerOptions, UntypedServiceImplementation } from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";

import { ProviderAPI } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { systemClock } from "../process/clock.ts";
import type { Clock } from "../process/clock.ts";
import type { Log } from "../process/log.ts";
import { CallDesk } from "./answer-call.ts";
import { CertificateFiles } from "./certificate-files.ts";
import type { CertificatePaths } from "./certificate-files.ts";
import { grpcServiceOf, routeGrpcLog } from "./grpc-service.ts";
import type { ObserveCall } from "./grpc-service.ts";
import { isLoopbackHost, requirePlaintextIsAllowed } from "./loopback.ts";
import type { ProviderHandlers } from "./provider-handlers.ts";
import { addReflection } from "./reflection.ts";

/** What a server allows; each has a default. */
export interface ServerLimits {
  /** Largest message either way. */
  readonly messageBytesMax: number;
  /** Calls at the same time on one connection; the client queues more. */
  readonly streamsPerConnectionMax: number;
  /** Calls at the same time over all connections; more are refused with BUSY. */
  readonly callsInFlightMax: number;
  /** A connection that has been silent so long is asked whether it lives, */
  readonly keepaliveTimeMs: number;
  /** and dropped when it does not say so within this. */
  readonly keepaliveTimeoutMs: number;
  /** How often certificate files are read again. */
  readonly certificateRefreshMs: number;
}

export const defaultServerLimits: ServerLimits = {
  messageBytesMax: 4 << 20,
  streamsPerConnectionMax: 1_000,
  callsInFlightMax: 2_000,
  keepaliveTimeMs: 20_000,
  keepaliveTimeoutMs: 10_000,
  certificateRefreshMs: 10_000,
};

/** How long closing waits for answers to leave, should their callers be slow to take them, */
const sendTimeoutMs = 5_000;
/** and then for connections to end in good order. */
const flushTimeoutMs = 500;
/** Turns of the event loop in which the last frames of an answer get from HTTP/2 to the socket. */
const flushTurns = 10;

export interface ServeProviderOptions {
  readonly handlers: ProviderHandlers;
  /** Address to listen on; without TLS it must be loopback unless `allowPlaintext`. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Mutual TLS: clients must show a certificate of `caFile`. */
  readonly tls?: Required<CertificatePaths>;
  readonly allowPlaintext?: boolean;
  readonly log: Log;
  readonly onCall?: ObserveCall;
  readonly limits?: Partial<ServerLimits>;
  readonly clock?: Clock;
}

export interface ProviderServer {
  readonly port: number;
  /** What health says; SERVING from the start. */
  setServing(isServing: boolean): void;
  /**
   * Health says NOT_SERVING, new calls are refused (UNAVAILABLE, SHUTTING_DOWN, NOT_APPLIED), health
   * streams end, clients are asked to connect elsewhere. Resolves when the calls in flight are done,
   * or after `limitMs`: then their signals abort. The result counts those.
   */
  drain(limitMs: number): Promise<{ readonly unfinished: number }>;
  /** Drops all connections and stops listening. Safe to call twice. */
  close(): Promise<void>;
}

/** Starts serving. Rejects when the port, the TLS files or plaintext are not to be had. */
export async function serveProvider(options: ServeProviderOptions): Promise<ProviderServer> {
  const { host, log } = options;
  const limits = { ...defaultServerLimits, ...options.limits };
  const clock = options.clock ?? systemClock;
  if (options.tls === undefined) {
    requirePlaintextIsAllowed(host, options.allowPlaintext === true || isLoopbackHost(host));
  }
  routeGrpcLog(log);
  const desk = new CallDesk({
    log,
    observe: options.onCall ?? (() => undefined),
    clock,
    callsInFlightMax: limits.callsInFlightMax,
    responseBytesMax: limits.messageBytesMax,
  });
  const server = new Server(serverOptions(limits));
  server.addService(grpcServiceOf(ProviderAPI), implementationOf(desk, options.handlers));
  const health = addHealthAndReflection(server);
  const certificates =
    options.tls === undefined
      ? undefined
      : new CertificateFiles(options.tls, { log, clock, refreshMs: limits.certificateRefreshMs });
  try {
    const port = await bind(server, `${bracketed(host)}:${options.port}`, certificates);
    log.info({ host, port, isTls: certificates !== undefined }, "serving ProviderAPI");
    return new RunningServer({ server, desk, health, certificates, clock, host, port });
  } catch (error) {
    certificates?.close();
    throw error;
  }
}

interface ServerParts {
  readonly server: Server;
  readonly desk: CallDesk;
  readonly health: HealthImplementation;
  readonly certificates: CertificateFiles | undefined;
  readonly clock: Clock;
  readonly host: string;
  readonly port: number;
}

class RunningServer implements ProviderServer {
  readonly port: number;
  readonly #parts: ServerParts;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.port = parts.port;
  }

  setServing(isServing: boolean): void {
    for (const service of ["", ProviderAPI.typeName]) {
      this.#parts.health.setStatus(service, isServing ? "SERVING" : "NOT_SERVING");
    }
  }

  async drain(limitMs: number): Promise<{ readonly unfinished: number }> {
    const { server, desk, clock, host } = this.#parts;
    this.setServing(false);
    desk.startDraining();
    // GOAWAY on each connection: calls in flight go on, the next ones go to another replica if there
    // is one. We keep listening: who comes back here is told SHUTTING_DOWN, which is sure to have
    // changed nothing, while a refused connection would leave a mutation's outcome open.
    server.drain(`${bracketed(host)}:${this.port}`, limitMs + 1_000);
    await atMost(clock, limitMs, desk.drained());
    return { unfinished: desk.abortAll() };
  }

  async close(): Promise<void> {
    const { server, desk, certificates, clock } = this.#parts;
    desk.startDraining();
    desk.abortAll();
    // Answers given a moment ago may still be on their way out: a connection that is dropped under
    // one leaves its caller not knowing what happened.
    await atMost(clock, sendTimeoutMs, desk.sent());
    for (let turn = 0; turn < flushTurns; turn += 1) await setImmediate();
    const ended = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
    await atMost(clock, flushTimeoutMs, ended);
    server.forceShutdown();
    certificates?.close();
  }
}

/** Waits for `done`, and no longer than `limitMs`. */
async function atMost(clock: Clock, limitMs: number, done: Promise<void>): Promise<void> {
  const isOver = new AbortController();
  const late = clock.sleep(limitMs, isOver.signal).catch(() => undefined);
  await Promise.race([done, late]);
  isOver.abort();
}

function implementationOf(
  desk: CallDesk,
  handlers: ProviderHandlers,
): UntypedServiceImplementation {
  const { method } = ProviderAPI;
  return {
    getProviderInfo: desk.unary(method.getProviderInfo, handlers.getProviderInfo),
    ensure: desk.unary(method.ensure, handlers.ensure),
    describe: desk.unary(method.describe, handlers.describe),
    list: desk.unary(method.list, handlers.list),
    delete: desk.unary(method.delete, handlers.delete),
    release: desk.unary(method.release, handlers.release),
    watchHealth: desk.stream(method.watchHealth, handlers.watchHealth),
  };
}

function addHealthAndReflection(server: Server): HealthImplementation {
  const health = new HealthImplementation({ "": "SERVING", [ProviderAPI.typeName]: "SERVING" });
  health.addToServer(server);
  addReflection(server);
  return health;
}

/** Every option of grpc-js that matters here, also where the value is the library's own default. */
function serverOptions(limits: ServerLimits): ServerOptions {
  return {
    "grpc.max_receive_message_length": limits.messageBytesMax,
    "grpc.max_send_message_length": limits.messageBytesMax,
    "grpc.max_concurrent_streams": limits.streamsPerConnectionMax,
    "grpc.keepalive_time_ms": limits.keepaliveTimeMs,
    "grpc.keepalive_timeout_ms": limits.keepaliveTimeoutMs,
    // Connections may be as old and as idle as their clients like: there are few, and they are warm.
    "grpc.max_connection_age_ms": 2 ** 31 - 1,
    "grpc.max_connection_idle_ms": 2 ** 31 - 1,
    // Nobody reads its books, but with it off forceShutdown of grpc-js 1.14 leaves connections open.
    "grpc.enable_channelz": 1,
    "grpc.server_call_metric_recording": 0,
  };
}

function bind(
  server: Server,
  address: string,
  certificates: CertificateFiles | undefined,
): Promise<number> {
  const credentials =
    certificates === undefined
      ? ServerCredentials.createInsecure()
      : experimental.createCertificateProviderServerCredentials(certificates, certificates, true);
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => {
      if (error === null) resolve(port);
      else reject(new Error(`cannot listen on ${address}: ${error.message}`, { cause: error }));
    });
  });
}

function bracketed(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}
