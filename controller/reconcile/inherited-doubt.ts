/**
 * Doubt that a process takes over with the record: calls of its predecessor may still be under way.
 * How long they may linger is known only once the adapter has answered; until then it is unbounded.
 */
import type { DoubtLedger, SettlingTimes } from "./doubt.ts";

export class InheritedDoubt {
  readonly #doubts: DoubtLedger;
  readonly #open = new Map<string, Set<string>>();
  #notAfterMs = 0;

  constructor(doubts: DoubtLedger) {
    this.#doubts = doubts;
  }

  /** Begins with the records as they stood; a predecessor's calls carry not_after up to this. */
  takeOver(
    records: Iterable<{ readonly key: string; readonly realm: string }>,
    notAfterMs: number,
  ): void {
    this.#notAfterMs = notAfterMs;
    for (const { key, realm } of records) {
      const realms = this.#open.get(key) ?? new Set<string>();
      this.#open.set(key, realms.add(realm));
    }
  }

  has(key: string, realm: string): boolean {
    return this.#open.get(key)?.has(realm) ?? false;
  }

  /** The adapter has said its times: the doubt gets its end. */
  resolve(key: string, realm: string, times: SettlingTimes): void {
    const realms = this.#open.get(key);
    if (realms === undefined || !realms.delete(realm)) return;
    if (realms.size === 0) this.#open.delete(key);
    this.#doubts.begin(key, realm, this.#notAfterMs, times);
  }
}
