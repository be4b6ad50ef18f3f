import type { Clock } from "../../services/process/clock.ts";
import { ApiError } from "./api-error.ts";
import type { ApiQuery, Connection } from "./connection.ts";
import { Deadline } from "../queue/deadline.ts";

export interface WatchStreamRequest {
  readonly connection: Pick<Connection, "stream">;
  readonly clock: Clock;
  readonly path: string;
  readonly query: ApiQuery;
  readonly openTimeoutMs: number;
  readonly streamTimeoutMs: number;
  /** Until the first line; `allowSilence` sets it anew. */
  readonly silenceMs: number;
  readonly signal: AbortSignal;
}

/**
 * The lines of one open watch, which ends with an ApiError "timeout" when none comes for too long:
 * a dead connection looks just like a quiet collection.
 */
export class WatchStream implements AsyncIterableIterator<unknown, void, undefined> {
  readonly #path: string;
  readonly #quiet: Deadline;
  readonly #lines: AsyncGenerator<unknown, void, undefined>;

  private constructor(
    path: string,
    quiet: Deadline,
    lines: AsyncGenerator<unknown, void, undefined>,
  ) {
    this.#path = path;
    this.#quiet = quiet;
    this.#lines = lines;
  }

  /** @throws ApiError */
  static async open(request: WatchStreamRequest): Promise<WatchStream> {
    const { connection, clock, path, query, openTimeoutMs, streamTimeoutMs } = request;
    const quiet = new Deadline(clock, request.silenceMs, request.signal);
    try {
      const signal = quiet.signal;
      const lines = await connection.stream({
        path,
        query,
        openTimeoutMs,
        streamTimeoutMs,
        signal,
      });
      return new WatchStream(path, quiet, lines);
    } catch (error) {
      quiet[Symbol.dispose]();
      throw quiet.isTimedOut ? silent(path, error) : error;
    }
  }

  /** True after the stream was ended for its silence. */
  get hasFallenSilent(): boolean {
    return this.#quiet.isTimedOut;
  }

  /** The next line may take this long from now. */
  allowSilence(silenceMs: number): void {
    this.#quiet.restart(silenceMs);
  }

  /** @throws ApiError */
  async next(): Promise<IteratorResult<unknown, void>> {
    try {
      return await this.#lines.next();
    } catch (error) {
      throw this.hasFallenSilent ? silent(this.#path, error) : error;
    }
  }

  /** Closes the stream. */
  async return(): Promise<IteratorResult<unknown, void>> {
    // Aborting also frees a stream of which no line was ever asked for.
    this.#quiet.end();
    await this.#lines.return();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

function silent(path: string, cause: unknown): ApiError {
  const message = `cannot WATCH ${path}: nothing heard in time`;
  return new ApiError({ kind: "timeout", status: 0, reason: "", message, cause });
}
