/**
 * The controller: two watches, a queue, a pool of workers that reconcile. It holds no truth of its
 * own; what it remembers can be lost.
 */
import type { Clock } from "../services/process/clock.ts";
import type { Log } from "../services/process/log.ts";
import { isApiError } from "./kubernetes/api-error.ts";
import type { Connection } from "./kubernetes/connection.ts";
import type { WatchEvent } from "./kubernetes/object-cache.ts";
import { OwnWrites } from "./kubernetes/own-writes.ts";
import type { RawObject } from "./kubernetes/raw-object.ts";
import { ResourceClient, collectionPath } from "./kubernetes/resource-client.ts";
import type { ResourceType } from "./kubernetes/resource-client.ts";
import { Watch } from "./kubernetes/watch.ts";
import type { WatchMetrics } from "./kubernetes/watch-options.ts";
import type { QueueMetrics, QueueSnapshot } from "./queue/queue-metrics.ts";
import type { Priority } from "./queue/ready-keys.ts";
import { WorkQueue } from "./queue/work-queue.ts";
import { WorkerPool } from "./queue/worker-pool.ts";
import type { ReconcileMetrics, ReconcileResult } from "./queue/worker-pool.ts";
import { ClassKeeper } from "./classes/class-keeper.ts";
import type { Providers } from "./providers/providers.ts";
import { ApiObjects } from "./reconcile/api-objects.ts";
import { DeletionBudget } from "./reconcile/deletion-budget.ts";
import { DoubtLedger } from "./reconcile/doubt.ts";
import { InheritedDoubt } from "./reconcile/inherited-doubt.ts";
import { Memories } from "./reconcile/memory.ts";
import type { ObjectEvent } from "./reconcile/provider-objects.ts";
import type { FleetIdentity } from "./reconcile/provider-requests.ts";
import { Reconciler } from "./reconcile/reconciler.ts";
import type { ReconcilerOptions } from "./reconcile/reconciler-parts.ts";
import { hostOf } from "./resource/class-choice.ts";
import { parseDigitalHumanProvider } from "./resource/digital-human-provider.ts";
import type { DigitalHumanProvider } from "./resource/digital-human-provider.ts";
import { objectAt, stringAt } from "./resource/json-door.ts";
import { apiGroup, apiVersion } from "./resource/names.ts";
import { parseProviderClass } from "./resource/provider-class.ts";
import type { ProviderClass } from "./resource/provider-class.ts";

export interface ControllerOptions extends ReconcilerOptions {
  readonly workersMax: number;
  /** How long a call to the API server may take. */
  readonly apiTimeoutMs: number;
  /** How long this process's mutations stay allowed from now on. */
  readonly fencingMs: number;
  /** How long running passes may go on after a stop. */
  readonly drainMs: number;
}

export interface ControllerMetrics {
  readonly queue: QueueMetrics;
  readonly reconcile: ReconcileMetrics;
  readonly watch: WatchMetrics;
  /** A write to our objects was sent. */
  readonly onWrite: (what: "object" | "status") => void;
}

export interface ControllerParts {
  readonly connection: Connection;
  readonly providers: Providers;
  readonly identity: FleetIdentity;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: ControllerMetrics;
  readonly onEvent: (object: DigitalHumanProvider, event: ObjectEvent) => void;
  readonly options: ControllerOptions;
}

export const providerResource: ResourceType = {
  group: apiGroup,
  version: apiVersion,
  plural: "digitalhumanproviders",
  isNamespaced: true,
};

export const classResource: ResourceType = {
  group: apiGroup,
  version: apiVersion,
  plural: "digitalhumanproviderclasses",
  isNamespaced: false,
};

/** A pass makes a handful of calls, each with its own deadline; this ends what still hangs. */
const passTimeoutMs = 120_000;

export class Controller {
  readonly #parts: ControllerParts;
  readonly #queue: WorkQueue;
  readonly #pool: WorkerPool;
  readonly #objects: Watch<RawObject>;
  readonly #classes: Watch<RawObject>;
  readonly #keeper: ClassKeeper;
  readonly #memories = new Memories();
  readonly #doubts = new DoubtLedger();
  readonly #inherited = new InheritedDoubt(this.#doubts);
  readonly #watching = new AbortController();
  #watches: Promise<unknown> = Promise.resolve();
  #isWorking = false;
  /** The classes as parsed; undefined after a change. */
  #parsedClasses: readonly ProviderClass[] | undefined;

