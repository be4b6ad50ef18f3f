import type { Clock } from "../../services/process/clock.ts";
import type { Log } from "../../services/process/log.ts";
import type { Connection } from "./connection.ts";
import type { WatchEvent } from "./object-cache.ts";
import type { RawObject } from "./raw-object.ts";

/** Counts of one watch; all methods return at once. */
export interface WatchMetrics {
  /** The collection was listed, by stream or in pages. */
  onList(list: { readonly path: string; readonly how: "stream" | "pages" }): void;
  /** A watch ended: "end" as planned, "silence", or the kind of an ApiError. */
  onEnd(end: { readonly path: string; readonly reason: string }): void;
  /** A handler threw, or an object could not be read. */
  onDefect(defect: { readonly path: string; readonly what: "handler" | "unreadable" }): void;
}

export interface WatchOptions<T> {
  readonly connection: Pick<Connection, "request" | "stream">;
  /** Path of the collection, as in "/apis/example.com/v1/widgets". */
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** The checked door from JSON to T. A throw counts as an unreadable object and is logged. */
  readonly parse: (raw: RawObject) => T;
  /** Called in order, once per change; a throw is logged and loses no later event. */
  readonly onEvent: (event: WatchEvent<T>) => void;
  readonly clock: Clock;
  /** In [0, 1), as Math.random. */
  readonly random: () => number;
  readonly log: Log;
  readonly metrics?: WatchMetrics;
  readonly limits?: Partial<WatchLimits>;
}

export interface WatchLimits {
  /** A watch is asked to end between this and twice this, so that watches do not end together. */
  readonly watchSecondsMin: number;
  /** How long the server may take to accept a watch. */
  readonly openTimeoutMs: number;
  /** After a stream's first bookmark one comes each minute: longer silence means dead. */
  readonly silenceMs: number;
  /** Longest pause, and longest duration, of a streaming list before pages are used instead. */
  readonly initialSilenceMs: number;
  readonly initialTotalMs: number;
  /** How long pages are preferred after a streaming list failed. */
  readonly pagesPreferredMs: number;
  readonly pageTimeoutMs: number;
  readonly pageSize: number;
  readonly objectsMax: number;
  readonly retryMsMin: number;
  readonly retryMsMax: number;
  /** Between tries while the API server does not know the resource. */
  readonly unknownResourceRetryMs: number;
  /** Failures in a row of a watch at one version before the collection is listed again. */
  readonly failuresBeforeList: number;
  /** Lists in a row older than the cache before it is believed that the store was set back. */
  readonly staleListsMax: number;
}

export const watchLimitsDefault: WatchLimits = {
  watchSecondsMin: 300,
  openTimeoutMs: 30_000,
  silenceMs: 75_000,
  initialSilenceMs: 10_000,
  initialTotalMs: 60_000,
  pagesPreferredMs: 10 * 60_000,
  pageTimeoutMs: 30_000,
  pageSize: 500,
  objectsMax: 100_000,
  retryMsMin: 200,
  retryMsMax: 5_000,
  unknownResourceRetryMs: 2_000,
  failuresBeforeList: 5,
  staleListsMax: 5,
};
