/** What may stand where an adapter should: programs that speak something else, or nonsense. */
import { randomBytes } from "node:crypto";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { createServer as createTcpServer } from "node:net";
import type { Server, Socket } from "node:net";

export interface RawServer {
  readonly port: number;
  /** Ends connections too. */
  stop(): Promise<void>;
}

/** @param port to listen on; a free one when absent */
export async function startRaw(server: Server, port = 0): Promise<RawServer> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    // Whoever is answered nonsense hangs up as it likes.
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no TCP server");
  return {
    port: address.port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

const html = "<html><h1>Bad Gateway</h1></html>";

/** A proxy that answers everything over HTTP/2 with one page. */
export function proxyPage(status: number): Server {
  return http2Server(status, "text/html", html);
}

export const rubbishServers: readonly (readonly [what: string, create: () => Server])[] = [
  ["HTML over HTTP/1", () => createHttpServer((_asked, answer) => answer.end(html))],
  ["502 in HTML over HTTP/2", () => proxyPage(502)],
  ["404 in HTML over HTTP/2", () => proxyPage(404)],
  ["a gRPC message of noise", grpcNoise],
  ["by hanging up", () => createTcpServer((socket) => socket.destroy())],
  ["noise before it was asked", () => createTcpServer((socket) => socket.end(randomBytes(4_096)))],
];

function grpcNoise(): Server {
  const noise = Buffer.alloc(64, 0xff);
  const head = Buffer.from([0, 0, 0, 0, noise.length]);
  return http2Server(200, "application/grpc", Buffer.concat([head, noise]));
}

function http2Server(status: number, contentType: string, body: Buffer | string): Server {
  const server = createHttp2Server();
  server.on("sessionError", () => undefined);
  server.on("stream", (stream) => {
    stream.on("error", () => undefined);
    stream.respond({ ":status": status, "content-type": contentType });
    stream.end(body);
  });
  return server;
}
