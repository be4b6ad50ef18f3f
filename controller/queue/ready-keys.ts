/** Strongest first. Resync is work nobody waits for. */
export const priorities = ["deletion", "change", "resync"] as const;
export type Priority = (typeof priorities)[number];

/** The stronger of two priorities. */
export function strongerPriority(a: Priority, b: Priority): Priority {
  return priorities.indexOf(a) <= priorities.indexOf(b) ? a : b;
}

export interface ReadyKey {
  readonly key: string;
  /** Names those it takes turns with others as one: its groups. */
  readonly turn: string;
  readonly priority: Priority;
}

/**
 * Keys ready to run, first come first served within a group and priority. Groups take turns, so
 * that one with hundreds of keys delays another by one key and not by hundreds. A stronger
 * priority goes first, but a weaker one is passed over only so many times in a row.
 */
export class ReadyKeys {
  readonly #lanes = new Map<Priority, Lane>(priorities.map((priority) => [priority, newLane()]));

  add({ key, turn, priority }: ReadyKey): void {
    const lane = this.#lane(priority);
    const keys = lane.keysByTurn.get(turn);
    if (keys === undefined) lane.keysByTurn.set(turn, new Set([key]));
    else keys.add(key);
    lane.size += 1;
  }

  /** The key must have been added with just this turn and priority. */
  remove({ key, turn, priority }: ReadyKey): void {
    const lane = this.#lane(priority);
    const keys = lane.keysByTurn.get(turn);
    if (keys?.delete(key) !== true) return;
    lane.size -= 1;
    if (keys.size === 0) lane.keysByTurn.delete(turn);
  }

  sizeOf(priority: Priority): number {
    return this.#lane(priority).size;
  }

  /** True when `take` would answer a key. */
  hasFor(mayRun: (turn: string) => boolean): boolean {
    return priorities.some((priority) => firstTurn(this.#lane(priority), mayRun) !== undefined);
  }

  /** Takes out the key whose turn it is among the groups that may run; undefined if none may. */
  take(mayRun: (turn: string) => boolean): ReadyKey | undefined {
    const candidates: { readonly priority: Priority; readonly turn: string }[] = [];
    for (const priority of priorities) {
      const turn = firstTurn(this.#lane(priority), mayRun);
      if (turn !== undefined) candidates.push({ priority, turn });
    }
    const starved = candidates.findLast(
      ({ priority }) => this.#lane(priority).passedOver >= passedOverMax,
    );
    const chosen = starved ?? candidates[0];
    if (chosen === undefined) return undefined;
    for (const { priority } of candidates) {
      const lane = this.#lane(priority);
      lane.passedOver = priority === chosen.priority ? 0 : lane.passedOver + 1;
    }
    return this.#takeFirst(chosen.priority, chosen.turn);
  }

  #takeFirst(priority: Priority, turn: string): ReadyKey | undefined {
    const lane = this.#lane(priority);
    const keys = lane.keysByTurn.get(turn);
    const [key] = keys ?? [];
    if (keys === undefined || key === undefined) return undefined;
    this.remove({ key, turn, priority });
    // Behind the others: it is their turn next.
    if (lane.keysByTurn.delete(turn)) lane.keysByTurn.set(turn, keys);
    return { key, turn, priority };
  }

  #lane(priority: Priority): Lane {
    const lane = this.#lanes.get(priority);
    if (lane === undefined) throw new Error(`unknown priority "${priority}"`);
    return lane;
  }
}

interface Lane {
  /** In the order of turns. */
  readonly keysByTurn: Map<string, Set<string>>;
  size: number;
  /** How often another priority was served while this one could have been. */
  passedOver: number;
}

function newLane(): Lane {
  return { keysByTurn: new Map(), size: 0, passedOver: 0 };
}

function firstTurn(lane: Lane, mayRun: (turn: string) => boolean): string | undefined {
  for (const turn of lane.keysByTurn.keys()) {
    if (mayRun(turn)) return turn;
  }
  return undefined;
}

/** One of eight runs goes to the weaker priority while both have keys. */
const passedOverMax = 7;
