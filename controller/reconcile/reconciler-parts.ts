/** What the reconciler is made of: passed in once, so that tests choose time, chance and wire. */
import type { Clock } from "../../services/process/clock.ts";
import type { Log } from "../../services/process/log.ts";
import type { Providers } from "../providers/providers.ts";
import type { Place } from "../resource/placement.ts";
import type { DeletionBudget } from "./deletion-budget.ts";
import type { DoubtLedger } from "./doubt.ts";
import type { HealthSource } from "./health-view.ts";
import type { InheritedDoubt } from "./inherited-doubt.ts";
import type { Memories } from "./memory.ts";
import type { FleetIdentity } from "./provider-requests.ts";
import type { ProviderObjects } from "./provider-objects.ts";
import type { ScheduleOptions } from "./schedule.ts";

export interface ReconcilerOptions extends ScheduleOptions {
  /** Deadline of one call to an adapter. */
  readonly callDeadlineMs: number;
}

/** Told how the vendor treats the account of a place. */
export interface AccountHolds {
  /** It refuses calls for so long. */
  refuses(place: Place, forMs: number): void;
  serves(place: Place): void;
}

export interface ReconcilerParts {
  readonly objects: ProviderObjects;
  readonly providers: Pick<Providers, "connected">;
  readonly doubts: DoubtLedger;
  readonly deletions: DeletionBudget;
  readonly inherited: InheritedDoubt;
  readonly memories: Memories;
  readonly identity: FleetIdentity;
  readonly clock: Clock;
  /** Absent: nobody watches health. */
  readonly health?: HealthSource;
  /** Absent: each object waits for itself alone. */
  readonly accounts?: AccountHolds;
  /** 0 to 1; spreads what would else come at once. */
  readonly random: () => number;
  readonly log: Log;
  readonly options: ReconcilerOptions;
  /** Until when this process certainly leads, epoch ms: not_after of its mutations. */
  readonly certainUntilMs: () => number;
}

/**
 * Epoch ms until which absence in this realm proves nothing; 0: no doubt. A placement that was
 * recorded before this process began is in doubt without end until its adapter has said how long
 * its calls may linger.
 */
export function doubtUntilMs(parts: ReconcilerParts, key: string, realm: string): number {
  if (parts.inherited.has(key, realm)) return Number.POSITIVE_INFINITY;
  return parts.doubts.untilMs(key, realm, parts.clock.now());
}

/**
 * not_after of a mutation that is sent now.
 * @throws LeadershipUncertainError when this process may lead no more, so that nothing is sent
 */
export function fencedUntilMs(parts: Pick<ReconcilerParts, "certainUntilMs" | "clock">): number {
  const untilMs = parts.certainUntilMs();
  if (untilMs <= parts.clock.now()) throw new LeadershipUncertainError();
  return untilMs;
}

/** Another process may lead: the pass ends, and the next one looks again. */
export class LeadershipUncertainError extends Error {
  override readonly name = "LeadershipUncertainError";

  constructor() {
    super("this process may lead no more: no mutation is sent");
  }
}