  constructor(parts: ControllerParts) {
    this.#parts = parts;
    const { clock, random, log, metrics, options } = parts;
    this.#queue = new WorkQueue({
      clock,
      random,
      workersMax: options.workersMax,
      backOff: { minMs: options.backOffMsMin, maxMs: options.backOffMsMax },
      eventFloorMs: options.backOffMsMin,
      metrics: metrics.queue,
    });
    this.#objects = this.#watch(providerResource, (event) => this.#objectChanged(event));
    this.#classes = this.#watch(classResource, ({ key }) => this.#classChanged(key));
    this.#keeper = this.#createKeeper();
    const reconciler = this.#reconciler();
    this.#pool = new WorkerPool({
      queue: this.#queue,
      reconcile: (key, signal) => reconcileOnce(reconciler, key, signal),
      clock,
      log,
      runTimeoutMs: passTimeoutMs,
      metrics: metrics.reconcile,
    });
  }

  /** Resolves once both kinds are listed and work has begun; rejects when the signal aborts. */
  async start(signal: AbortSignal): Promise<void> {
    const { clock, options, log } = this.#parts;
    this.#watches = Promise.all([
      this.#objects.run(this.#watching.signal),
      this.#classes.run(this.#watching.signal),
    ]);
    await Promise.all([this.#objects.whenSynced(signal), this.#classes.whenSynced(signal)]);
    const records = [...this.#recorded()];
    this.#inherited.takeOver(records, clock.now() + options.fencingMs);
    log.info({ objects: this.#objects.keys().length, recorded: records.length }, "working");
    this.#isWorking = true;
    this.#pool.start();
    this.#keeper.start();
  }

  /** Ends in reverse order; answers the keys whose passes did not heed the stop. */
  async stop(): Promise<readonly string[]> {
    const { drainMs } = this.#parts.options;
    const limits = { drainMs, abortMs: 1_000 };
    const [left] = await Promise.all([this.#pool.stop(limits), this.#keeper.stop(limits)]);
    this.#isWorking = false;
    this.#watching.abort(new Error("controller is stopping"));
    await this.#watches;
    return left;
  }

  /** Why the controller is not ready, by check; undefined values are well. */
  readiness(): Readonly<Record<string, string | undefined>> {
    return {
      [providerResource.plural]: watchProblem(this.#objects, providerResource.plural),
      [classResource.plural]: watchProblem(this.#classes, classResource.plural),
      working: this.#isWorking ? undefined : "not working yet",
    };
  }

  /** True while the API server does not know the kind. */
  isWaitingForCrd(plural: string): boolean {
    const watch = plural === classResource.plural ? this.#classes : this.#objects;
    return watch.state === "waiting-for-crd";
  }

  queueSnapshot(): QueueSnapshot {
    return this.#queue.snapshot();
  }

  #watch(type: ResourceType, onEvent: (event: WatchEvent<RawObject>) => void): Watch<RawObject> {
    const { connection, clock, random, log, metrics } = this.#parts;
    return new Watch({
      connection,
      path: collectionPath(type),
      parse: (raw) => raw,
      onEvent,
      clock,
      random,
      log,
      metrics: metrics.watch,
    });
  }

  #client(type: ResourceType): ResourceClient<RawObject> {
    const { connection, options } = this.#parts;
    const parse = (raw: RawObject): RawObject => raw;
    return new ResourceClient({ connection, type, parse, timeoutMs: options.apiTimeoutMs });
  }

  #createKeeper(): ClassKeeper {
    const { providers, clock, random, log } = this.#parts;
    return new ClassKeeper({
      classes: this.#classes,
      objects: this.#objects,
      client: this.#client(classResource),
      ownWrites: new OwnWrites(this.#classes),
      providers,
      clock,
      random,
      log,
    });
  }

  #reconciler(): Reconciler {
    const { providers, identity, clock, random, log, metrics, options, onEvent } = this.#parts;
    const objects = new ApiObjects({
      watch: this.#objects,
      classes: () => this.#classList(),
      protectClass: (name) => this.#keeper.protect(name),
      client: this.#client(providerResource),
      ownWrites: new OwnWrites(this.#objects),
      onEvent,
      onWrite: metrics.onWrite,
    });
    return new Reconciler({
      objects,
      providers,
      doubts: this.#doubts,
      deletions: new DeletionBudget(),
      inherited: this.#inherited,
      memories: this.#memories,
      identity,
      clock,
      random,
      log,
      options,
      certainUntilMs: () => clock.now() + options.fencingMs,
    });
  }

  #objectChanged(event: WatchEvent<RawObject>): void {
    const raw = event.kind === "deleted" ? event.before : event.object;
    const isInitial = event.kind === "added" && event.isInitial;
    this.#queue.add(event.key, { group: groupOf(raw), priority: priorityOf(raw, isInitial) });
    if (this.#isWorking) this.#keeper.useChanged();
    if (event.kind === "deleted") this.#doubts.prune(this.#parts.clock.now());
  }

  /** A class may serve any object: all are looked at, and what is settled costs nothing. */
  #classChanged(name: string): void {
    this.#parsedClasses = undefined;
    this.#parts.providers.keepOnly(this.#classList().map(({ adapter }) => adapter));
    if (this.#isWorking) this.#keeper.classChanged(name);
    for (const key of this.#objects.keys()) {
      const raw = this.#objects.get(key);
      if (raw !== undefined) this.#queue.add(key, { group: groupOf(raw), priority: "resync" });
    }
  }

  #classList(): readonly ProviderClass[] {
    this.#parsedClasses ??= this.#classes.list().map(parseProviderClass);
    return this.#parsedClasses;
  }

  *#recorded(): Generator<{ readonly key: string; readonly realm: string }> {
    for (const key of this.#objects.keys()) {
      const raw = this.#objects.get(key);
      if (raw === undefined) continue;
      for (const { realm } of parseDigitalHumanProvider(raw).record) yield { key, realm };
    }
  }
}

type WatchProgress = Pick<Watch<never>, "state" | "hasSynced" | "lastError">;

function watchProblem(watch: WatchProgress, plural: string): string | undefined {
  if (watch.state === "waiting-for-crd") {
    return `the API server does not know ${plural}.${apiGroup}: apply the CRDs; the controller waits`;
  }
  if (!watch.hasSynced) return `${watch.state}: ${watch.lastError?.message ?? "not listed yet"}`;
  return undefined;
}

/** Objects that wait for the same vendor share workers: class, account and host tell them apart. */
function groupOf(raw: RawObject): string {
  const spec = objectAt(raw, "spec");
  const status = objectAt(raw, "status");
  const className = stringAt(status, "className") ?? stringAt(spec, "className") ?? "";
  return [
    className,
    stringAt(status, "account") ?? "",
    hostOf(stringAt(spec, "endpoint") ?? ""),
  ].join("|");
}

function priorityOf(raw: RawObject, isInitial: boolean): Priority {
  if (stringAt(objectAt(raw, "metadata"), "deletionTimestamp") !== undefined) return "deletion";
  return isInitial ? "resync" : "change";
}

/** What the API server refuses is tried again, not before it asked to be. */
async function reconcileOnce(
  reconciler: Reconciler,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  try {
    return poolResult(await reconciler.reconcile(key, signal));
  } catch (error) {
    const hintMs = isApiError(error) ? error.retryAfterMs : undefined;
    if (hintMs === undefined) throw error;
    return { kind: "error", error, retryAfterMs: hintMs };
  }
}

function poolResult(result: Awaited<ReturnType<Reconciler["reconcile"]>>): ReconcileResult {
  if (result.kind !== "failed") return result;
  const error = new Error(result.message);
  return result.isTerminal
    ? { kind: "terminal", error, reprobeAfterMs: result.afterMs }
    : { kind: "error", error, retryAfterMs: result.afterMs };
}
