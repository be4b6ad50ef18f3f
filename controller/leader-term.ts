/**
 * A leader's term: queue, workers and all that is remembered begin with it and end with it. A later
 * term, of this process or another, starts from the record alone.
 */
import type { Clock } from "../services/process/clock.ts";
import type { Log } from "../services/process/log.ts";
import { ClassKeeper } from "./classes/class-keeper.ts";
import type { News } from "./health/health-book.ts";
import { HealthKeeper } from "./health/health-keeper.ts";
import { orphanEvent, OrphanSweep } from "./inventory/orphan-sweep.ts";
import { isApiError } from "./kubernetes/api-error.ts";
import type { Connection } from "./kubernetes/connection.ts";
import type { Leadership } from "./kubernetes/leadership.ts";
import type { WatchEvent } from "./kubernetes/object-cache.ts";
import { OwnWrites } from "./kubernetes/own-writes.ts";
import type { RawObject } from "./kubernetes/raw-object.ts";
import { ResourceClient } from "./kubernetes/resource-client.ts";
import type { ResourceType } from "./kubernetes/resource-client.ts";
import type { Watch } from "./kubernetes/watch.ts";
import type { Providers } from "./providers/providers.ts";
import type { QueueMetrics, QueueSnapshot } from "./queue/queue-metrics.ts";
import type { Priority } from "./queue/ready-keys.ts";
import { WorkQueue } from "./queue/work-queue.ts";
import { WorkerPool } from "./queue/worker-pool.ts";
import type { ReconcileMetrics, ReconcileResult, StopLimits } from "./queue/worker-pool.ts";
import { ApiObjects } from "./reconcile/api-objects.ts";
import { DeletionBudget } from "./reconcile/deletion-budget.ts";
import { DoubtLedger } from "./reconcile/doubt.ts";
import { looksEdited } from "./reconcile/health-overlay.ts";
import { InheritedDoubt } from "./reconcile/inherited-doubt.ts";
import { Memories } from "./reconcile/memory.ts";
import type { ObservedInstance } from "./reconcile/observed-instance.ts";
import type { ObjectEvent } from "./reconcile/provider-objects.ts";
import type { FleetIdentity } from "./reconcile/provider-requests.ts";
import { Reconciler } from "./reconcile/reconciler.ts";
import type { ReconcilerOptions } from "./reconcile/reconciler-parts.ts";
import { crossesBound } from "./reconcile/usage.ts";
import { parseDigitalHumanProvider } from "./resource/digital-human-provider.ts";
import type { DigitalHumanProvider } from "./resource/digital-human-provider.ts";
import { objectAt, stringAt } from "./resource/json-door.ts";
import { classResource, providerResource } from "./resource-kinds.ts";
import type { ProviderClass } from "./resource/provider-class.ts";
import { WorkGroups } from "./work-groups.ts";

export interface LeaderTermOptions extends ReconcilerOptions {
  readonly workersMax: number;
  /** How long a call to the API server may take. */
  readonly apiTimeoutMs: number;
  /** How often instances are looked for that belong to no object. */
  readonly orphanSweepMs: number;
}

export interface LeaderTermParts {
  readonly leadership: Pick<Leadership, "signal" | "certainUntilMs">;
  /** Sends nothing once the leadership is lost. */
  readonly connection: Pick<Connection, "request">;
  readonly objects: Watch<RawObject>;
  readonly classes: Watch<RawObject>;
  readonly classList: () => readonly ProviderClass[];
  readonly providers: Providers;
  readonly identity: FleetIdentity;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: {
    readonly queue: QueueMetrics;
    readonly reconcile: ReconcileMetrics;
    /** A write to our objects was sent. */
    readonly onWrite: (what: "object" | "status") => void;
    readonly onOrphans: (className: string, count: number) => void;
  };
  readonly onEvent: (object: DigitalHumanProvider, event: ObjectEvent) => void;
  readonly onClassEvent: (found: ProviderClass, event: ObjectEvent) => void;
  readonly options: LeaderTermOptions;
}

/** A pass makes a handful of calls, each with its own deadline; this ends what still hangs. */
const passTimeoutMs = 120_000;
/** A pass that does not heed that end, or keys that nobody takes, for so long: the loop hangs. */
const hungMs = 30_000;

export class LeaderTerm {
  readonly #parts: LeaderTermParts;
  readonly #groups: WorkGroups;
  readonly #queue: WorkQueue;
  readonly #pool: WorkerPool;
  readonly #keeper: ClassKeeper;
  readonly #health: HealthKeeper;
  readonly #orphans: OrphanSweep;
  readonly #memories = new Memories();
  readonly #doubts = new DoubtLedger();
  #limited: readonly string[] = [];
  readonly #inherited = new InheritedDoubt(this.#doubts);
  #lastRunMs: number;

