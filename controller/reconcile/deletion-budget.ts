/**
 * A brake for deletions by mistake: of one class at most so many vendor instances are removed in any
 * minute. Memory alone; a fresh process begins with an empty minute.
 */
export class DeletionBudget {
  /** Removals of the last minute, oldest first, by class: placement id to epoch ms. */
  readonly #removals = new Map<string, Map<string, number>>();

  /**
   * Takes one removal out of the class's minute.
   * @param id names the placement; asking again for it within the minute takes nothing more
   * @param perMinute undefined: no bound
   * @returns 0 when it may go on, else how many ms to wait
   */
  take(
    className: string,
    id: string,
    limit: { readonly perMinute: number | undefined; readonly nowMs: number },
  ): number {
    const { perMinute, nowMs } = limit;
    if (perMinute === undefined) return 0;
    const removals = this.#removals.get(className) ?? new Map<string, number>();
    this.#removals.set(className, removals);
    for (const [old, atMs] of removals) {
      if (atMs > nowMs - minuteMs) break;
      removals.delete(old);
    }
    if (removals.has(id)) return 0;
    if (removals.size < perMinute) {
      removals.set(id, nowMs);
      return 0;
    }
    const [oldestMs = nowMs] = removals.values();
    return Math.max(1, oldestMs + minuteMs - nowMs);
  }
}

const minuteMs = 60_000;
