import { assertNever } from "../../services/process/assert-never.ts";
import { backOffMs } from "../queue/back-off.ts";
import { ApiError, isApiError } from "./api-error.ts";
import { CollectionSource } from "./collection-source.ts";
import type { OpenedList } from "./collection-source.ts";
import { ObjectCache } from "./object-cache.ts";
import type { CollectionList, ListTicket, WatchEvent } from "./object-cache.ts";
import { watchLimitsDefault } from "./watch-options.ts";
import type { WatchLimits, WatchOptions } from "./watch-options.ts";
import type { WatchStream } from "./watch-stream.ts";
import { parseWireEvent } from "./wire-event.ts";
import type { WireEvent } from "./wire-event.ts";

/**
 * What a watch is doing, for readiness and for people.
 * - waiting-for-crd: the API server does not know the resource yet; tried again until it does
 * - retrying: the last attempt failed (see lastError); the cache may be growing old
 */
export type WatchState =
  | "starting"
  | "listing"
  | "watching"
  | "waiting-for-crd"
  | "retrying"
  | "stopped";

/**
 * Keeps a collection's objects in memory and tells what changed. Lists by stream (WatchList), in
 * pages where that fails, then watches; whatever goes wrong short of being stopped is retried.
 */
export class Watch<T> {
  readonly #options: WatchOptions<T>;
  readonly #limits: WatchLimits;
  readonly #source: CollectionSource;
  readonly #cache: ObjectCache<T>;
  readonly #syncWaiters = new Set<() => void>();
  #state: WatchState = "starting";
  #lastError: ApiError | undefined;
  #lastHeardMs: number | undefined;
  #isListNeeded = true;
  #hasSynced = false;
  #failures = 0;
  #staleLists = 0;
  #epoch = 0;

