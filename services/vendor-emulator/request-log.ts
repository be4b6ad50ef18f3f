/** The newest records of requests, numbered from 0 on, so that a reader can ask for what is new. */

const entriesMax = 100_000;

export class RequestLog<Entry> {
  #entries: Entry[] = [];
  #dropped = 0;

  /** How many of the oldest are no longer kept. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Number of the next entry. */
  get next(): number {
    return this.#dropped + this.#entries.length;
  }

  add(entry: Entry): void {
    this.#entries.push(entry);
    if (this.#entries.length <= entriesMax) return;
    this.#entries = this.#entries.slice(entriesMax / 2);
    this.#dropped += entriesMax / 2;
  }

  /** From entry number `since` on, oldest first; without those that are no longer kept. */
  since(since: number): readonly Entry[] {
    return this.#entries.slice(Math.max(0, since - this.#dropped));
  }
}
