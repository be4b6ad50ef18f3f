/** The proxy's door: passes TCP on to the proxy's own server, and loses connections as networks do. */
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";

export class TcpFront {
  readonly port: number;
  /** Accepted so far. */
  connectionCount = 0;
  readonly #server: Server;
  readonly #targetPort: number;
  /** By the port that the proxy's server sees, while they are open. */
  readonly #pairs = new Map<number, readonly [Socket, Socket]>();
  readonly #clients = new Set<Socket>();
  #isPaused = false;
  #isCut = false;

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.#targetPort = targetPort;
    // A listening TCP server's address is never a path.
    this.port = (server.address() as AddressInfo).port;
    server.on("connection", (client) => this.#accept(client));
  }

  static async start(targetPort: number): Promise<TcpFront> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new TcpFront(server, targetPort);
  }

  /** Nothing passes any more, on connections old and new, and none is closed. */
  pause(): void {
    this.#isPaused = true;
    for (const pair of this.#pairs.values()) silence(pair);
  }

  /** Connections are closed, and new ones as well as soon as they are made. */
  cut(): void {
    this.#isCut = true;
    for (const client of this.#clients) client.destroy();
  }

  /**
   * Everything works again. Connections from before a pause go on as if nothing was lost, or are
   * closed: a network that was gone may have forgotten them.
   */
  resume({ isLossless }: { readonly isLossless: boolean }): void {
    const wasPaused = this.#isPaused;
    this.#isPaused = false;
    this.#isCut = false;
    if (!wasPaused) return;
    const joined = new Map([...this.#pairs.values()].map((pair) => [pair[0], pair]));
    for (const client of this.#clients) {
      const pair = joined.get(client);
      if (!isLossless) client.destroy();
      else if (pair === undefined) this.#connect(client);
      else join(pair);
    }
  }

  /** One connection carries nothing any more, in either direction, and is not closed. */
  blackHole(targetSidePort: number): void {
    const pair = this.#pairs.get(targetSidePort);
    if (pair !== undefined) silence(pair);
  }

  stop(): void {
    this.cut();
    this.#server.close();
  }

  #accept(client: Socket): void {
    this.connectionCount += 1;
    if (this.#isCut) return void client.destroy();
    this.#clients.add(client);
    // Errors end in "close".
    client.on("error", () => undefined);
    client.on("close", () => this.#clients.delete(client));
    if (this.#isPaused) client.pause();
    else this.#connect(client);
  }

  #connect(client: Socket): void {
    const target = connect(this.#targetPort, "127.0.0.1");
    const pair = [client, target] as const;
    target.on("error", () => undefined);
    target.on("connect", () => {
      if (target.localPort === undefined) return;
      this.#pairs.set(target.localPort, pair);
      const { localPort } = target;
      target.on("close", () => this.#pairs.delete(localPort));
      if (this.#isPaused) silence(pair);
    });
    target.on("close", () => client.destroy());
    client.on("close", () => target.destroy());
    join(pair);
  }
}

function join([client, target]: readonly [Socket, Socket]): void {
  client.pipe(target);
  target.pipe(client);
}

function silence(pair: readonly Socket[]): void {
  for (const socket of pair) {
    socket.unpipe();
    socket.pause();
  }
}
