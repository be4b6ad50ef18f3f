/** One gRPC channel to one adapter: its options spelled out, its state told, kept connected. */
import { Client, connectivityState, credentials, experimental } from "@grpc/grpc-js";
import type { ChannelOptions } from "@grpc/grpc-js";

import { ProviderAPI } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Clock, Timer } from "../process/clock.ts";
import type { Log } from "../process/log.ts";
import { CertificateFiles } from "./certificate-files.ts";
import type { CertificatePaths } from "./certificate-files.ts";
import { isMutation, routeGrpcLog } from "./grpc-service.ts";
import { HandshakeTimeoutCredentials } from "./handshake-timeout.ts";
import { isLoopbackTarget, requirePlaintextIsAllowed } from "./loopback.ts";

/** gRPC's own names. */
export type ConnectionState = "IDLE" | "CONNECTING" | "READY" | "TRANSIENT_FAILURE" | "SHUTDOWN";

/** What a client allows; each has a default. */
export interface ClientLimits {
  /** Largest message either way. */
  readonly messageBytesMax: number;
  /** Longest attempt to connect, handshakes included; then another one is begun. */
  readonly connectTimeoutMs: number;
  /** First and longest wait between attempts to connect. */
  readonly reconnectMsMin: number;
  readonly reconnectMsMax: number;
  /** A connection that has been silent so long is asked whether it lives, */
  readonly keepaliveTimeMs: number;
  /** and dropped when it does not say so within this. */
  readonly keepaliveTimeoutMs: number;
  /** How often certificate files are read again. */
  readonly certificateRefreshMs: number;
  /** Attempts of a read, the first included, while the adapter is UNAVAILABLE. Mutations: one. */
  readonly readAttemptsMax: number;
  readonly readBackoffMsMin: number;
  readonly readBackoffMsMax: number;
}

export const defaultClientLimits: ClientLimits = {
  messageBytesMax: 4 << 20,
  connectTimeoutMs: 5_000,
  reconnectMsMin: 200,
  reconnectMsMax: 2_000,
  keepaliveTimeMs: 10_000,
  keepaliveTimeoutMs: 5_000,
  certificateRefreshMs: 10_000,
  readAttemptsMax: 3,
  readBackoffMsMin: 100,
  readBackoffMsMax: 1_000,
};

/** With certFile and keyFile the client shows itself, as our servers demand. */
export interface ClientTls extends CertificatePaths {
  /** The name that the server's certificate must carry, where the address is not that name. */
  readonly serverName?: string;
}

export interface ConnectionOptions {
  /** gRPC target: "host:port", "dns:///host:port", "ipv4:a:1,b:2" (tried in order). */
  readonly address: string;
  readonly tls?: ClientTls;
  readonly allowPlaintext?: boolean;
  readonly log: Log;
  readonly clock: Clock;
  readonly limits: ClientLimits;
}

/** How a wait for READY ended. */
export type Readiness = "ready" | "unconnected" | "late" | "aborted";

