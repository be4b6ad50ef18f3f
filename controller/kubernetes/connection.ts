import type { Client, Dispatcher } from "undici";

import type { Clock, Timer } from "../../services/process/clock.ts";
import type { Log } from "../../services/process/log.ts";
import { ApiAccessCache, isSameConnection } from "./api-access-cache.ts";
import { ApiError, apiErrorFromAnswer, isApiError } from "./api-error.ts";
import type { ApiErrorKind } from "./api-error.ts";
import { Deadline } from "../queue/deadline.ts";
import { createHttp2Client } from "./http2-client.ts";
import { parseJsonLines } from "./json-lines.ts";
import type { ApiAccess, ApiAccessSource } from "./kube-config.ts";
import { readBody } from "./response-body.ts";

/** Values of a query; undefined ones are left out. */
export type ApiQuery = Readonly<Record<string, string | number | boolean | undefined>>;

export interface ApiRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Absolute path without query, as in "/api/v1/namespaces/default/configmaps". */
  readonly path: string;
  readonly query?: ApiQuery;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Of the body; application/json where absent. */
  readonly contentType?: string;
  /** From now to the last byte of the answer, connecting and a second try after a 401 included. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface ApiStreamRequest {
  readonly path: string;
  readonly query?: ApiQuery;
  /** From now to the answer's headers. */
  readonly openTimeoutMs: number;
  /** From the headers to the end, however lively the stream is. */
  readonly streamTimeoutMs: number;
  /** Ends the stream; whoever opened a stream and does not read it to the end aborts this. */
  readonly signal: AbortSignal;
}

/** What the process counts, as client-go's rest_client_* metrics; all methods return at once. */
export interface ConnectionMetrics {
  /** `code` is the HTTP status, or "<error>" where no answer came, as client-go writes it. */
  onRequest(request: {
    readonly method: string;
    readonly host: string;
    readonly code: string;
    readonly durationMs: number;
  }): void;
  /** A TLS handshake with the API server succeeded; a healthy process makes very few. */
  onHandshake(handshake: { readonly host: string }): void;
}

export interface ConnectionOptions {
  readonly source: ApiAccessSource;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: ConnectionMetrics;
  /** Sent as User-Agent, so that audit logs say who called. */
  readonly userAgent: string;
  readonly connectTimeoutMs?: number;
  readonly pingIntervalMs?: number;
  /** How old read credentials may be before their files are looked at again. */
  readonly accessRefreshMs?: number;
  /** How long calls on a connection with replaced certificates may go on. */
  readonly retireMs?: number;
  readonly responseBytesMax?: number;
  readonly lineBytesMax?: number;
}

/**
 * The one connection to the API server that everything in a process shares: calls and watches are
 * streams of one HTTP/2 connection. Every call has a deadline; every failure is an ApiError.
 * Answers are parsed JSON as it came, so fields nobody here knows survive.
 */
export class Connection {
  readonly #options: Required<ConnectionOptions>;
  readonly #access: ApiAccessCache;
  readonly #retiring = new Map<Client, Timer>();
  #shared: { readonly access: ApiAccess; readonly client: Client } | undefined;
  #isClosed = false;

  constructor(options: ConnectionOptions) {
    this.#options = { ...connectionDefaults, ...options };
    const { source, clock, log, accessRefreshMs } = this.#options;
    this.#access = new ApiAccessCache({ source, clock, log, refreshMs: accessRefreshMs });
  }

  /**
   * One call; the answer's JSON, undefined for an empty body.
   * @throws ApiError
   */
  async request(request: ApiRequest): Promise<unknown> {
    const { clock, responseBytesMax } = this.#options;
    const what = `${request.method} ${request.path}`;
    using deadline = new Deadline(clock, request.timeoutMs, request.signal);
    try {
      const answer = await this.#sendWithAccess(request, deadline);
      const body = await readBody(answer, responseBytesMax);
      if (answer.statusCode >= 200 && answer.statusCode < 300) {
        if (body.kind === "not-json") throw unreadable(what, answer.statusCode, body.problem);
        return body.kind === "json" ? body.value : undefined;
      }
      throw apiErrorFromAnswer({
        what,
        status: answer.statusCode,
        retryAfterHeader: singleHeader(answer.headers["retry-after"]),
        body: body.kind === "json" ? body.value : undefined,
        nowMs: clock.now(),
      });
    } catch (error) {
      throw this.#toApiError(error, what, deadline);
    }
  }

