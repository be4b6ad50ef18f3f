import type { Clock, Timer } from "../../services/process/clock.ts";
import { Holds } from "./holds.ts";
import { groupsAround } from "./shares.ts";

/**
 * Groups that wait, and those that come back from a wait. What nobody's event caused does not run
 * while its group is held, and afterwards one run at a time until somebody lifts the hold: so that a
 * vendor that asked to be left alone is tried by one key and not by all of them at once.
 */
export class GroupHolds {
  readonly #clock: Clock;
  readonly #holds: Holds;
  readonly #timers = new Map<string, Timer>();
  /** Held since they were lifted last, by runs that go on. */
  readonly #probes = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#holds = new Holds(clock);
  }

  /** @param onEnd called when the wait is over, unless it is lifted or prolonged before */
  hold(group: string, delayMs: number, onEnd: () => void): void {
    this.#holds.hold(group, delayMs);
    this.#probes.set(group, this.#probes.get(group) ?? 0);
    this.#timers.get(group)?.cancel();
    const forMs = this.#holds.untilMs(group) - this.#clock.monotonicMs();
    const timer = this.#clock.setTimer(forMs, () => {
      this.#timers.delete(group);
      onEnd();
    });
    this.#timers.set(group, timer);
  }

  lift(group: string): void {
    this.#holds.lift(group);
    this.#probes.delete(group);
    this.#timers.get(group)?.cancel();
    this.#timers.delete(group);
  }

  /** True when none of the groups, nor those around them, is held or being tried by another run. */
  mayRun(groups: readonly string[]): boolean {
    if (this.#probes.size === 0) return true;
    return groups
      .flatMap(groupsAround)
      .every((group) => !this.#holds.isHeld(group) && (this.#probes.get(group) ?? 0) === 0);
  }

  /** A run that nobody's event caused begins; answers what to call at its end. */
  begin(groups: readonly string[]): () => void {
    const probed = new Set(groups.flatMap(groupsAround).filter((group) => this.#probes.has(group)));
    for (const group of probed) this.#count(group, 1);
    return () => {
      for (const group of probed) this.#count(group, -1);
    };
  }

  close(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }

  /** A group that was lifted meanwhile counts no more; held again, it counts anew. */
  #count(group: string, change: 1 | -1): void {
    const count = this.#probes.get(group);
    if (count !== undefined) this.#probes.set(group, Math.max(0, count + change));
  }
}
