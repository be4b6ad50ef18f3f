/**
 * Doubt: the time in which a vendor's "not there" proves nothing, because a mutation whose answer
 * was lost may still take effect or may not show yet. It belongs to (object key, realm), outlives
 * the object's uid, and lasts until the rest of not_after, the vendor's mutation deadline, the
 * reads' lag and the clock skew allowance have all passed since.
 */

/** How long what an adapter sent may stay unsettled; from GetProviderInfo. */
export interface SettlingTimes {
  readonly mutationDeadlineMs: number;
  readonly visibilityLagMs: number;
  readonly clockSkewMs: number;
}

/** Doubts of this process. Memory alone: a fresh process doubts each recorded placement anew. */
export class DoubtLedger {
  readonly #untilMs = new Map<string, number>();

  /** Doubt begins or is prolonged: a mutation allowed until `notAfterMs` has no known end. */
  begin(key: string, realm: string, notAfterMs: number, times: SettlingTimes): void {
    const untilMs =
      notAfterMs + times.mutationDeadlineMs + times.visibilityLagMs + times.clockSkewMs;
    const id = entryId(key, realm);
    this.#untilMs.set(id, Math.max(this.#untilMs.get(id) ?? 0, untilMs));
  }

  /** Epoch ms until which absence in this realm proves nothing; 0: no doubt. */
  untilMs(key: string, realm: string, nowMs: number): number {
    const id = entryId(key, realm);
    const untilMs = this.#untilMs.get(id) ?? 0;
    if (untilMs > nowMs) return untilMs;
    this.#untilMs.delete(id);
    return 0;
  }

  /** Forgets what is over, so that names that never come back cost nothing. */
  prune(nowMs: number): void {
    for (const [id, untilMs] of this.#untilMs) if (untilMs <= nowMs) this.#untilMs.delete(id);
  }

  get size(): number {
    return this.#untilMs.size;
  }
}

/** Keys and realms never contain a line break. */
function entryId(key: string, realm: string): string {
  return `${key}\n${realm}`;
}
