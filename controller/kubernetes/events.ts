import { randomBytes } from "node:crypto";

import type { Clock, Timer } from "../../services/process/clock.ts";
import type { Log } from "../../services/process/log.ts";
import { Deadline } from "../queue/deadline.ts";
import { isApiError } from "./api-error.ts";
import type { Connection } from "./connection.ts";
import { eventBody, eventIdentity, eventNamespace, microTime } from "./event-object.ts";
import type { ObjectEvent } from "./event-object.ts";
import { TokenBucket } from "./token-bucket.ts";

/** What became of recorded events; all methods return at once. */
export interface EventMetrics {
  /** "sent": one call; "merged": a repeat was counted; "dropped": over a limit or not accepted. */
  onEvent(outcome: "sent" | "merged" | "dropped"): void;
}

export interface EventRecorderOptions {
  readonly connection: Pick<Connection, "request">;
  readonly clock: Clock;
  readonly log: Log;
  /** A qualified name, as in "example.com/some-controller". */
  readonly reportingController: string;
  /** This process among its replicas. */
  readonly reportingInstance: string;
  readonly metrics?: EventMetrics;
  readonly limits?: Partial<EventLimits>;
}

export interface EventLimits {
  /** A thing that happens again within this is a repeat; later it is a new event. */
  readonly seriesIdleMs: number;
  /** Repeats of one series are written at most this often. */
  readonly seriesWriteMs: number;
  readonly seriesMax: number;
  readonly pendingMax: number;
  /** Different events about one object: a burst, then one an interval. */
  readonly objectBurst: number;
  readonly objectRefillMs: number;
  /** Calls of this recorder: a burst, then one an interval. */
  readonly callBurst: number;
  readonly callRefillMs: number;
  readonly callTimeoutMs: number;
  readonly attemptsMax: number;
  readonly retryMs: number;
}

interface Series {
  readonly identity: string;
  readonly event: ObjectEvent;
  /** Of the event's name; the same in every attempt, so that a lost answer makes no second event. */
  suffix: string;
  /** Set once the event exists in the API server. */
  name: string | undefined;
  count: number;
  lastAtMs: number;
  lastWriteMs: number;
  attempts: number;
  timer: Timer | undefined;
}

