import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { constants, createSecureServer } from "node:http2";
import type {
  Http2SecureServer,
  Http2ServerRequest,
  Http2ServerResponse,
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import type { TLSSocket } from "node:tls";
import { join } from "node:path";

import { createTestAuthority } from "./fake-certificates.ts";
import type { TestAuthority } from "./fake-certificates.ts";
import { TcpRelay } from "./tcp-relay.ts";

/** One request that arrived; a handler answers it once. */
export interface FakeCall {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Parsed JSON, undefined where there was none. */
  readonly body: unknown;
  answer(status: number, body?: unknown, headers?: Readonly<Record<string, string>>): void;
  /** Answers 200 and keeps the stream open for lines. */
  openWatch(): FakeWatch;
  /** Resets the stream without an answer. */
  reset(): void;
}

/** An open watch, seen from the server. */
export interface FakeWatch {
  readonly query: URLSearchParams;
  readonly isOpen: boolean;
  send(type: string, object: object): void;
  sendBytes(bytes: Uint8Array): void;
  end(): void;
  reset(): void;
}

/**
 * A scripted API server for tests: real HTTP/2 over TLS on loopback, with handlers in place of
 * storage, so that it can misbehave in ways the real one seldom does.
 */
export class FakeApiServer {
  /** Answers each request; replace it to change how the server behaves. */
  handler: (call: FakeCall) => void = (call) => call.answer(404, notFound);
  readonly calls: Pick<FakeCall, "method" | "path" | "query" | "headers" | "body">[] = [];
  /** Connections opened so far. */
  sessionCount = 0;
  readonly folder: string;
  readonly kubeconfig: string;
  readonly #server: Http2SecureServer;
  #relay: TcpRelay;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #sockets = new Set<TLSSocket>();
  #authority: TestAuthority;
  #token = "token-1";
  readonly #tokenEnd: string;

  private constructor({ folder, server, relay, authority, tokenEnd }: Parts) {
    this.#tokenEnd = tokenEnd;
    this.folder = folder;
    this.#relay = relay;
    this.kubeconfig = join(folder, "kubeconfig");
    this.#server = server;
    this.#authority = authority;
    server.on("session", (session: ServerHttp2Session) => {
      this.sessionCount += 1;
      this.#sessions.add(session);
      session.on("close", () => this.#sessions.delete(session));
      session.on("error", () => undefined);
    });
    // Clients that speak HTTP/1.1 alone, as client-node does; HTTP/2 comes as "stream".
    server.on("secureConnection", (socket: TLSSocket) => {
      if (socket.alpnProtocol === "h2") return;
      this.sessionCount += 1;
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    server.on("request", (request: Http2ServerRequest, response: Http2ServerResponse) => {
      if (request.httpVersionMajor > 1) return;
      this.#receiveHttp1(request, response).catch((error: unknown) =>
        request.socket.destroy(asError(error)),
      );
    });
    server.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      this.#receive(stream, headers).catch((error: unknown) => stream.destroy(asError(error)));
    });
  }

  /** @param tokenEnd behind the token in its file: editors end a file with a line break */
  static async start(tokenEnd = "\n"): Promise<FakeApiServer> {
    const folder = await mkdtemp(join(tmpdir(), "fake-api-server-"));
    const authority = await createTestAuthority();
    const server = createSecureServer({ ...(await authority.issue("server")), allowHTTP1: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    // A listening TCP server's address is never a path.
    const relay = await TcpRelay.start((server.address() as AddressInfo).port);
    const fake = new FakeApiServer({ folder, server, relay, authority, tokenEnd });
    await writeFile(join(folder, "token"), `token-1${tokenEnd}`);
    await fake.#writeKubeconfig();
    return fake;
  }

  /** The only token that counts from now on; the file changes with it unless told otherwise. */
  async rotateToken(token: string, isFileWritten = true): Promise<void> {
    this.#token = token;
    if (isFileWritten) await writeFile(join(this.folder, "token"), token + this.#tokenEnd);
  }

  /** New authority, new server certificate, new kubeconfig; connections stay as they are. */
  async rotateAuthority(): Promise<void> {
    this.#authority = await createTestAuthority();
    this.#server.setSecureContext(await this.#authority.issue("server"));
    await this.#writeKubeconfig();
  }

  /** Breaks every connection at once. */
  cutConnections(): void {
    for (const session of this.#sessions) session.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Makes open connections dead without closing them; new ones work. */
  blackHole(): void {
    this.#relay.blackHole();
  }

  /** Refuses connections, and cuts those there are. */
  stopListening(): void {
    this.#relay.stop();
  }

  /** On the same port as before. */
  async listenAgain(): Promise<void> {
    this.#relay = await TcpRelay.start(this.#relay.targetPort, this.#relay.port);
  }

  async stop(): Promise<void> {
    this.cutConnections();
    this.#relay.stop();
    this.#server.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  async #receive(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    stream.on("error", () => undefined);
    const method = headers[":method"]?.toString() ?? "";
    const url = new URL(headers[":path"]?.toString() ?? "/", "https://fake");
    const body = await bodyOf(stream);
    const asked = { method, path: url.pathname, query: url.searchParams, headers, body };
    this.#answer({ ...asked, ...answersOn(stream, url.searchParams) });
  }

  async #receiveHttp1(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    const { method, headers } = request;
    const url = new URL(request.url, "https://fake");
    const body = await bodyOf(request);
    const asked = { method, path: url.pathname, query: url.searchParams, headers, body };
    this.#answer({ ...asked, ...answersOverHttp1(response, url.searchParams) });
  }

  #answer(call: FakeCall): void {
    const { method, path, query, headers, body } = call;
    this.calls.push({ method, path, query, headers, body });
    if (headers.authorization === `Bearer ${this.#token}`) this.handler(call);
    else call.answer(401, statusBody(401, "Unauthorized"));
  }

  async #writeKubeconfig(): Promise<void> {
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        {
          name: "fake",
          cluster: {
            server: `https://127.0.0.1:${this.#relay.port}`,
            "certificate-authority-data": Buffer.from(this.#authority.ca).toString("base64"),
          },
        },
      ],
      users: [{ name: "fake", user: { tokenFile: "token" } }],
      contexts: [{ name: "fake", context: { cluster: "fake", user: "fake" } }],
      "current-context": "fake",
    };
    await writeFile(this.kubeconfig, JSON.stringify(config));
  }
}

interface Parts {
  readonly folder: string;
  readonly server: Http2SecureServer;
  readonly relay: TcpRelay;
  readonly authority: TestAuthority;
  readonly tokenEnd: string;
}

async function bodyOf(incoming: AsyncIterable<unknown>): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of incoming) if (chunk instanceof Uint8Array) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  return text === "" ? undefined : JSON.parse(text);
}

