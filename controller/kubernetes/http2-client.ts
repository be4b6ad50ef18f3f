import { TLSSocket } from "node:tls";

import { Client, buildConnector } from "undici";

import type { ApiAccess } from "./kube-config.ts";

export interface Http2ClientOptions {
  readonly access: ApiAccess;
  readonly connectTimeoutMs: number;
  /** An unanswered ping closes the connection at the next one: twice this finds a black hole. */
  readonly pingIntervalMs: number;
  /** Called for every TLS handshake that succeeded. */
  readonly onHandshake: () => void;
}

/**
 * One undici client: at most one TCP connection, HTTP/2 only, opened on first use and again after
 * a loss. With HTTP/1.1 a watch would occupy that one connection, so a server (or a proxy before
 * it) without HTTP/2 is refused with a clear error instead of hanging.
 */
export function createHttp2Client(options: Http2ClientOptions): Client {
  const { access, connectTimeoutMs, pingIntervalMs, onHandshake } = options;
  const { tls } = access;
  const connect = buildConnector({
    allowH2: true,
    preferH2: true,
    ca: tls.ca,
    cert: tls.cert,
    key: tls.key,
    ...(tls.servername === undefined ? {} : { servername: tls.servername }),
    rejectUnauthorized: tls.isServerVerified,
    minVersion: "TLSv1.2",
    timeout: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
  });
  return new Client(new URL(access.serverUrl).origin, {
    connect: (target, callback) => {
      connect(target, (error, socket) => {
        if (error !== null) return callback(error, null);
        onHandshake();
        if (socket instanceof TLSSocket && socket.alpnProtocol === "h2") {
          return callback(null, socket);
        }
        socket.destroy();
        return callback(new Error(`API server "${access.serverUrl}" speaks no HTTP/2`), null);
      });
    },
    allowH2: true,
    keepAliveTimeout: idleConnectionMs,
    keepAliveMaxTimeout: idleConnectionMs,
    connectTimeout: connectTimeoutMs,
    h2Options: { pingInterval: pingIntervalMs },
  });
}

/** An idle connection is cheap, pinged, and keeps no process alive; a handshake is not cheap. */
const idleConnectionMs = 30 * 60_000;
