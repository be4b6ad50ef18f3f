/**
 * The controller: two watches, kept warm in every replica, and a leader's term in at most one. It
 * holds no truth of its own; what it remembers can be lost.
 */
import type { Clock } from "../services/process/clock.ts";
import type { Log } from "../services/process/log.ts";
import type { Connection } from "./kubernetes/connection.ts";
import { Election } from "./kubernetes/election.ts";
import { fencedConnection } from "./kubernetes/fenced-connection.ts";
import { electionTimes } from "./kubernetes/leadership.ts";
import type { Leadership } from "./kubernetes/leadership.ts";
import { ApiLease } from "./kubernetes/lease.ts";
import type { WatchEvent } from "./kubernetes/object-cache.ts";
import type { RawObject } from "./kubernetes/raw-object.ts";
import { collectionPath } from "./kubernetes/resource-client.ts";
import type { ResourceType } from "./kubernetes/resource-client.ts";
import { Watch } from "./kubernetes/watch.ts";
import type { WatchMetrics } from "./kubernetes/watch-options.ts";
import { LeaderTerm } from "./leader-term.ts";
import type { LeaderTermOptions, LeaderTermParts } from "./leader-term.ts";
import type { Providers } from "./providers/providers.ts";
import { backOffMs } from "./queue/back-off.ts";
import type { QueueSnapshot } from "./queue/queue-metrics.ts";
import { highestUse } from "./quota-use.ts";
import type { ClassQuotaUse } from "./quota-use.ts";
import type { ObjectEvent } from "./reconcile/provider-objects.ts";
import type { FleetIdentity } from "./reconcile/provider-requests.ts";
import type { DigitalHumanProvider } from "./resource/digital-human-provider.ts";
import { isSameToObjects, parseProviderClass } from "./resource/provider-class.ts";
import type { ProviderClass } from "./resource/provider-class.ts";
import { classResource, providerResource } from "./resource-kinds.ts";
import { watchObstacle, watchProblem } from "./watch-health.ts";
import { WriteHealth } from "./write-health.ts";

export interface ControllerOptions extends LeaderTermOptions {
  /** How long running passes may go on after a stop. */
  readonly drainMs: number;
  readonly lease: {
    readonly namespace: string;
    readonly name: string;
    /** How long others wait after the last renewal. */
    readonly durationMs: number;
    /** Of this process alone. */
    readonly identity: string;
  };
}

export type ControllerMetrics = LeaderTermParts["metrics"] & {
  readonly watch: WatchMetrics;
  readonly onLeadership: (isLeader: boolean) => void;
};

export interface ControllerParts {
  readonly connection: Connection;
  readonly providers: Providers;
  readonly identity: FleetIdentity;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: ControllerMetrics;
  readonly onEvent: (object: DigitalHumanProvider, event: ObjectEvent) => void;
  readonly onClassEvent: (found: ProviderClass, event: ObjectEvent) => void;
  /** The process cannot go on. */
  readonly onFailure: (error: Error) => void;
  readonly options: ControllerOptions;
}

/** How long passes may take to heed a stop, */
const stopAbortMs = 1_000;
/** and a loss, after which this process goes on: some wait for an adapter's word about itself, 3 s. */
const lossAbortMs = 5_000;
const refreshBackOff = { minMs: 200, maxMs: 2_000 };

export class Controller {
  readonly #parts: ControllerParts;
  readonly #objects: Watch<RawObject>;
  readonly #classes: Watch<RawObject>;
  readonly #writes: WriteHealth;
  readonly #election: Election;
  readonly #watching = new AbortController();
  readonly #stopping = new AbortController();
  #watches: Promise<unknown> = Promise.resolve();
  #serving: Promise<void> = Promise.resolve();
  /** Undefined in a standby. */
  #term: LeaderTerm | undefined;
  #left: readonly string[] = [];
  /** The classes as parsed; undefined after a change. */
  #parsedClasses: readonly ProviderClass[] | undefined;

  constructor(parts: ControllerParts) {
    this.#parts = parts;
    this.#objects = this.#watch(providerResource, (event) => this.#term?.objectChanged(event));
    this.#classes = this.#watch(classResource, (event) => this.#classChanged(event));
    this.#writes = new WriteHealth(parts.clock);
    this.#election = this.#createElection();
  }