  /**
   * Opens a watch and answers its lines once the server has accepted it.
   * @throws ApiError, here or while iterating
   */
  async stream(request: ApiStreamRequest): Promise<AsyncGenerator<unknown, void, undefined>> {
    const { clock, responseBytesMax } = this.#options;
    const what = `WATCH ${request.path}`;
    const deadline = new Deadline(clock, request.openTimeoutMs, request.signal);
    try {
      const answer = await this.#sendWithAccess(
        { method: "GET", path: request.path, ...(request.query && { query: request.query }) },
        deadline,
        { isStream: true },
      );
      if (answer.statusCode === 200) {
        deadline.restart(request.streamTimeoutMs);
        return this.#lines(answer, what, deadline);
      }
      const body = await readBody(answer, responseBytesMax);
      throw apiErrorFromAnswer({
        what,
        status: answer.statusCode,
        retryAfterHeader: singleHeader(answer.headers["retry-after"]),
        body: body.kind === "json" ? body.value : undefined,
        nowMs: clock.now(),
      });
    } catch (error) {
      const apiError = this.#toApiError(error, what, deadline);
      deadline[Symbol.dispose]();
      throw apiError;
    }
  }

  /** Waits up to `graceMs` for calls in flight, then breaks them. Idempotent. */
  async close(graceMs = 1_000): Promise<void> {
    this.#isClosed = true;
    const clients = [...this.#retiring.keys()];
    for (const timer of this.#retiring.values()) timer.cancel();
    this.#retiring.clear();
    if (this.#shared !== undefined) clients.push(this.#shared.client);
    this.#shared = undefined;
    await Promise.all(clients.map((client) => this.#closeClient(client, graceMs)));
  }

  async *#lines(
    answer: Dispatcher.ResponseData,
    what: string,
    deadline: Deadline,
  ): AsyncGenerator<unknown, void, undefined> {
    try {
      yield* parseJsonLines(answer.body, this.#options.lineBytesMax);
    } catch (error) {
      throw this.#toApiError(error, what, deadline);
    } finally {
      deadline[Symbol.dispose]();
    }
  }

  /** Sends, and once more with a freshly read credential when the first is refused. */
  async #sendWithAccess(
    request: SentRequest,
    deadline: Deadline,
    shape: { readonly isStream: boolean } = { isStream: false },
  ): Promise<Dispatcher.ResponseData> {
    const access = await deadline.race(this.#access.current());
    const answer = await this.#send(access, request, { deadline, ...shape });
    if (answer.statusCode !== 401) return answer;
    await answer.body.dump({ limit: refusalBytesMax });
    const fresh = await deadline.race(this.#access.afterRefusal(access));
    return this.#send(fresh, request, { deadline, ...shape });
  }

  async #send(
    access: ApiAccess,
    request: SentRequest,
    { deadline, isStream }: { readonly deadline: Deadline; readonly isStream: boolean },
  ): Promise<Dispatcher.ResponseData> {
    const { clock, metrics, userAgent } = this.#options;
    const url = new URL(access.serverUrl);
    const startMs = clock.monotonicMs();
    const count = (code: string): void => {
      const durationMs = clock.monotonicMs() - startMs;
      metrics.onRequest({ method: request.method, host: url.host, code, durationMs });
    };
    const body = request.body === undefined ? null : JSON.stringify(request.body);
    try {
      const answer = await this.#clientFor(access).request({
        method: request.method,
        path: `${url.pathname.replace(/\/$/, "")}${request.path}${queryText(request.query)}`,
        headers: {
          ...access.headers,
          accept: "application/json",
          "user-agent": userAgent,
          ...(body !== null && { "content-type": request.contentType ?? "application/json" }),
        },
        body,
        signal: deadline.signal,
        // The deadline's signal covers both; undici's own timers could only fire later. A watch
        // may be silent for longer than any body timeout.
        headersTimeout: request.timeoutMs ?? undiciTimeoutMsMax,
        bodyTimeout: isStream ? 0 : (request.timeoutMs ?? undiciTimeoutMsMax),
      });
      count(String(answer.statusCode));
      return answer;
    } catch (error) {
      count("<error>");
      throw error;
    }
  }

  #clientFor(access: ApiAccess): Client {
    if (this.#isClosed) throw new Error("connection is closed");
    if (this.#shared !== undefined) {
      if (isSameConnection(this.#shared.access, access)) return this.#shared.client;
      this.#retire(this.#shared.client);
    }
    const { connectTimeoutMs, pingIntervalMs, metrics } = this.#options;
    const { host } = new URL(access.serverUrl);
    const onHandshake = (): void => metrics.onHandshake({ host });
    const client = createHttp2Client({ access, connectTimeoutMs, pingIntervalMs, onHandshake });
    this.#shared = { access, client };
    return client;
  }

  /** Certificates were replaced: calls in flight finish, watches move over within the limit. */
  #retire(client: Client): void {
    const { clock, log, retireMs } = this.#options;
    log.info({ retireMs }, "TLS material changed, moving to a new connection");
    const timer = clock.setTimer(retireMs, () => {
      this.#retiring.delete(client);
      this.#closeClient(client, 0).catch(() => undefined);
    });
    this.#retiring.set(client, timer);
  }

  async #closeClient(client: Client, graceMs: number): Promise<void> {
    if (graceMs > 0) {
      using grace = new Deadline(this.#options.clock, graceMs);
      // Whether it ended or the grace did, the client is destroyed next.
      await grace.race(client.close()).catch(() => undefined);
    }
    if (!client.destroyed) await client.destroy();
  }

  #toApiError(error: unknown, what: string, deadline: Deadline): ApiError {
    if (isApiError(error)) return error;
    const problem = error instanceof Error ? error.message : String(error);
    let kind: ApiErrorKind = "network";
    if (deadline.isTimedOut) kind = "timeout";
    else if (deadline.signal.aborted) kind = "aborted";
    return new ApiError({
      kind,
      status: 0,
      reason: "",
      message: `cannot ${what}: ${problem}`,
      cause: error,
    });
  }
}

/** A request as sent: a stream's time limits are its deadline's alone. */
type SentRequest = Omit<ApiRequest, "timeoutMs" | "signal"> & { readonly timeoutMs?: number };

const connectionDefaults = {
  connectTimeoutMs: 5_000,
  pingIntervalMs: 3_000,
  accessRefreshMs: 10_000,
  retireMs: 30_000,
  responseBytesMax: 128 * 1024 * 1024,
  lineBytesMax: 16 * 1024 * 1024,
};

const undiciTimeoutMsMax = 10 * 60_000;
const refusalBytesMax = 64 * 1024;

function queryText(query: ApiQuery | undefined): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) search.set(name, String(value));
  }
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

function singleHeader(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

function unreadable(what: string, status: number, problem: string): ApiError {
  const message = `cannot ${what}: ${status} with an unreadable body: ${problem}`;
  return new ApiError({ kind: "unreadable", status, reason: "", message });
}
