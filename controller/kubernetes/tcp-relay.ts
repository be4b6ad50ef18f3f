import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";

/** For tests: passes TCP on to a loopback port, and can lose connections as networks do. */
export class TcpRelay {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly targetPort: number;
  /** Where it listens, and listened after `stop`. */
  readonly port: number;

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.targetPort = targetPort;
    // A listening TCP server's address is never a path.
    this.port = (server.address() as AddressInfo).port;
    server.on("connection", (client) => this.#relay(client));
  }

  /** @param port to listen on; a free one where absent */
  static async start(targetPort: number, port = 0): Promise<TcpRelay> {
    const server = createServer();
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return new TcpRelay(server, targetPort);
  }

  /**
   * Present connections carry nothing any more and are not closed, as when a load balancer forgets
   * them. New connections work.
   */
  blackHole(): void {
    for (const socket of this.#sockets) {
      socket.unpipe();
      socket.pause();
    }
  }

  /** Closes present connections. New connections work. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  stop(): void {
    this.cut();
    this.#server.close();
  }

  #relay(client: Socket): void {
    const target = connect(this.targetPort, "127.0.0.1");
    for (const [socket, other] of [
      [client, target],
      [target, client],
    ] as const) {
      this.#sockets.add(socket);
      // Errors end in "close", which takes the other end along.
      socket.on("error", () => undefined);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }
}
