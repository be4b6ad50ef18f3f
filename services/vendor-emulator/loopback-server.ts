/** What both of an emulator's servers need: a port on this machine, bounded bodies, a clean end. */
import type { IncomingMessage, Server } from "node:http";
import type { Server as TlsServer } from "node:https";

export interface LoopbackServer {
  readonly port: number;
  /** Drops all connections. */
  close(): Promise<void>;
}

const bodyBytesMax = 1 << 20;
const bearableBytesMax = 16 << 20;

/** @param port 0: any free one */
export function listenOnLoopback(server: Server | TlsServer, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.removeListener("error", reject);
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}

export function closeServer(server: Server | TlsServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/**
 * Rejects when it is larger than 1 MiB or does not come whole. Of a larger one the rest is read and
 * thrown away, as long as it is bearable: who is still sending does not hear why it is refused.
 */
export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    const piece = Buffer.from(chunk);
    bytes += piece.length;
    if (bytes > bearableBytesMax) break;
    if (bytes <= bodyBytesMax) chunks.push(piece);
  }
  if (bytes > bodyBytesMax) throw new Error(`a body of more than ${bodyBytesMax} bytes`);
  return Buffer.concat(chunks).toString("utf8");
}
