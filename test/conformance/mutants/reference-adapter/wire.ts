/** One request over HTTPS: within time and size, to the one host that is meant, never further. */
import { readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { Agent, request as httpsRequest } from "node:https";
import type { Mutations } from "./mutations.ts";

export interface WireRequest {
  readonly method: string;
  readonly url: URL;
  readonly token: string;
  /** JSON. */
  readonly body?: unknown;
  readonly signal: AbortSignal;
}

export type WireAnswer =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly retryAfter: string | undefined;
      /** undefined: the body is no JSON. */
      readonly json: unknown;
    }
  /** No whole answer came. "refused": nothing can have been sent. */
  | { readonly kind: "refused" | "lost" | "late" | "oversized"; readonly problem: string };

const bodyBytesMax = 1 << 20;

export class Wire {
  readonly #agent: Agent;
  readonly #connectTo: ReadonlyMap<string, URL>;
  readonly #mutations: Mutations;

  /** @param connectTo "https://host=http(s)://127.0.0.1:port" */
  constructor(caFile: string, connectTo: readonly string[], mutations: Mutations) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: 256, ca: readFileSync(caFile) });
    this.#mutations = mutations;
    this.#connectTo = new Map(
      connectTo.map((pair) => {
        const [from = "", to = ""] = pair.split("=");
        return [new URL(from).host, new URL(to)];
      }),
    );
  }

  async send(request: WireRequest): Promise<WireAnswer> {
    try {
      const response = await this.#respond(request);
      const { statusCode: status = 0, headers } = response;
      const { location, "retry-after": retryAfter } = headers;
      if (location !== undefined && this.#mutations.has("follows-redirects")) {
        response.resume();
        return await this.send({ ...request, url: new URL(location) });
      }
      const text = await this.#textOf(response);
      if (text === undefined) return { kind: "oversized", problem: "a body without end" };
      return { kind: "answer", status, retryAfter, json: jsonOf(text) };
    } catch (error) {
      if (request.signal.aborted) return { kind: "late", problem: "no answer in time" };
      const code = error instanceof Error && "code" in error ? String(error.code) : "";
      const isRefused = code === "ECONNREFUSED" || code === "ENOTFOUND" || code === "EAI_AGAIN";
      const problem = code === "" ? "the answer broke off" : code;
      return { kind: isRefused ? "refused" : "lost", problem };
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #respond({ method, url, token, body, signal }: WireRequest): Promise<IncomingMessage> {
    const to = this.#connectTo.get(url.host) ?? url;
    const text = body === undefined ? undefined : JSON.stringify(body);
    const options = {
      method,
      host: to.hostname,
      port: to.port === "" ? 443 : Number(to.port),
      path: url.pathname + url.search,
      signal,
      headers: {
        host: url.host,
        authorization: `Bearer ${token}`,
        ...(text === undefined ? {} : { "content-type": "application/json" }),
      },
    };
    return new Promise((resolve, reject) => {
      const request =
        to.protocol === "http:"
          ? httpRequest(options, resolve)
          : httpsRequest({ ...options, agent: this.#agent, ...nameOf(url) }, resolve);
      request.on("error", reject);
      request.end(text);
    });
  }

  /** undefined: it is larger than 1 MiB. */
  async #textOf(response: IncomingMessage): Promise<string | undefined> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response) {
      const piece = Buffer.from(chunk);
      bytes += piece.length;
      if (bytes > bodyBytesMax && !this.#mutations.has("unbounded-bodies")) return undefined;
      chunks.push(piece);
    }
    return Buffer.concat(chunks).toString("utf8");
  }
}

/** The name that the certificate has to carry; an address has none. */
function nameOf({ hostname }: URL): { readonly servername?: string } {
  return isIP(hostname.replace(/^\[|\]$/g, "")) === 0 ? { servername: hostname } : {};
}

function jsonOf(text: string): unknown {
  try {
    return text === "" ? {} : JSON.parse(text);
  } catch (_notJson) {
    return undefined;
  }
}
