/** One controller process: the real reconciler over a lagging watch, a lease, and its own memory. */
import type { Clock } from "../../../services/process/clock.ts";
import type { ProviderClient } from "../../../services/contract/provider-client.ts";
import type { Log } from "../../../services/process/log.ts";
import { OwnWrites } from "../../kubernetes/own-writes.ts";
import { Providers } from "../../providers/providers.ts";
import type { ProviderClass } from "../../resource/provider-class.ts";
import { parseDigitalHumanProvider } from "../../resource/digital-human-provider.ts";
import { ApiObjects } from "../api-objects.ts";
import { DeletionBudget } from "../deletion-budget.ts";
import { DoubtLedger } from "../doubt.ts";
import { InheritedDoubt } from "../inherited-doubt.ts";
import { Memories } from "../memory.ts";
import type { ObjectEvent } from "../provider-objects.ts";
import { Reconciler } from "../reconciler.ts";
import type { ReconcilerParts } from "../reconciler-parts.ts";
import { objectKey } from "./api-server.ts";
import type { ApiServer, Version } from "./api-server.ts";
import type { Wire } from "./wire.ts";

/** After its last renewal a leader is certain for this long. */
export const certainMs = 4_000;

export interface LeaderOptions {
  readonly owner: string;
  readonly api: ApiServer;
  readonly wire: Wire;
  readonly clock: Clock;
  readonly random: () => number;
  readonly classes: () => readonly ProviderClass[];
  /** Calls of earlier leaders carry not_after up to this. */
  readonly predecessorsUntilMs: number;
  readonly mutant: LeaderMutant;
  readonly onEvent: (event: ObjectEvent) => void;
}

/** Rules taken out, so that the simulation can show that it would notice. */
export interface LeaderMutant {
  readonly inheritsNoDoubt?: boolean;
  readonly takesOverWithStaleCache?: boolean;
  readonly doubts?: () => DoubtLedger;
  readonly client?: (client: ProviderClient) => ProviderClient;
}

const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};

export class Leader {
  readonly #options: LeaderOptions;
  readonly #reconciler: Reconciler;
  #seenIndex: number;
  #renewedAtMs: number;
  #abort = new AbortController();
  #failures = 0;
  isRunning = false;
  /** An event has come that no pass has looked at yet. */
  isWanted = true;
  /** Epoch ms of the next pass without an event. */
  dueMs = 0;
  /** What the last pass threw; undefined: it ended well. */
  lastError: unknown;

  constructor(options: LeaderOptions) {
    this.#options = options;
    const last = options.api.history.length - 1;
    const isStale = options.mutant.takesOverWithStaleCache === true;
    this.#seenIndex = isStale ? Math.max(0, last - 2) : last;
    this.#renewedAtMs = options.clock.now();
    this.#reconciler = new Reconciler(this.#parts());
  }

  get owner(): string {
    return this.#options.owner;
  }

  get isCacheCurrent(): boolean {
    return this.#seenIndex === this.#options.api.history.length - 1;
  }

  /** Until when it certainly leads. */
  get certainUntilMs(): number {
    return this.#renewedAtMs + certainMs;
  }

  renew(): void {
    this.#renewedAtMs = this.#options.clock.now();
  }

  /** The watch brings one more event. */
  deliver(): void {
    this.#seenIndex += 1;
    this.isWanted = true;
  }

  /** The pass that runs is told to stop, as when it takes too long; an answer may just be there. */
  abortPass(cancelsCalls: boolean): void {
    this.#abort.abort(new Error("the pass takes too long"));
    if (!cancelsCalls) return;
    for (const call of this.#options.wire.calls) {
      if (call.caller === this.owner) this.#options.wire.lose(call, "CANCELLED");
    }
  }

  /** Begins a pass; it goes on as its turns come. */
  start(): void {
    this.isRunning = true;
    this.isWanted = false;
    this.#abort = new AbortController();
    void this.#run(this.#abort.signal);
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    try {
      const result = await this.#reconciler.reconcile(objectKey, signal);
      this.#failures = 0;
      this.lastError = undefined;
      this.dueMs = result.kind === "done" ? Infinity : clock.now() + result.afterMs;
    } catch (error) {
      this.lastError = error;
      this.#failures += 1;
      this.dueMs = clock.now() + Math.min(60_000, 1_000 * 2 ** this.#failures);
    }
    this.isRunning = false;
  }

  #parts(): ReconcilerParts {
    const { api, wire, clock, random, owner, classes, mutant } = this.#options;
    const seen = (): Version => api.history[this.#seenIndex] ?? api.current;
    const versionOf = (): string | undefined =>
      seen().object === undefined ? undefined : seen().resourceVersion;
    const objects = new ApiObjects({
      watch: { get: () => seen().object },
      classes,
      protectClass: async () => "protected",
      client: api.clientOf(owner),
      ownWrites: new OwnWrites({
        get resourceVersion() {
          return seen().resourceVersion;
        },
        epoch: 0,
        versionOf,
      }),
      onEvent: (_object, event) => this.#options.onEvent(event),
      onWrite: () => undefined,
    });
    const deletions = new DeletionBudget();
    const doubts = mutant.doubts?.() ?? new DoubtLedger();
    const inherited = new InheritedDoubt(doubts);
    const inheritance = seen().object;
    if (inheritance !== undefined && mutant.inheritsNoDoubt !== true) {
      const { key, record } = parseDigitalHumanProvider(inheritance);
      const records = record.map(({ realm }) => ({ key, realm }));
      inherited.takeOver(records, this.#options.predecessorsUntilMs);
    }
    return {
      objects,
      providers: new Providers({
        connect: ({ address }) => {
          const client = wire.clientOf(owner, address);
          return mutant.client?.(client) ?? client;
        },
        clock,
        infoDeadlineMs: 5_000,
        infoMaxAgeMs: Infinity,
      }),
      doubts,
      deletions,
      inherited,
      memories: new Memories(),
      identity: { fleet: "fleet", cluster: "cluster-1" },
      clock,
      random,
      log: silentLog,
      options: {
        resyncMs: 600_000,
        reprobeMs: 300_000,
        backOffMsMin: 1_000,
        backOffMsMax: 60_000,
        pollMs: 2_000,
        callDeadlineMs: 10_000,
      },
      certainUntilMs: () => this.certainUntilMs,
    };
  }
}