/**
 * Writes events.k8s.io/v1 events beside the work, never in its way: recording returns at once and
 * never fails. Repeats become a count in the first event's series. What exceeds a limit is dropped
 * and counted: events are for people, conditions are the truth.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #limits: EventLimits;
  /** Least recently repeated first. */
  readonly #series = new Map<string, Series>();
  readonly #objectBuckets = new Map<string, TokenBucket>();
  readonly #pending = new Set<Series>();
  readonly #callBucket: TokenBucket;
  readonly #stopping = new AbortController();
  #sending: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#limits = { ...limitsDefault, ...options.limits };
    const { callBurst, callRefillMs } = this.#limits;
    this.#callBucket = new TokenBucket(options.clock, callBurst, callRefillMs);
  }

  /** Something happened. Nothing that merely goes on belongs here. */
  record(event: ObjectEvent): void {
    if (this.#isStopped) return;
    const identity = eventIdentity(event);
    const nowMs = this.#options.clock.monotonicMs();
    const known = this.#series.get(identity);
    if (known !== undefined && nowMs - known.lastAtMs <= this.#limits.seriesIdleMs) {
      this.#repeat(known, nowMs);
      return;
    }
    if (this.#pending.size >= this.#limits.pendingMax || !this.#bucketOf(event).take()) {
      this.#options.metrics?.onEvent("dropped");
      return;
    }
    if (known !== undefined) this.#forget(known);
    const series: Series = {
      identity,
      event,
      suffix: newSuffix(),
      name: undefined,
      count: 1,
      lastAtMs: nowMs,
      lastWriteMs: nowMs,
      attempts: 0,
      timer: undefined,
    };
    this.#remember(series);
    this.#enqueue(series);
  }

  /** Writes what is pending, for at most `limitMs`; records nothing from now on. */
  async stop(limitMs: number): Promise<void> {
    this.#isStopped = true;
    for (const series of this.#series.values()) {
      if (series.timer === undefined) continue;
      series.timer.cancel();
      this.#enqueue(series);
    }
    using limit = new Deadline(this.#options.clock, limitMs);
    // A rejection is the limit: the rest is lost, as said.
    await limit.race(this.#sending ?? Promise.resolve()).catch(() => undefined);
    this.#stopping.abort(new Error("event recorder is stopping"));
    await this.#sending;
  }

  #repeat(series: Series, nowMs: number): void {
    series.count += 1;
    series.lastAtMs = nowMs;
    this.#options.metrics?.onEvent("merged");
    this.#series.delete(series.identity);
    this.#series.set(series.identity, series);
    if (series.timer !== undefined || this.#pending.has(series)) return;
    const dueMs = series.lastWriteMs + this.#limits.seriesWriteMs;
    series.timer = this.#options.clock.setTimer(Math.max(0, dueMs - nowMs), () => {
      this.#enqueue(series);
    });
  }

  #remember(series: Series): void {
    this.#series.set(series.identity, series);
    const [oldest] = this.#series.values();
    if (this.#series.size > this.#limits.seriesMax && oldest !== undefined) this.#forget(oldest);
  }

  #forget(series: Series): void {
    series.timer?.cancel();
    this.#series.delete(series.identity);
  }

  #bucketOf({ regarding }: ObjectEvent): TokenBucket {
    const { objectBurst, objectRefillMs, seriesMax } = this.#limits;
    const key = `${regarding.kind}/${regarding.uid}`;
    const bucket =
      this.#objectBuckets.get(key) ??
      new TokenBucket(this.#options.clock, objectBurst, objectRefillMs);
    this.#objectBuckets.delete(key);
    this.#objectBuckets.set(key, bucket);
    const [oldest] = this.#objectBuckets.keys();
    if (this.#objectBuckets.size > seriesMax && oldest !== undefined) {
      this.#objectBuckets.delete(oldest);
    }
    return bucket;
  }

  #enqueue(series: Series): void {
    series.timer = undefined;
    this.#pending.add(series);
    this.#sending ??= this.#sendUntilEmpty();
  }

  async #sendUntilEmpty(): Promise<void> {
    while (this.#pending.size > 0 && !this.#stopping.signal.aborted) await this.#sendAll();
    // In the same turn as the check, so that nothing is enqueued unseen between them.
    this.#sending = undefined;
  }

  /** Sends one after the other; ends when nothing is pending. Never rejects. */
  async #sendAll(): Promise<void> {
    const { clock, log, metrics } = this.#options;
    for (let [series] = this.#pending; series !== undefined; [series] = this.#pending) {
      if (this.#stopping.signal.aborted) return;
      try {
        if (!this.#callBucket.take()) {
          await clock.sleep(this.#callBucket.waitMs, this.#stopping.signal);
          continue;
        }
        await this.#send(series);
        this.#pending.delete(series);
        metrics?.onEvent("sent");
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        series.attempts += 1;
        if (isWorthRetrying(error) && series.attempts < this.#limits.attemptsMax) {
          await clock.sleep(this.#limits.retryMs, this.#stopping.signal).catch(() => undefined);
          continue;
        }
        this.#pending.delete(series);
        this.#forget(series);
        metrics?.onEvent("dropped");
        log.warn({ error, reason: series.event.reason }, "cannot write event");
      }
    }
  }

  async #send(series: Series): Promise<void> {
    const { clock } = this.#options;
    const sentCount = series.count;
    series.lastWriteMs = clock.monotonicMs();
    if (series.name === undefined) await this.#create(series);
    else await this.#update(series, series.name);
    series.attempts = 0;
    // Repeats that came while it was being written are not in it yet.
    if (series.count > sentCount && !this.#isStopped && series.timer === undefined) {
      series.timer = clock.setTimer(this.#limits.seriesWriteMs, () => this.#enqueue(series));
    }
  }

  async #create(series: Series): Promise<void> {
    const { clock, connection, reportingController, reportingInstance } = this.#options;
    const nowMs = clock.now();
    const { event, suffix } = series;
    const body = eventBody({ event, reportingController, reportingInstance, nowMs, suffix });
    try {
      await connection.request({
        method: "POST",
        path: `/apis/events.k8s.io/v1/namespaces/${body.metadata.namespace}/events`,
        body: series.count > 1 ? { ...body, series: this.#seriesBody(series) } : body,
        timeoutMs: this.#limits.callTimeoutMs,
        signal: this.#stopping.signal,
      });
    } catch (error) {
      // The answer to an earlier attempt was lost.
      if (!isApiError(error, "already-exists")) throw error;
    }
    series.name = body.metadata.name;
  }

  async #update(series: Series, name: string): Promise<void> {
    const namespace = eventNamespace(series.event.regarding);
    try {
      await this.#options.connection.request({
        method: "PATCH",
        path: `/apis/events.k8s.io/v1/namespaces/${namespace}/events/${name}`,
        contentType: "application/merge-patch+json",
        body: { series: this.#seriesBody(series) },
        timeoutMs: this.#limits.callTimeoutMs,
        signal: this.#stopping.signal,
      });
    } catch (error) {
      // Events are kept for an hour or so; a series may outlive its event.
      if (!isApiError(error, "not-found")) throw error;
      series.name = undefined;
      series.suffix = newSuffix();
      await this.#create(series);
    }
  }

  #seriesBody(series: Series): object {
    const { clock } = this.#options;
    const sinceMs = clock.monotonicMs() - series.lastAtMs;
    return { count: series.count, lastObservedTime: microTime(clock.now() - sinceMs) };
  }
}

function newSuffix(): string {
  return randomBytes(8).toString("hex");
}

function isWorthRetrying(error: unknown): boolean {
  return isApiError(error, "network", "timeout", "server", "throttled", "unauthorized");
}

const limitsDefault: EventLimits = {
  seriesIdleMs: 6 * 60_000,
  seriesWriteMs: 30_000,
  seriesMax: 4_096,
  pendingMax: 1_000,
  objectBurst: 25,
  objectRefillMs: 60_000,
  callBurst: 50,
  callRefillMs: 200,
  callTimeoutMs: 5_000,
  attemptsMax: 3,
  retryMs: 1_000,
};