  constructor(parts: LeaderTermParts) {
    this.#parts = parts;
    const { clock, random, log, metrics, options, leadership } = parts;
    this.#lastRunMs = clock.monotonicMs();
    this.#groups = new WorkGroups(parts.classList);
    this.#queue = new WorkQueue({
      clock,
      random,
      workersMax: options.workersMax,
      backOff: { minMs: options.backOffMsMin, maxMs: options.backOffMsMax },
      eventFloorMs: options.backOffMsMin,
      metrics: metrics.queue,
    });
    this.#health = this.#createHealthKeeper();
    this.#keeper = this.#createKeeper();
    this.#orphans = this.#createOrphanSweep();
    const reconciler = this.#reconciler();
    this.#pool = new WorkerPool({
      queue: this.#queue,
      reconcile: (key, signal) => {
        this.#lastRunMs = clock.monotonicMs();
        return reconcileOnce(reconciler, key, signal);
      },
      clock,
      log,
      runTimeoutMs: passTimeoutMs,
      endSignal: leadership.signal,
      metrics: metrics.reconcile,
    });
  }

  /**
   * Takes over what is recorded and begins to work. The watches' caches have to be current; calls of
   * a predecessor carry not_after up to `predecessorUntilMs`.
   */
  begin(predecessorUntilMs: number): void {
    const { log, objects } = this.#parts;
    const records = [...this.#recorded()];
    this.#inherited.takeOver(records, predecessorUntilMs);
    const keys = objects.keys();
    log.info({ objects: keys.length, recorded: records.length }, "working");
    this.#limitGroups();
    this.#pool.start();
    this.#keeper.start();
    for (const key of keys) this.#followHealth(key, objects.get(key));
    this.#health.start();
    this.#orphans.start();
    for (const key of keys) this.#lookInTurn(key);
  }

  /** Ends in reverse order; answers the keys whose passes did not heed the stop. */
  async stop(limits: StopLimits): Promise<readonly string[]> {
    const [left, leftClasses] = await Promise.all([
      this.#pool.stop(limits),
      this.#keeper.stop(limits),
      this.#health.stop(),
      this.#orphans.stop(),
    ]);
    return [...left, ...leftClasses];
  }

  objectChanged(event: WatchEvent<RawObject>): void {
    const raw = event.kind === "deleted" ? event.before : event.object;
    const isInitial = event.kind === "added" && event.isInitial;
    const priority = priorityOf(raw, isInitial ? "resync" : "change");
    this.#queue.add(event.key, { groups: this.#groups.of(raw), priority });
    this.#keeper.useChanged();
    this.#followHealth(event.key, event.kind === "deleted" ? undefined : raw);
    if (event.kind === "deleted") this.#doubts.prune(this.#parts.clock.now());
  }

  /** A class may serve any object: all are looked at, and what is settled costs nothing. */
  classChanged(name: string, { concernsObjects }: { readonly concernsObjects: boolean }): void {
    this.#keeper.classChanged(name);
    if (!concernsObjects) return;
    this.#limitGroups();
    const { objects } = this.#parts;
    for (const key of objects.keys()) this.#followHealth(key, objects.get(key));
    for (const key of objects.keys()) this.#lookInTurn(key);
  }

  queueSnapshot(): QueueSnapshot {
    return this.#queue.snapshot();
  }

  /** Why the work does not get on; undefined while it does. */
  obstacle(): string | undefined {
    const { hasWork, runningCount, longestRunningMs } = this.#queue.snapshot();
    if (longestRunningMs > passTimeoutMs + hungMs) return "a pass over an object hangs";
    const idleMs = this.#parts.clock.monotonicMs() - this.#lastRunMs;
    if (hasWork && runningCount === 0 && idleMs > hungMs) return "nobody takes keys off the queue";
    return this.#health.obstacle();
  }

  #followHealth(key: string, raw: RawObject | undefined): void {
    this.#health.objectChanged(key, raw === undefined ? undefined : parseDigitalHumanProvider(raw));
  }

  /** Conditions are made anew; the vendor is asked only for what the stream cannot say. */
  #healthNews(key: string, news: News, seen: ObservedInstance | undefined): void {
    if (news === "usage" && !this.#crossesBound(key, seen)) return;
    const outcome = this.#memories.get(key)?.outcome;
    const isEdited =
      seen !== undefined &&
      outcome?.kind === "ensured" &&
      outcome.instance.providerID === seen.providerID &&
      looksEdited(outcome.instance, seen);
    if (news === "look" || isEdited) this.#memories.lookAgain(key);
    this.#look(key, "change");
  }

  #crossesBound(key: string, seen: ObservedInstance | undefined): boolean {
    const raw = this.#parts.objects.get(key);
    if (raw === undefined || seen === undefined) return false;
    const object = parseDigitalHumanProvider(raw);
    const { className } = object.status;
    const found = this.#parts.classList().find(({ name }) => name === className);
    return crossesBound(seen.usage, object, found?.scaleOutAtPercent);
  }

  /** What classes say of concurrent calls: a pass makes one call at a time. */
  #limitGroups(): void {
    const limits = this.#groups.limits();
    for (const group of this.#limited) {
      if (!limits.has(group)) this.#queue.limitGroup(group, undefined);
    }
    for (const [group, runningMax] of limits) this.#queue.limitGroup(group, runningMax);
    this.#limited = [...limits.keys()];
  }

  #look(key: string, priority: Priority): void {
    const raw = this.#parts.objects.get(key);
    if (raw === undefined) return;
    this.#queue.add(key, {
      groups: this.#groups.of(raw),
      priority: priorityOf(raw, priority),
    });
  }

  /** Nothing happened to the object itself: it waits with its group, should that be held. */
  #lookInTurn(key: string): void {
    const raw = this.#parts.objects.get(key);
    if (raw === undefined) return;
    const groups = this.#groups.of(raw);
    this.#queue.addAfter(key, 0, { groups, priority: priorityOf(raw, "resync") });
  }

  #client(type: ResourceType): ResourceClient<RawObject> {
    const { connection, options } = this.#parts;
    const parse = (raw: RawObject): RawObject => raw;
    return new ResourceClient({ connection, type, parse, timeoutMs: options.apiTimeoutMs });
  }

  #createKeeper(): ClassKeeper {
    const { classes, objects, providers, clock, random, log, leadership } = this.#parts;
    return new ClassKeeper({
      classes,
      objects,
      client: this.#client(classResource),
      ownWrites: new OwnWrites(classes),
      providers,
      placesOf: (parsed) => this.#health.placesOf(parsed),
      clock,
      random,
      log,
      endSignal: leadership.signal,
    });
  }

  #createHealthKeeper(): HealthKeeper {
    const { classList, providers, identity, clock, random, log } = this.#parts;
    return new HealthKeeper({
      classes: classList,
      providers,
      ownerCluster: identity.cluster,
      clock,
      random,
      log,
      onNews: (key, news, seen) => this.#healthNews(key, news, seen),
      onPlaces: () => this.#keeper.healthChanged(),
    });
  }

  #createOrphanSweep(): OrphanSweep {
    const { objects, classList, providers, identity, clock, log, metrics, options } = this.#parts;
    return new OrphanSweep({
      objects: () => objects.list().map(parseDigitalHumanProvider),
      classes: classList,
      providers,
      identity,
      clock,
      log,
      intervalMs: options.orphanSweepMs,
      onOrphans: (found, orphans) => {
        metrics.onOrphans(found.name, orphans.length);
        if (orphans.length > 0) this.#parts.onClassEvent(found, orphanEvent(orphans));
      },
    });
  }

  #reconciler(): Reconciler {
    const { providers, identity, clock, random, log, options } = this.#parts;
    const { objects, classList, onEvent, metrics, leadership } = this.#parts;
    return new Reconciler({
      objects: new ApiObjects({
        watch: objects,
        classes: classList,
        protectClass: (name) => this.#keeper.protect(name),
        client: this.#client(providerResource),
        ownWrites: new OwnWrites(objects),
        onEvent,
        onWrite: metrics.onWrite,
      }),
      providers,
      health: this.#health,
      doubts: this.#doubts,
      deletions: new DeletionBudget(),
      inherited: this.#inherited,
      memories: this.#memories,
      accounts: {
        refuses: (place, forMs) => this.#queue.holdGroup(this.#groups.account(place), forMs),
        serves: (place) => this.#queue.liftGroupHold(this.#groups.account(place)),
      },
      identity,
      clock,
      random,
      log,
      options,
      certainUntilMs: () => leadership.certainUntilMs(),
    });
  }

  *#recorded(): Generator<{ readonly key: string; readonly realm: string }> {
    const { objects } = this.#parts;
    for (const key of objects.keys()) {
      const raw = objects.get(key);
      if (raw === undefined) continue;
      for (const { realm } of parseDigitalHumanProvider(raw).record) yield { key, realm };
    }
  }
}

function priorityOf(raw: RawObject, otherwise: Priority): Priority {
  const isDeleting = stringAt(objectAt(raw, "metadata"), "deletionTimestamp") !== undefined;
  return isDeleting ? "deletion" : otherwise;
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
  const { message: error } = result;
  return result.isTerminal
    ? { kind: "terminal", error, reprobeAfterMs: result.afterMs }
    : { kind: "error", error, retryAfterMs: result.afterMs };
}
