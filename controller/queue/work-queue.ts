import { assertNever } from "../../services/process/assert-never.ts";
import type { Clock } from "../../services/process/clock.ts";
import { backOffMs } from "./back-off.ts";
import type { BackOff } from "./back-off.ts";
import { GroupHolds } from "./group-holds.ts";
import { Holds } from "./holds.ts";
import { newQueueEntry } from "./queue-entry.ts";
import type { QueueEntry } from "./queue-entry.ts";
import type { QueueMetrics, QueueSnapshot } from "./queue-metrics.ts";
import { priorities, ReadyKeys, strongerPriority } from "./ready-keys.ts";
import type { Priority } from "./ready-keys.ts";
import { Shares } from "./shares.ts";

export interface AddOptions {
  /**
   * Keys of one group share workers; paths as of `groupPath`. A key with several counts for each and
   * waits for each.
   */
  readonly groups?: readonly string[];
  /** "change" where absent. */
  readonly priority?: Priority;
}

/** A key taken to be worked on; hand it back with `finish`. */
export interface WorkItem {
  readonly key: string;
  readonly groups: readonly string[];
  readonly priority: Priority;
  /** Failures in a row before this run. */
  readonly failures: number;
}

/** What follows a run. */
export type RunOutcome =
  | { readonly kind: "done" }
  | { readonly kind: "again"; readonly afterMs: number }
  /** `delayMsMin`: a hint that makes the back-off longer, never shorter. */
  | { readonly kind: "failed"; readonly delayMsMin?: number };

export interface WorkQueueOptions {
  readonly clock: Clock;
  /** In [0, 1), as Math.random. */
  readonly random: () => number;
  /** Runs at once; what a group may have of them depends on how many are idle. */
  readonly workersMax: number;
  readonly backOff: BackOff;
  /**
   * An event ends a key's back-off early, but not before this long after the failed run: a writer
   * who changes an object without pause would otherwise switch the back-off off.
   */
  readonly eventFloorMs: number;
  readonly metrics?: QueueMetrics;
}

