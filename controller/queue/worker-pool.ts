import { assertNever } from "../../services/process/assert-never.ts";
import type { Clock } from "../../services/process/clock.ts";
import type { Log } from "../../services/process/log.ts";
import { Deadline } from "./deadline.ts";
import type { RunOutcome, WorkItem, WorkQueue } from "./work-queue.ts";

/** How a reconcile of one key ended. */
export type ReconcileResult =
  | { readonly kind: "done" }
  | { readonly kind: "requeue"; readonly afterMs: number }
  /** Tried again with back-off; `retryAfterMs` is a hint that makes it longer. */
  | { readonly kind: "error"; readonly error: unknown; readonly retryAfterMs?: number }
  /** Trying again soon cannot help: looked at again slowly, or when something changes. */
  | { readonly kind: "terminal"; readonly error: unknown; readonly reprobeAfterMs: number };

/** Brings one object to its desired state. A throw counts as an error. */
export type Reconcile = (key: string, signal: AbortSignal) => Promise<ReconcileResult>;

/** What a pool counts, named after controller_runtime_*; all methods return at once. */
export interface ReconcileMetrics {
  /** _reconcile_total by result, _reconcile_time_seconds and the two error counters. */
  onReconcile(run: { readonly result: ReconcileResult["kind"]; readonly durationMs: number }): void;
  /** _active_workers */
  onActiveWorkers(count: number): void;
}

export interface WorkerPoolOptions {
  readonly queue: WorkQueue;
  readonly reconcile: Reconcile;
  readonly clock: Clock;
  readonly log: Log;
  /** After this long a run's signal aborts; one that does not heed it keeps its worker. */
  readonly runTimeoutMs: number;
  /** Aborts: runs are told to end at once, and no more keys are taken. */
  readonly endSignal?: AbortSignal;
  readonly metrics?: ReconcileMetrics;
}

/** Runs reconciles for the keys of a queue, as many at once as the queue gives out. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #stopping = new AbortController();
  readonly #runs = new Map<string, Promise<void>>();
  #isPumpScheduled = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    const { endSignal } = options;
    const end = (): void => this.#stopping.abort(endSignal?.reason);
    if (endSignal?.aborted === true) end();
    else endSignal?.addEventListener("abort", end, { once: true });
  }

  /** Begins to take keys. Call it once. */
  start(): void {
    this.#options.queue.setReadyListener(() => this.#schedulePump());
    this.#schedulePump();
  }

  /**
   * Takes no more keys, waits up to `drainMs` for runs to end, then aborts them and waits once more
   * up to `abortMs`. Answers the keys that still run: none, where reconciles heed their signal.
   */
  async stop({ drainMs, abortMs }: StopLimits): Promise<readonly string[]> {
    this.#options.queue.close();
    await this.#waitForRuns(drainMs);
    this.#stopping.abort(new Error("worker pool is stopping"));
    await this.#waitForRuns(abortMs);
    return [...this.#runs.keys()];
  }

  /** Outside the caller's stack, so that adding to the queue never runs a reconcile inside it. */
  #schedulePump(): void {
    if (this.#isPumpScheduled) return;
    this.#isPumpScheduled = true;
    queueMicrotask(() => {
      this.#isPumpScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { queue, metrics } = this.#options;
    if (this.#stopping.signal.aborted) return;
    for (let item = queue.take(); item !== undefined; item = queue.take()) {
      this.#runs.set(item.key, this.#run(item));
      metrics?.onActiveWorkers(this.#runs.size);
    }
  }

  async #run(item: WorkItem): Promise<void> {
    const { queue, reconcile, clock, log, metrics, runTimeoutMs } = this.#options;
    const startMs = clock.monotonicMs();
    using deadline = new Deadline(clock, runTimeoutMs, this.#stopping.signal);
    const result = await settle(() => reconcile(item.key, deadline.signal));
    const durationMs = clock.monotonicMs() - startMs;
    metrics?.onReconcile({ result: result.kind, durationMs });
    const fields = { key: item.key, groups: item.groups, result: result.kind, durationMs };
    if (result.kind === "error" || result.kind === "terminal") {
      log.warn({ ...fields, error: result.error, failures: item.failures + 1 }, "reconcile failed");
    } else {
      log.debug(fields, "reconciled");
    }
    // Before the queue may give the key out again, which sets it anew.
    this.#runs.delete(item.key);
    metrics?.onActiveWorkers(this.#runs.size);
    queue.finish(item, outcomeOf(result));
  }

  async #waitForRuns(limitMs: number): Promise<void> {
    if (this.#runs.size === 0) return;
    using limit = new Deadline(this.#options.clock, limitMs);
    // Runs never reject, so a rejection is the limit, which is the caller's to look at.
    await limit.race(Promise.all(this.#runs.values())).catch(() => undefined);
  }
}

export interface StopLimits {
  readonly drainMs: number;
  readonly abortMs: number;
}

async function settle(reconcile: () => Promise<ReconcileResult>): Promise<ReconcileResult> {
  try {
    return await reconcile();
  } catch (error) {
    return { kind: "error", error };
  }
}

function outcomeOf(result: ReconcileResult): RunOutcome {
  switch (result.kind) {
    case "done":
      return { kind: "done" };
    case "requeue":
      return { kind: "again", afterMs: result.afterMs };
    case "error":
      return { kind: "failed", delayMsMin: result.retryAfterMs ?? 0 };
    case "terminal":
      return { kind: "again", afterMs: result.reprobeAfterMs };
    default:
      return assertNever(result);
  }
}
