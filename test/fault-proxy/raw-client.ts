/** For tests: an HTTP/2 client that hides nothing of what happens on the wire. */
import { once } from "node:events";
import { connect } from "node:http2";
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";

import { readUpstream } from "./proxy-kubeconfig.ts";

const pingTimeoutMs = 500;

/** One request, as far as it has come. */
export interface RawCall {
  readonly stream: ClientHttp2Stream;
  status: number | undefined;
  headers: Readonly<Record<string, unknown>>;
  /** DATA as it came, frame by frame. */
  readonly chunks: Buffer[];
  readonly text: string;
  /** "open"; "end" for a whole answer; the code of RST_STREAM, or of a lost connection. */
  ended: "open" | "end" | number;
}

export class RawClient {
  readonly session: ClientHttp2Session;
  readonly #token: string;
  /** Codes of GOAWAY frames. */
  readonly goaways: number[] = [];

  private constructor(session: ClientHttp2Session, token: string) {
    this.session = session;
    this.#token = token;
    session.on("error", () => undefined);
    session.on("goaway", (code: number) => this.goaways.push(code));
  }

  static async connect(kubeconfig: string, token: string): Promise<RawClient> {
    const { url, ca } = await readUpstream(kubeconfig);
    const client = new RawClient(connect(url, { ca }), token);
    await once(client.session, "connect");
    return client;
  }

  /** @param target path and query */
  call(target: string, method = "GET", body?: object): RawCall {
    const stream = this.session.request({
      ":method": method,
      ":path": target,
      authorization: `Bearer ${this.#token}`,
    });
    const chunks: Buffer[] = [];
    const call: RawCall = {
      stream,
      status: undefined,
      headers: {},
      chunks,
      get text() {
        return Buffer.concat(chunks).toString("utf8");
      },
      ended: "open",
    };
    stream.on("response", (headers) => {
      call.status = headers[":status"];
      call.headers = headers;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      if (stream.rstCode === 0) call.ended = "end";
    });
    stream.on("error", () => undefined);
    stream.on("close", () => {
      if (call.ended === "open" || stream.rstCode !== 0) call.ended = stream.rstCode ?? 0;
    });
    stream.end(body === undefined ? undefined : JSON.stringify(body));
    return call;
  }

  /** The call once it has ended, in whatever way. */
  async ask(target: string, method = "GET", body?: object): Promise<RawCall> {
    const call = this.call(target, method, body);
    if (!call.stream.closed) await once(call.stream, "close").catch(() => undefined);
    return call;
  }

  /** Whether the other end answers within half a second. */
  async isAlive(): Promise<boolean> {
    if (this.session.destroyed) return false;
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), pingTimeoutMs);
      this.session.ping((error) => {
        clearTimeout(timer);
        resolve(error === null);
      });
    });
  }

  close(): void {
    this.session.destroy();
  }
}
