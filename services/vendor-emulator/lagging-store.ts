/** Records with their past, so that lists can show the world as it was a while ago. */

/** State from `atMs` on; absent: deleted. */
interface Version<Record> {
  readonly atMs: number;
  readonly record: Record | undefined;
}

const recordsMax = 20_000;
const versionsMax = 100;

export class LaggingStore<Record> {
  readonly #now: () => number;
  readonly #versions = new Map<string, readonly Version<Record>[]>();

  /** @param now the vendor's clock, in milliseconds */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** As it was `lagMs` ago. */
  get(id: string, lagMs = 0): Record | undefined {
    const untilMs = this.#now() - lagMs;
    return this.#versions.get(id)?.findLast(({ atMs }) => atMs <= untilMs)?.record;
  }

  /** In the order in which they were first put. */
  all(lagMs = 0): readonly Record[] {
    return [...this.#versions.keys()].flatMap((id) => this.get(id, lagMs) ?? []);
  }

  /** Throws when there are 20,000 already, deleted ones included. @param record undefined: deleted */
  put(id: string, record: Record | undefined): void {
    const versions = this.#versions.get(id) ?? [];
    if (versions.length === 0 && this.#versions.size >= recordsMax) {
      throw new Error(`more than ${recordsMax} records`);
    }
    this.#versions.set(id, [...versions, { atMs: this.#now(), record }].slice(-versionsMax));
  }
}