  constructor(options: WatchOptions<T>) {
    this.#options = options;
    this.#limits = { ...watchLimitsDefault, ...options.limits };
    this.#source = new CollectionSource(options, this.#limits);
    this.#cache = new ObjectCache<T>({
      parse: options.parse,
      onUnreadable: (key, error) => {
        options.log.error({ path: options.path, key, error }, "cannot read object");
        options.metrics?.onDefect({ path: options.path, what: "unreadable" });
      },
    });
  }

  get state(): WatchState {
    return this.#state;
  }

  /** Why the last attempt failed; undefined while all is well. */
  get lastError(): ApiError | undefined {
    return this.#lastError;
  }

  /** True once the collection was listed; stays true while the cache ages during an outage. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** When the server last said anything, on the clock's monotonic scale. */
  get lastHeardMs(): number | undefined {
    return this.#lastHeardMs;
  }

  /** Everything up to this version has been seen. */
  get resourceVersion(): string | undefined {
    return this.#cache.resourceVersion;
  }

  /** Changes when the server's versions were set back: versions of different epochs are apart. */
  get epoch(): number {
    return this.#epoch;
  }

  /** The object named "namespace/name", or "name" where there is no namespace. Frozen. */
  get(key: string): T | undefined {
    return this.#cache.get(key);
  }

  list(): T[] {
    return this.#cache.list();
  }

  keys(): string[] {
    return this.#cache.keys();
  }

  /** The cached resourceVersion of one object, readable or not. */
  versionOf(key: string): string | undefined {
    return this.#cache.versionOf(key);
  }

  /** Resolves once hasSynced; rejects with the signal's reason. */
  async whenSynced(signal: AbortSignal): Promise<void> {
    if (this.#hasSynced) return;
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        this.#syncWaiters.delete(onSync);
        reject(signal.reason);
      };
      const onSync = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      this.#syncWaiters.add(onSync);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Runs until `signal` aborts, then resolves; never rejects. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, metrics, path } = this.#options;
    while (!signal.aborted) {
      try {
        await this.#attempt(signal);
        metrics?.onEnd({ path, reason: "end" });
      } catch (error) {
        if (signal.aborted) break;
        const wasWaiting = this.#state === "waiting-for-crd";
        const delayMs = this.#retryDelayMs(error);
        // Waiting may last; the state says so, once in the log is enough.
        const isNews = !wasWaiting || this.#state !== "waiting-for-crd";
        const level = isNews ? "warn" : "debug";
        log[level]({ path, error, delayMs, state: this.#state }, "watch failed, trying again");
        await clock.sleep(delayMs, signal).catch(() => undefined);
      }
    }
    this.#state = "stopped";
  }

  /**
   * Brings the cache up to at least the present, whatever the running watch has received: for a
   * process that takes over. A consistent read.
   * @throws ApiError
   */
  async refresh(signal: AbortSignal): Promise<void> {
    const ticket = this.#cache.beginList();
    try {
      const { list, stream } = await this.#source.openList(signal, () => this.#heard());
      await stream?.return();
      this.#merge(list, ticket);
    } finally {
      this.#cache.abandonList(ticket);
    }
  }

  /** Lists where needed, then follows one watch until it ends or fails. */
  async #attempt(signal: AbortSignal): Promise<void> {
    const listed = this.#isListNeeded ? await this.#listAndMerge(signal) : undefined;
    const stream = listed ?? (await this.#source.openWatch(signal, this.#cache.resourceVersion));
    try {
      await this.#follow(stream);
    } finally {
      await stream.return();
    }
  }

  /** Answers the stream the list came by, where it goes on as a watch. */
  async #listAndMerge(signal: AbortSignal): Promise<WatchStream | undefined> {
    if (this.#state !== "waiting-for-crd") this.#state = "listing";
    const ticket = this.#cache.beginList();
    let opened: OpenedList | undefined;
    try {
      opened = await this.#source.openList(signal, () => this.#heard());
      this.#merge(opened.list, ticket);
      return opened.stream;
    } catch (error) {
      await opened?.stream?.return();
      throw error;
    } finally {
      this.#cache.abandonList(ticket);
    }
  }

  /** Takes a list into the cache, unless it is older than the cache: once is a lagging server. */
  #merge(list: CollectionList, ticket: ListTicket): void {
    if (this.#cache.isStale(list, ticket)) {
      this.#staleLists += 1;
      if (this.#staleLists < this.#limits.staleListsMax) throw staleList(this.#options.path, list);
      this.#options.log.warn(
        { path: this.#options.path, from: this.resourceVersion, to: list.resourceVersion },
        "the API server's versions were set back",
      );
      this.#epoch += 1;
      this.#deliver(this.#cache.mergeRollback(list, ticket));
    } else {
      this.#deliver(this.#cache.merge(list, ticket));
    }
    this.#staleLists = 0;
    this.#isListNeeded = false;
    this.#hasSynced = true;
    for (const wake of this.#syncWaiters) wake();
    this.#syncWaiters.clear();
  }

  /**
   * Handles lines until the server ends the stream. The API server sends a bookmark each minute,
   * but its first only once its version has passed the one the stream began at: until then a quiet
   * collection and a dead connection look alike, and only pings tell them apart.
   */
  async #follow(stream: WatchStream): Promise<void> {
    const { clock, path } = this.#options;
    const { silenceMs, watchSecondsMin, openTimeoutMs, retryMsMin } = this.#limits;
    const startMs = clock.monotonicMs();
    let allowedSilenceMs = watchSecondsMin * 2_000 + openTimeoutMs;
    this.#state = "watching";
    this.#lastError = undefined;
    stream.allowSilence(allowedSilenceMs);
    for await (const line of stream) {
      this.#heard();
      this.#failures = 0;
      const event = parseWireEvent(line, `WATCH ${path}`);
      if (event.kind === "bookmark") allowedSilenceMs = silenceMs;
      this.#handle(event);
      stream.allowSilence(allowedSilenceMs);
    }
    const livedMs = clock.monotonicMs() - startMs;
    if (livedMs < retryMsMin) throw endedAtOnce(path, livedMs);
    this.#failures = 0;
  }

  #handle(event: WireEvent): void {
    switch (event.kind) {
      case "upsert":
        return this.#deliver(this.#cache.upsert(event.object));
      case "delete":
        return this.#deliver(this.#cache.remove(event.object));
      case "bookmark":
        return this.#cache.advance(event.resourceVersion);
      case "error":
        throw event.error;
      default:
        return assertNever(event);
    }
  }

  #deliver(events: readonly WatchEvent<T>[]): void {
    const { path, onEvent, log, metrics } = this.#options;
    for (const event of events) {
      try {
        onEvent(event);
      } catch (error) {
        log.error({ path, key: event.key, kind: event.kind, error }, "watch handler threw");
        metrics?.onDefect({ path, what: "handler" });
      }
    }
  }

  #heard(): void {
    this.#lastHeardMs = this.#options.clock.monotonicMs();
  }

  /** Notes a failure and answers when to try again. */
  #retryDelayMs(error: unknown): number {
    const { path, random, metrics } = this.#options;
    const { retryMsMin, retryMsMax, unknownResourceRetryMs, failuresBeforeList } = this.#limits;
    const apiError = isApiError(error) ? error : defect(path, error);
    this.#lastError = apiError;
    this.#failures += 1;
    metrics?.onEnd({ path, reason: apiError.kind });
    if (isListNeededAfter(apiError) || this.#failures % failuresBeforeList === 0) {
      this.#isListNeeded = true;
    }
    if (apiError.kind === "not-found") {
      this.#state = "waiting-for-crd";
      return unknownResourceRetryMs * (0.75 + random() / 2);
    }
    this.#state = "retrying";
    const ownMs = backOffMs({ minMs: retryMsMin, maxMs: retryMsMax }, this.#failures, random);
    return Math.max(ownMs, (apiError.retryAfterMs ?? 0) * (1 + random() / 10));
  }
}

/** The version we know is no place to watch from any more, or the resource itself went away. */
function isListNeededAfter(error: ApiError): boolean {
  return (
    error.kind === "gone" ||
    error.kind === "not-found" ||
    error.causes.includes("ResourceVersionTooLarge")
  );
}

function staleList(path: string, list: CollectionList): ApiError {
  const message = `cannot LIST ${path}: ${list.resourceVersion} is older than what is known`;
  return new ApiError({ kind: "server", status: 200, reason: "", message });
}

function endedAtOnce(path: string, livedMs: number): ApiError {
  const message = `cannot WATCH ${path}: ended after ${Math.round(livedMs)} ms`;
  return new ApiError({ kind: "server", status: 200, reason: "", message });
}

function defect(path: string, cause: unknown): ApiError {
  const message = `cannot WATCH ${path}: defect`;
  return new ApiError({ kind: "unreadable", status: 0, reason: "", message, cause });
}
