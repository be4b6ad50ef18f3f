import { isApiError } from "./api-error.ts";
import { listInPages, readInitialEvents, streamingListQuery } from "./collection-list.ts";
import type { ApiQuery } from "./connection.ts";
import type { CollectionList } from "./object-cache.ts";
import type { WatchLimits, WatchOptions } from "./watch-options.ts";
import { WatchStream } from "./watch-stream.ts";

/** A list, and the stream it came by where that goes on as a watch. Close the stream. */
export interface OpenedList {
  readonly list: CollectionList;
  readonly stream: WatchStream | undefined;
}

export type CollectionSourceOptions = Omit<WatchOptions<unknown>, "parse" | "onEvent">;

/** The requests behind one watch: list by stream, list in pages, watch from a version. */
export class CollectionSource {
  readonly #options: CollectionSourceOptions;
  readonly #limits: WatchLimits;
  #pagesUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: CollectionSourceOptions, limits: WatchLimits) {
    this.#options = options;
    this.#limits = limits;
  }

  /**
   * A consistent list: by stream, or in pages where the server refuses or never ends the stream.
   * @param onLine called whenever the server has said something
   * @throws ApiError
   */
  async openList(signal: AbortSignal, onLine: () => void): Promise<OpenedList> {
    const { clock, path, metrics, log } = this.#options;
    if (clock.monotonicMs() >= this.#pagesUntilMs) {
      try {
        const opened = await this.#listByStream(signal, onLine);
        metrics?.onList({ path, how: "stream" });
        return opened;
      } catch (error) {
        // A server that answers neither way fails the pages as well, with the better message.
        if (!isApiError(error, "invalid", "unreadable", "timeout") || signal.aborted) throw error;
        this.#pagesUntilMs = clock.monotonicMs() + this.#limits.pagesPreferredMs;
        log.warn({ path, error }, "streaming list failed, listing in pages");
      }
    }
    const list = await this.#listInPages(signal);
    onLine();
    metrics?.onList({ path, how: "pages" });
    return { list, stream: undefined };
  }

  /** @throws ApiError */
  async openWatch(signal: AbortSignal, resourceVersion: string | undefined): Promise<WatchStream> {
    const query = { watch: true, allowWatchBookmarks: true, resourceVersion };
    return this.#openStream(signal, query, this.#limits.openTimeoutMs);
  }

  async #listByStream(signal: AbortSignal, onLine: () => void): Promise<OpenedList> {
    const { clock, path } = this.#options;
    const { initialSilenceMs, initialTotalMs, objectsMax } = this.#limits;
    const untilMs = clock.monotonicMs() + initialTotalMs;
    const stream = await this.#openStream(signal, streamingListQuery, initialSilenceMs);
    try {
      const list = await readInitialEvents(stream, `WATCH ${path}`, {
        objectsMax,
        onLine: () => {
          onLine();
          stream.allowSilence(Math.min(initialSilenceMs, untilMs - clock.monotonicMs()));
        },
      });
      return { list, stream };
    } catch (error) {
      await stream.return();
      throw error;
    }
  }

  #listInPages(signal: AbortSignal): Promise<CollectionList> {
    const { connection, path } = this.#options;
    const { pageSize, objectsMax, pageTimeoutMs: timeoutMs } = this.#limits;
    const query = this.#selectors;
    return listInPages({ connection, path, query, pageSize, objectsMax, timeoutMs, signal });
  }

  #openStream(signal: AbortSignal, query: ApiQuery, silenceMs: number): Promise<WatchStream> {
    const { connection, clock, path, random } = this.#options;
    const { watchSecondsMin, openTimeoutMs } = this.#limits;
    const timeoutSeconds = Math.ceil(watchSecondsMin * (1 + random()));
    return WatchStream.open({
      connection,
      clock,
      path,
      query: { ...this.#selectors, ...query, timeoutSeconds },
      openTimeoutMs,
      // The server ends it first; this is for one that forgets to.
      streamTimeoutMs: timeoutSeconds * 1000 + openTimeoutMs,
      silenceMs,
      signal,
    });
  }

  get #selectors(): ApiQuery {
    const { labelSelector, fieldSelector } = this.#options;
    return { labelSelector, fieldSelector };
  }
}
