/** Stands before a vendor's plain HTTP server on loopback, and answers in its place on request. */
import { createServer, request as httpRequest } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";

/** An answer that is not the vendor's. */
export interface Instead {
  readonly status: number;
  /** Content type. */
  readonly type: string;
  readonly body: string;
}

type Before = () => Promise<unknown>;

const bodyBytesMax = 1 << 20;
const timeoutMs = 10_000;

export class AnsweringProxy {
  readonly #server: Server;
  #vendorUrl = "";
  #all: Instead | undefined;
  readonly #next: { readonly path: string; readonly instead: Instead | Before }[] = [];

  constructor() {
    this.#server = createServer((asked, answer) => void this.#serve(asked, answer));
  }

  /** The proxy's own URL. */
  async start(vendorUrl: string): Promise<string> {
    this.#vendorUrl = vendorUrl;
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const address = this.#server.address();
    if (typeof address !== "object" || address === null) throw new Error("no TCP server");
    return `http://127.0.0.1:${address.port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** From now on everything is answered so, until `reset`. */
  answerAll(instead: Instead): void {
    this.#all = instead;
  }

  /** The next request whose path ends so is answered in the vendor's place. */
  answerNext(path: string, instead: Instead): void {
    this.#next.push({ path, instead });
  }

  /** The next request whose path ends so goes on to the vendor when `act` is done. */
  beforeNext(path: string, act: Before): void {
    this.#next.push({ path, instead: act });
  }

  reset(): void {
    this.#all = undefined;
    this.#next.length = 0;
  }

  async #serve(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const body = await bodyOf(asked);
    const at = this.#next.findIndex(({ path }) => asked.url?.endsWith(path) === true);
    const [next] = at < 0 ? [] : this.#next.splice(at, 1);
    const instead = next?.instead ?? this.#all;
    if (typeof instead === "object") {
      answer.writeHead(instead.status, { "content-type": instead.type }).end(instead.body);
      return;
    }
    if (instead !== undefined) await instead();
    this.#forward(asked, body, answer);
  }

  #forward(asked: IncomingMessage, body: Buffer, answer: ServerResponse): void {
    const { method, headers, url = "/" } = asked;
    const options = { method, headers, timeout: timeoutMs };
    const sent = httpRequest(new URL(url, this.#vendorUrl), options, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
    });
    sent.on("timeout", () => sent.destroy(new Error("the vendor does not answer")));
    sent.on("error", () => answer.destroy());
    sent.end(body);
  }
}

async function bodyOf(asked: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of asked) {
    const part = Buffer.from(chunk);
    bytes += part.length;
    if (bytes > bodyBytesMax) throw new Error("the request is too large");
    chunks.push(part);
  }
  return Buffer.concat(chunks);
}
