import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { SignJWT } from "jose";
import { ensureBinary } from "./binaries.ts";
import { startChild, type RunningChild } from "./child-process.ts";
import { readDevClusterOptions } from "./dev-cluster-options.ts";
import { findFreeTcpPort, findFreeUdpPort } from "./free-port.ts";

const attemptsMax = 5;
const probeTimeoutMs = 2_000;
const startTimeoutMs = 20_000;
const tokenSeconds = 60;
/** It keeps nothing that is worth a wait, and overhears SIGTERM in its first 100 ms. */
const stopTimeoutMs = 1_000;

/** A LiveKit server on the loopback address with keys of its own. */
export interface LiveKit {
  /** http://127.0.0.1:<port>; stays the same over restarts. */
  readonly url: string;
  readonly apiKey: string;
  readonly apiSecret: string;
  /** Process id of the server that runs now; another one after a restart. */
  readonly pid: number;
  /** SIGTERM, then SIGKILL. May be called twice. */
  stop(): Promise<void>;
  /** SIGKILL. restart() brings it back. */
  kill(): Promise<void>;
  /** Ends it and starts it again on the same port: its rooms, kept in memory, are gone. */
  restart(): Promise<void>;
  /** SIGSTOP: connections stay open, nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
}

export interface LiveKitOptions {
  /** A free one when absent. */
  readonly port?: number;
  /** Keys of its own when absent; a second server of one account has the first one's. */
  readonly keys?: { readonly apiKey: string; readonly apiSecret: string };
}

/** Starts a server. Rejects with its last words. */
export async function startLiveKit(options: LiveKitOptions = {}): Promise<LiveKit> {
  const { apiKey, apiSecret } = options.keys ?? newKeys();
  const launch = (port: number) => launchServer({ port, apiKey, apiSecret });
  let { port, child } = await launchOnFreePort(options.port, launch);
  return {
    url: `http://127.0.0.1:${port}`,
    apiKey,
    apiSecret,
    get pid() {
      return child.pid;
    },
    stop: async () => void (await child.stop(stopTimeoutMs)),
    kill: async () => void (await child.kill()),
    async restart() {
      await child.stop(stopTimeoutMs);
      ({ child } = await launchOnFreePort(port, launch));
    },
    pause: () => child.pause(),
    resume: () => child.resume(),
  };
}

function newKeys(): { readonly apiKey: string; readonly apiSecret: string } {
  return {
    apiKey: `dev${randomBytes(6).toString("hex")}`,
    apiSecret: randomBytes(32).toString("base64url"),
  };
}

interface ServerSettings {
  readonly port: number;
  readonly apiKey: string;
  readonly apiSecret: string;
}

/** Between the search for a port and its use another process may take it: then again. */
async function launchOnFreePort(
  wanted: number | undefined,
  launch: (port: number) => Promise<RunningChild>,
): Promise<{ port: number; child: RunningChild }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = wanted ?? (await findFreeTcpPort());
    try {
      return { port, child: await launch(port) };
    } catch (cause) {
      if (attempt >= attemptsMax) throw cause;
    }
  }
}

async function launchServer(settings: ServerSettings): Promise<RunningChild> {
  const { port, apiKey, apiSecret } = settings;
  const config = {
    port,
    bind_addresses: ["127.0.0.1"],
    keys: { [apiKey]: apiSecret },
    logging: { level: "warn", json: true },
    // Media is not used; without these lines its sockets listen on every address.
    rtc: {
      tcp_port: 0,
      udp_port: await findFreeUdpPort(),
      use_external_ip: false,
      node_ip: "127.0.0.1",
      enable_loopback_candidate: true,
      interfaces: { includes: ["lo"] },
      stun_servers: [],
    },
  };
  return await startChild({
    name: "livekit-server",
    program: await ensureBinary("livekit"),
    args: [],
    // Not as an argument: any user of the machine can read those.
    environment: { ...readDevClusterOptions().environment, LIVEKIT_CONFIG: JSON.stringify(config) },
    readiness: { kind: "probe", probe: () => serves(settings) },
    startTimeoutMs,
  });
}

/**
 * Asks for the rooms with this server's own key: another server that got hold of the port would
 * refuse the key, so it is never taken for ours.
 */
async function serves(settings: ServerSettings): Promise<boolean> {
  const token = await new SignJWT({ video: { roomList: true } })
    .setProtectedHeader({ alg: "HS256" })
    .setIssuer(settings.apiKey)
    .setExpirationTime(`${tokenSeconds} s`)
    .sign(new TextEncoder().encode(settings.apiSecret));
  return await new Promise((resolve) => {
    const call = request(
      {
        host: "127.0.0.1",
        port: settings.port,
        path: "/twirp/livekit.RoomService/ListRooms",
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        agent: false,
        timeout: probeTimeoutMs,
      },
      (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      },
    );
    call.on("timeout", () => call.destroy(new Error("no answer in time")));
    // Not reachable is not ready: the starter's deadline ends the asking.
    call.on("error", () => resolve(false));
    call.end("{}");
  });
}