/**
 * Keys to work on. One run a key at a time; what is added during a run causes exactly one more.
 * The earliest of several wishes wins, but a failed key waits for its back-off. Bounded by the
 * number of distinct keys, which is the number of objects.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #entries = new Map<string, QueueEntry>();
  readonly #ready = new ReadyKeys();
  readonly #running = new Map<string, QueueEntry>();
  readonly #shares: Shares;
  readonly #keyHolds: Holds;
  readonly #groupHolds: GroupHolds;
  #onReady: () => void = () => undefined;
  #isClosed = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#keyHolds = new Holds(options.clock);
    this.#groupHolds = new GroupHolds(options.clock);
    this.#shares = new Shares(options.workersMax);
  }

  /** Something happened to the key: run it as soon as its turn comes. */
  add(key: string, options: AddOptions = {}): void {
    if (this.#isClosed) return;
    this.#options.metrics?.onAdd();
    const entry = this.#entryFor(key, options);
    entry.wantedAtMs = this.#nowMs;
    entry.hasEvent = true;
    this.#settle(entry);
  }

  /** Run the key after a delay, unless it runs earlier for another reason or is backing off. */
  addAfter(key: string, delayMs: number, options: AddOptions = {}): void {
    if (this.#isClosed) return;
    const entry = this.#entryFor(key, options);
    if (entry.phase === "waiting" && entry.failures > 0) return;
    entry.wantedAtMs = Math.min(entry.wantedAtMs, this.#nowMs + Math.max(delayMs, 0));
    this.#settle(entry);
  }

  /** The key does not run for `delayMs`, whatever happens to it. */
  holdKey(key: string, delayMs: number): void {
    this.#keyHolds.hold(key, delayMs);
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#settle(entry);
  }

  liftKeyHold(key: string): void {
    this.#keyHolds.lift(key);
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#settle(entry);
  }

  /**
   * What no event caused does not run for `delayMs` in the group, and then one key at a time until
   * the hold is lifted. Runs that have begun go on. What an event caused runs: it has something to
   * tell, and its reconcile knows of the hold.
   */
  holdGroup(group: string, delayMs: number): void {
    if (this.#isClosed) return;
    this.#groupHolds.hold(group, delayMs, () => this.#onReady());
  }

  liftGroupHold(group: string): void {
    this.#groupHolds.lift(group);
    this.#onReady();
  }

  /** At most `runningMax` keys of the group run at once; undefined: as many as its share is. */
  limitGroup(group: string, runningMax: number | undefined): void {
    this.#shares.limit(group, runningMax);
    this.#onReady();
  }

  /** Called whenever `take` may answer a key again. One listener. */
  setReadyListener(onReady: () => void): void {
    this.#onReady = onReady;
  }

  /** The next key to work on; undefined where none may run now. */
  take(): WorkItem | undefined {
    if (this.#isClosed) return undefined;
    const ready = this.#ready.take((turn) => this.#mayRun(turn));
    const entry = ready && this.#entries.get(ready.key);
    if (entry === undefined) return undefined;
    const { key, groups, priority, failures } = entry;
    const { metrics } = this.#options;
    metrics?.onQueueDuration(this.#nowMs - (entry.readyAtMs ?? this.#nowMs));
    metrics?.onDepth(priority, this.#ready.sizeOf(priority));
    entry.phase = "running";
    entry.startedAtMs = this.#nowMs;
    this.#shares.begin(groups);
    const endProbe = entry.hasEvent ? undefined : this.#groupHolds.begin(groups);
    entry.endRun = () => {
      this.#shares.end(groups);
      endProbe?.();
    };
    entry.readyAtMs = undefined;
    // From here on these collect what is wished for after this run.
    entry.wantedAtMs = never;
    entry.hasEvent = false;
    entry.priority = "resync";
    this.#running.set(key, entry);
    return { key, groups, priority, failures };
  }

  /** Ends a run. Events since it began, or the outcome, may make the key run again. */
  finish(item: WorkItem, outcome: RunOutcome): void {
    const entry = this.#running.get(item.key);
    if (entry === undefined) throw new Error(`key "${item.key}" is not running`);
    this.#running.delete(item.key);
    entry.endRun();
    this.#options.metrics?.onWorkDuration(this.#nowMs - entry.startedAtMs);
    entry.phase = "idle";
    switch (outcome.kind) {
      case "done":
        entry.failures = 0;
        break;
      case "again":
        entry.failures = 0;
        entry.wantedAtMs = Math.min(entry.wantedAtMs, this.#nowMs + Math.max(outcome.afterMs, 0));
        entry.priority = strongerPriority(entry.priority, item.priority);
        break;
      case "failed":
        this.#backOff(entry, outcome.delayMsMin ?? 0);
        entry.priority = strongerPriority(entry.priority, item.priority);
        break;
      default:
        assertNever(outcome);
    }
    if (this.#isClosed || entry.wantedAtMs === never) {
      this.#entries.delete(entry.key);
    } else {
      this.#settle(entry);
    }
    this.#onReady();
  }

  /** Forgets a key that waits or is ready; one that runs ends as it ends, and not again. */
  forget(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#keyHolds.lift(key);
    if (entry.phase === "running") {
      entry.wantedAtMs = never;
      entry.hasEvent = false;
      return;
    }
    this.#leavePhase(entry);
    this.#entries.delete(key);
  }

  /** Nothing is taken or added from now on; runs that have begun can still finish. */
  close(): void {
    this.#isClosed = true;
    this.#groupHolds.close();
    for (const entry of this.#entries.values()) {
      if (entry.phase === "running") continue;
      this.#leavePhase(entry);
      this.#entries.delete(entry.key);
    }
  }

  snapshot(): QueueSnapshot {
    const runMs = [...this.#running.values()].map(({ startedAtMs }) => this.#nowMs - startedAtMs);
    const depth = priorities.reduce((sum, priority) => sum + this.#ready.sizeOf(priority), 0);
    return {
      depth,
      hasWork: !this.#isClosed && this.#ready.hasFor((turn) => this.#mayRun(turn)),
      waitingCount: this.#entries.size - depth - this.#running.size,
      runningCount: this.#running.size,
      unfinishedWorkMs: runMs.reduce((sum, ms) => sum + ms, 0),
      longestRunningMs: Math.max(0, ...runMs),
    };
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  #entryFor(key: string, { groups, priority = "change" }: AddOptions): QueueEntry {
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = newQueueEntry(key, groups ?? [""], priority);
      this.#entries.set(key, entry);
      return entry;
    }
    // Its place in the ready keys depends on both.
    if (entry.phase === "ready") this.#leavePhase(entry);
    entry.groups = groups ?? entry.groups;
    entry.priority = strongerPriority(entry.priority, priority);
    return entry;
  }

  /** Moves an entry to where its times say it belongs. */
  #settle(entry: QueueEntry): void {
    if (entry.phase === "running") return;
    this.#leavePhase(entry);
    const atMs = Math.max(entry.wantedAtMs, entry.notBeforeMs, this.#keyHolds.untilMs(entry.key));
    if (atMs > this.#nowMs) {
      entry.phase = "waiting";
      const fire = (): void => this.#settle(entry);
      entry.timer = this.#options.clock.setTimer(atMs - this.#nowMs, fire);
      return;
    }
    entry.phase = "ready";
    if (entry.readyAtMs === undefined) entry.readyAtMs = this.#nowMs;
    entry.turn = turnOf(entry);
    this.#ready.add(entry);
    this.#options.metrics?.onDepth(entry.priority, this.#ready.sizeOf(entry.priority));
    this.#onReady();
  }

  #leavePhase(entry: QueueEntry): void {
    entry.timer?.cancel();
    entry.timer = undefined;
    if (entry.phase === "ready") {
      this.#ready.remove(entry);
      this.#options.metrics?.onDepth(entry.priority, this.#ready.sizeOf(entry.priority));
    }
    entry.phase = "idle";
  }

  /** The back-off replaces whatever delay was wished for; only an event shortens it. */
  #backOff(entry: QueueEntry, delayMsMin: number): void {
    const { backOff, random, eventFloorMs, metrics } = this.#options;
    entry.failures += 1;
    const delayMs = Math.max(backOffMs(backOff, entry.failures, random), delayMsMin);
    entry.notBeforeMs = this.#nowMs + Math.min(delayMs, eventFloorMs);
    entry.wantedAtMs = entry.hasEvent ? this.#nowMs : this.#nowMs + delayMs;
    metrics?.onRetry();
  }

  #mayRun(turn: string): boolean {
    const groups = turn.split(turnSeparator);
    const isWaiting = groups.at(-1) === nobodysEvent;
    if (isWaiting) groups.pop();
    return this.#shares.hasRoom(groups) && (!isWaiting || this.#groupHolds.mayRun(groups));
  }
}

/** Keys that may run under the same circumstances take turns with others as one. */
function turnOf({ groups, hasEvent }: QueueEntry): string {
  return [...groups, ...(hasEvent ? [] : [nobodysEvent])].join(turnSeparator);
}

/** In no group's name. */
const turnSeparator = "\n";
const nobodysEvent = "\t";
const never = Number.POSITIVE_INFINITY;