  /** Resolves once both kinds are listed and it stands by or leads; rejects when the signal aborts. */
  async start(signal: AbortSignal): Promise<void> {
    this.#watches = Promise.all([
      this.#objects.run(this.#watching.signal),
      this.#classes.run(this.#watching.signal),
    ]);
    await Promise.all([this.#objects.whenSynced(signal), this.#classes.whenSynced(signal)]);
    this.#serving = this.#serve().catch((error: unknown) => {
      this.#parts.onFailure(error instanceof Error ? error : new Error(String(error)));
    });
  }

  /**
   * Ends in reverse order: a leader's passes drain while it still leads, then it releases the Lease.
   * Answers the keys whose passes did not heed the stop; their Lease is left to expire.
   */
  async stop(): Promise<readonly string[]> {
    this.#stopping.abort(new Error("controller is stopping"));
    await this.#serving;
    this.#watching.abort(new Error("controller is stopping"));
    await this.#watches;
    return this.#left;
  }

  /** Why the controller is not ready, by check; undefined values are well. A standby is ready. */
  readiness(): Readonly<Record<string, string | undefined>> {
    return {
      [providerResource.plural]: watchProblem(this.#objects, providerResource.plural),
      [classResource.plural]: watchProblem(this.#classes, classResource.plural),
      election: this.#election.problem,
    };
  }

  /** True while the API server does not know the kind. */
  isWaitingForCrd(plural: string): boolean {
    const watch = plural === classResource.plural ? this.#classes : this.#objects;
    return watch.state === "waiting-for-crd";
  }

  queueSnapshot(): QueueSnapshot {
    return this.#term?.queueSnapshot() ?? emptyQueue;
  }

  /** Of what the leader keeps true; empty in a standby. */
  quotaUse(): readonly ClassQuotaUse[] {
    return this.#term === undefined ? [] : highestUse(this.#objects.list());
  }

  /** Stands by, leads, and stands by again, until the stop. */
  async #serve(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      let leadership: Leadership;
      try {
        leadership = await this.#election.acquire(signal);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
      await this.#lead(leadership);
      this.#writes.termEnded();
    }
  }

  /**
   * One term, to its loss or the stop. A lost one leads back to standing by, with nothing of it left:
   * each term has a memory of its own, and none begins before all passes of the last have ended. A
   * process in which one does not end cannot promise that.
   * @throws Error when passes do not heed the loss
   */
  async #lead(leadership: Leadership): Promise<void> {
    const { metrics, options, providers } = this.#parts;
    metrics.onLeadership(true);
    leadership.signal.addEventListener("abort", () => metrics.onLeadership(false), { once: true });
    const term = this.#createTerm(leadership);
    const ending = AbortSignal.any([leadership.signal, this.#stopping.signal]);
    if (await this.#refresh(ending)) {
      this.#term = term;
      // In the same turn as the end of the refresh, so that no event is missed between them.
      term.begin(this.#parts.clock.now() + options.lease.durationMs);
      await untilAborted(ending);
    }
    const left = await term.stop(
      leadership.signal.aborted
        ? { drainMs: 0, abortMs: lossAbortMs }
        : { drainMs: options.drainMs, abortMs: stopAbortMs },
    );
    this.#term = undefined;
    providers.close();
    this.#left = left;
    if (left.length === 0) return leadership.release();
    if (this.#stopping.signal.aborted) return;
    throw new Error(`passes did not heed the loss of leadership: ${left.join(", ")}`);
  }

  /** Reads both kinds anew; false: cut off. A standby's watches may be behind what was recorded. */
  async #refresh(signal: AbortSignal): Promise<boolean> {
    const { clock, random, log } = this.#parts;
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await Promise.all([this.#objects.refresh(signal), this.#classes.refresh(signal)]);
        return !signal.aborted;
      } catch (error) {
        if (signal.aborted) return false;
        const delayMs = backOffMs(refreshBackOff, failures, random);
        log.warn({ error, delayMs }, "cannot take over yet, trying again");
        await clock.sleep(delayMs, signal).catch(() => undefined);
      }
    }
    return false;
  }

  #createElection(): Election {
    const { connection, clock, random, log, options } = this.#parts;
    const { namespace, name, durationMs, identity } = options.lease;
    const times = electionTimes(durationMs);
    return new Election({
      leases: new ApiLease({ connection, namespace, name, timeoutMs: times.renewMs }),
      identity,
      times,
      clock,
      random,
      log,
      obstacle: () => this.#obstacle(),
    });
  }

  /** The Lease says that what stands in status is being kept true: it is renewed only while it is. */
  #obstacle(): string | undefined {
    const nowMs = this.#parts.clock.monotonicMs();
    return (
      watchObstacle(this.#objects, providerResource.plural, nowMs) ??
      watchObstacle(this.#classes, classResource.plural, nowMs) ??
      this.#writes.obstacle() ??
      this.#term?.obstacle()
    );
  }

  #createTerm(leadership: Leadership): LeaderTerm {
    const { connection } = this.#parts;
    return new LeaderTerm({
      ...this.#parts,
      leadership,
      connection: this.#writes.watch(fencedConnection(connection, leadership)),
      objects: this.#objects,
      classes: this.#classes,
      classList: () => this.#classList(),
    });
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

  #classChanged(event: WatchEvent<RawObject>): void {
    this.#parsedClasses = undefined;
    this.#parts.providers.keepOnly(this.#classList().map(({ adapter }) => adapter));
    this.#term?.classChanged(event.key, { concernsObjects: concernsObjects(event) });
  }

  #classList(): readonly ProviderClass[] {
    this.#parsedClasses ??= this.#classes.list().map(parseProviderClass);
    return this.#parsedClasses;
  }
}

/** Its status tells how many use it and changes with each of them: objects do not depend on that. */
function concernsObjects(event: WatchEvent<RawObject>): boolean {
  if (event.kind !== "modified") return true;
  return !isSameToObjects(parseProviderClass(event.before), parseProviderClass(event.object));
}

const emptyQueue: QueueSnapshot = {
  depth: 0,
  hasWork: false,
  waitingCount: 0,
  runningCount: 0,
  unfinishedWorkMs: 0,
  longestRunningMs: 0,
};

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