function answersOverHttp1(
  response: Http2ServerResponse,
  query: URLSearchParams,
): Pick<FakeCall, "answer" | "openWatch" | "reset"> {
  const reset = (): void => void response.socket?.destroy();
  return {
    answer: (status, body, headers = {}) => {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(text);
    },
    openWatch: () => {
      response.writeHead(200, { "content-type": "application/json" });
      return {
        query,
        get isOpen() {
          return !response.writableEnded && !(response.socket?.destroyed ?? true);
        },
        send: (type, object) => void response.write(`${JSON.stringify({ type, object })}\n`),
        sendBytes: (bytes) => void response.write(bytes),
        end: () => void response.end(),
        reset,
      };
    },
    reset,
  };
}

function answersOn(
  stream: ServerHttp2Stream,
  query: URLSearchParams,
): Pick<FakeCall, "answer" | "openWatch" | "reset"> {
  return {
    answer: (status, body, headers = {}) => {
      if (stream.destroyed) return;
      const text = typeof body === "string" ? body : JSON.stringify(body);
      stream.respond({ ":status": status, "content-type": "application/json", ...headers });
      stream.end(text);
    },
    openWatch: () => {
      stream.respond({ ":status": 200, "content-type": "application/json" });
      return {
        query,
        get isOpen() {
          return !stream.destroyed && !stream.writableEnded;
        },
        send: (type, object) => {
          if (!stream.destroyed) stream.write(`${JSON.stringify({ type, object })}\n`);
        },
        sendBytes: (bytes) => void stream.write(bytes),
        end: () => void stream.end(),
        reset: () => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
      };
    },
    reset: () => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
  };
}

/** A metav1.Status as failures carry it. */
export function statusBody(code: number, reason: string, details?: object): object {
  return {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code,
    reason,
    message: reason,
    details,
  };
}

const notFound = statusBody(404, "NotFound");

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