/** See the file comment. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #certificates: CertificateFiles | undefined;
  readonly #listeners = new Set<(state: ConnectionState) => void>();
  #client: Client;
  #state: ConnectionState = "IDLE";
  #attempt: Timer | undefined;

  /** Starts connecting. Throws on missing TLS files and on plaintext that is not allowed. */
  constructor(options: ConnectionOptions) {
    const { address, tls, log, clock, limits } = options;
    this.#options = options;
    if (tls === undefined) {
      requirePlaintextIsAllowed(
        address,
        options.allowPlaintext === true || isLoopbackTarget(address),
      );
    } else {
      const refreshMs = limits.certificateRefreshMs;
      this.#certificates = new CertificateFiles(tls, { log, clock, refreshMs });
    }
    routeGrpcLog(log);
    this.#client = this.#open();
    this.#limitAttempt();
    this.#follow(this.#client);
  }

  /** For one call: another one may stand in its place at the next. */
  get client(): Client {
    return this.#client;
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Calls `listener` on each change until the returned function is called. */
  onStateChange(listener: (state: ConnectionState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Waits while the connection is being made; does not wait out a failure's back-off. */
  async ready(timeoutMs: number, signal: AbortSignal | undefined): Promise<Readiness> {
    if (signal?.aborted === true) return "aborted";
    if (timeoutMs <= 0) return "late";
    const decided = readinessOf(this.#state);
    if (decided !== undefined) return decided;
    return new Promise((resolve) => {
      const finish = (readiness: Readiness): void => {
        timer.cancel();
        stopListening();
        signal?.removeEventListener("abort", onAbort);
        resolve(readiness);
      };
      const onAbort = (): void => finish("aborted");
      const timer = this.#options.clock.setTimer(timeoutMs, () => finish("late"));
      const stopListening = this.onStateChange((state) => {
        const readiness = readinessOf(state);
        if (readiness !== undefined) finish(readiness);
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  close(): void {
    if (this.#state === "SHUTDOWN") return;
    this.#become("SHUTDOWN");
    this.#listeners.clear();
    this.#attempt?.cancel();
    this.#client.close();
    this.#certificates?.close();
  }

  #open(): Client {
    const { address, limits, clock, tls } = this.#options;
    const timeouts = { timeoutMs: limits.connectTimeoutMs, clock };
    return new Client(
      address,
      new HandshakeTimeoutCredentials(channelCredentials(this.#certificates), timeouts),
      channelOptions(limits, tls?.serverName),
    );
  }

  /** Reports the state and asks for the next; an idle channel is made to connect again. */
  #follow(client: Client): void {
    if (this.#state === "SHUTDOWN" || client !== this.#client) return;
    const channel = client.getChannel();
    const state = channel.getConnectivityState(true);
    this.#become(this.#shown(stateName[state]));
    channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, () => this.#follow(client));
  }

  /** As pick_first has it: once failed, an attempt to connect is a failure until it succeeds. */
  #shown(state: ConnectionState): ConnectionState {
    const isTrying = state === "IDLE" || state === "CONNECTING";
    return isTrying && this.#state === "TRANSIENT_FAILURE" ? this.#state : state;
  }

  #become(state: ConnectionState): void {
    if (state === this.#state) return;
    const wasReady = this.#state === "READY";
    this.#state = state;
    if (state === "READY") this.#attempt?.cancel();
    else if (wasReady) this.#limitAttempt();
    const { address, log } = this.#options;
    log.info({ address, state }, "adapter connection changed");
    for (const listener of this.#listeners) listener(state);
  }

  /**
   * The library leaves it to the kernel how long a connection may take to open: two minutes, to an
   * address that may have died and moved since. So a channel that does not become ready is replaced.
   */
  #limitAttempt(): void {
    const { clock, limits } = this.#options;
    this.#attempt?.cancel();
    this.#attempt = clock.setTimer(limits.connectTimeoutMs, () => {
      const stuck = this.#client;
      this.#client = this.#open();
      stuck.close();
      this.#become("TRANSIENT_FAILURE");
      this.#limitAttempt();
      this.#follow(this.#client);
    });
  }
}

function readinessOf(state: ConnectionState): Readiness | undefined {
  switch (state) {
    case "READY":
      return "ready";
    case "TRANSIENT_FAILURE":
    case "SHUTDOWN":
      return "unconnected";
    case "IDLE":
    case "CONNECTING":
      return undefined;
    default:
      return state satisfies never;
  }
}

const stateName: Readonly<Record<connectivityState, ConnectionState>> = {
  [connectivityState.IDLE]: "IDLE",
  [connectivityState.CONNECTING]: "CONNECTING",
  [connectivityState.READY]: "READY",
  [connectivityState.TRANSIENT_FAILURE]: "TRANSIENT_FAILURE",
  [connectivityState.SHUTDOWN]: "SHUTDOWN",
};

function channelCredentials(certificates: CertificateFiles | undefined) {
  if (certificates === undefined) return credentials.createInsecure();
  return experimental.createCertificateProviderChannelCredentials(
    certificates,
    certificates.hasIdentity ? certificates : null,
  );
}

/** Every option of grpc-js that matters here, also where the value is the library's own default. */
function channelOptions(limits: ClientLimits, serverName: string | undefined): ChannelOptions {
  return {
    "grpc.service_config": serviceConfig(limits),
    // Not from DNS TXT records: who controls those would control retries.
    "grpc.service_config_disable_resolution": 1,
    "grpc.enable_retries": 1,
    "grpc.per_rpc_retry_buffer_size": 256 << 10,
    "grpc.retry_buffer_size": 16 << 20,
    "grpc.max_receive_message_length": limits.messageBytesMax,
    "grpc.max_send_message_length": limits.messageBytesMax,
    "grpc.keepalive_time_ms": limits.keepaliveTimeMs,
    "grpc.keepalive_timeout_ms": limits.keepaliveTimeoutMs,
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.initial_reconnect_backoff_ms": limits.reconnectMsMin,
    "grpc.max_reconnect_backoff_ms": limits.reconnectMsMax,
    // The default of 30 s would keep a moved adapter's old address for that long.
    "grpc.dns_min_time_between_resolutions_ms": limits.reconnectMsMax,
    // A connection of our own: closing one client must not depend on another to the same address.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.client_idle_timeout_ms": 2 ** 31 - 1,
    // An HTTP proxy of the environment is meant for the vendor, not for the adapter next door.
    "grpc.enable_http_proxy": 0,
    "grpc.enable_channelz": 0,
    ...(serverName === undefined ? {} : { "grpc.ssl_target_name_override": serverName }),
  };
}

/** pick_first, and retries for the reads alone: a mutation is repeated by the work queue or not at all. */
function serviceConfig(limits: ClientLimits): string {
  const reads = ProviderAPI.methods.filter(
    (method) => !isMutation(method) && method.methodKind === "unary",
  );
  const retryPolicy = {
    maxAttempts: limits.readAttemptsMax,
    initialBackoff: `${limits.readBackoffMsMin / 1_000}s`,
    maxBackoff: `${limits.readBackoffMsMax / 1_000}s`,
    backoffMultiplier: 2,
    retryableStatusCodes: ["UNAVAILABLE"],
  };
  return JSON.stringify({
    loadBalancingConfig: [{ pick_first: { shuffleAddressList: false } }],
    retryThrottling: { maxTokens: 10, tokenRatio: 0.1 },
    methodConfig: [
      {
        name: reads.map((method) => ({ service: ProviderAPI.typeName, method: method.name })),
        ...(limits.readAttemptsMax > 1 ? { retryPolicy } : {}),
      },
    ],
  });
}
