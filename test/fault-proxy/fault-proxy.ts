/**
 * Stands between a client and a real kube-apiserver and does to their talk what a script says:
 * TLS and HTTP/2 on both sides, loopback, a free port. README.md has the table of faults.
 */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createSecureServer } from "node:http2";
import type {
  ClientHttp2Session,
  Http2SecureServer,
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createTestAuthority } from "../../controller/kubernetes/fake-certificates.ts";
import { Exchange } from "./exchange.ts";
import type { Recorded } from "./exchange.ts";
import type { FaultRule } from "./fault-rule.ts";
import { readUpstream, writeProxyKubeconfig } from "./proxy-kubeconfig.ts";
import type { Upstream } from "./proxy-kubeconfig.ts";
import { RuleBook } from "./rule-book.ts";
import type { RuledRequest } from "./rule-book.ts";
import { SeenRequests } from "./seen-requests.ts";
import { TcpFront } from "./tcp-front.ts";

export class FaultProxy {
  readonly seen = new SeenRequests();
  /** Path of a kubeconfig with the same user as the one given, and the proxy for a server. */
  readonly kubeconfig: string;
  readonly #folder: string;
  readonly #upstream: Upstream;
  readonly #server: Http2SecureServer;
  readonly #front: TcpFront;
  readonly #rules = new RuleBook();
  readonly #records = new Map<string, Recorded>();
  readonly #exchanges = new Set<Exchange>();
  readonly #sessions = new Set<ServerHttp2Session>();

  private constructor(parts: Parts) {
    this.#folder = parts.folder;
    this.#upstream = parts.upstream;
    this.#server = parts.server;
    this.#front = parts.front;
    this.kubeconfig = join(parts.folder, "kubeconfig");
    this.#server.on("session", (session: ServerHttp2Session) => this.#serve(session));
    // A client that gives up in the middle of a handshake is no news.
    this.#server.on("sessionError", () => undefined);
  }

  /** @param kubeconfig leads to the API server; its user's token is passed on */
  static async start(kubeconfig: string): Promise<FaultProxy> {
    const upstream = await readUpstream(kubeconfig);
    const authority = await createTestAuthority();
    const server = createSecureServer({ ...(await authority.issue("fault proxy")) });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    // A listening TCP server's address is never a path.
    const front = await TcpFront.start((server.address() as AddressInfo).port);
    const folder = await mkdtemp(join(tmpdir(), "dhp-fault-proxy-"));
    const proxy = new FaultProxy({ folder, upstream, server, front });
    const url = `https://127.0.0.1:${front.port}`;
    await writeProxyKubeconfig(kubeconfig, proxy.kubeconfig, { url, ca: authority.ca });
    return proxy;
  }

  /** Rules for requests from now on, in place of all earlier ones; counts begin anew. */
  setRules(rules: readonly FaultRule[]): void {
    this.#rules.set(rules);
    for (const exchange of this.#exchanges) exchange.rulesChanged();
  }

  /** How many requests the present rules have befallen, in their order. */
  get befallenCounts(): readonly number[] {
    return this.#rules.befallenCounts;
  }

  /** Connections made so far; those made during a pause or a cut count as well. */
  get connectionCount(): number {
    return this.#front.connectionCount;
  }

  /** True once an answer has begun to be recorded under this name. */
  hasRecord(name: string): boolean {
    return this.#records.has(name);
  }

  /** Nothing passes, on connections old and new, and nothing is closed: also pings go unanswered. */
  pause(): void {
    this.#front.pause();
  }

  /** All connections are closed, new ones at once. */
  cut(): void {
    this.#front.cut();
  }

  /** Ends a pause or a cut; after a pause, old connections go on where `isLossless`. */
  resume(options: { readonly isLossless: boolean } = { isLossless: true }): void {
    this.#front.resume(options);
  }

  async stop(): Promise<void> {
    this.#front.stop();
    for (const session of this.#sessions) session.destroy();
    this.#server.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** One connection of a client has one of its own to the API server, and they end together. */
  #serve(session: ServerHttp2Session): void {
    this.#sessions.add(session);
    session.on("error", () => undefined);
    let upstream: ClientHttp2Session | undefined;
    const dial = (): ClientHttp2Session => {
      upstream ??= this.#dial(session);
      return upstream;
    };
    session.on("close", () => {
      this.#sessions.delete(session);
      upstream?.destroy();
    });
    session.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      this.#exchange(session, { stream, headers, dial }).catch((error: unknown) => {
        // A mistake in a script: the client's call fails, and the reason is to be read.
        console.error("fault proxy:", error);
        if (!stream.destroyed) stream.destroy();
      });
    });
  }

  #dial(session: ServerHttp2Session): ClientHttp2Session {
    const { url, ca } = this.#upstream;
    const upstream = connect(url, { ca });
    upstream.on("error", () => undefined);
    upstream.on("close", () => session.destroy());
    upstream.on("goaway", (code: number) => {
      if (!session.destroyed) session.goaway(code);
    });
    return upstream;
  }

  async #exchange(session: ServerHttp2Session, { stream, headers, dial }: Arrived): Promise<void> {
    const ruled = ruledRequest(headers);
    const faults = this.#rules.befall(ruled);
    const exchange = new Exchange({
      stream,
      headers,
      request: this.seen.add(
        ruled,
        faults.map(({ kind }) => kind),
      ),
      faults,
      lineFaults: () => this.#rules.lineFaultsOf(ruled),
      records: this.#records,
      upstream: dial,
      connection: {
        cut: () => session.destroy(),
        blackHole: () => this.#front.blackHole(session.socket.remotePort ?? 0),
        goaway: (code) => session.goaway(code),
      },
    });
    this.#exchanges.add(exchange);
    stream.on("close", () => this.#exchanges.delete(exchange));
    await exchange.run();
  }
}

interface Parts {
  readonly folder: string;
  readonly upstream: Upstream;
  readonly server: Http2SecureServer;
  readonly front: TcpFront;
}

interface Arrived {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly dial: () => ClientHttp2Session;
}

function ruledRequest(headers: IncomingHttpHeaders): RuledRequest {
  const url = new URL(headers[":path"] ?? "/", "https://proxy");
  return {
    method: headers[":method"] ?? "",
    path: url.pathname,
    query: url.search.slice(1),
    isWatch: url.searchParams.get("watch") === "true",
  };
}
