/**
 * Who may have how many of the workers. A group is a path of names, the widest first and joined by
 * `groupSeparator`; at each level a group leaves room for others beside it, so that groups that hang
 * never take the last worker.
 */
export const groupSeparator = "|";

/** Names one group: "adapter|account" lies within "adapter". */
export function groupPath(...names: readonly string[]): string {
  return names.map((name) => name.replaceAll(groupSeparator, "%7C")).join(groupSeparator);
}

/** The group and those around it, the widest first. */
export function groupsAround(path: string): readonly string[] {
  const around: string[] = [];
  for (
    let end = path.indexOf(groupSeparator);
    end >= 0;
    end = path.indexOf(groupSeparator, end + 1)
  )
    around.push(path.slice(0, end));
  return [...around, path];
}

/** Runs that go on, by group, and how many more each group may begin. */
export class Shares {
  readonly #workersMax: number;
  readonly #running = new Map<string, number>();
  readonly #limits = new Map<string, number>();
  #runningCount = 0;

  constructor(workersMax: number) {
    this.#workersMax = workersMax;
  }

  /** At most so many runs of the group at once, instead of its usual share; undefined: that again. */
  limit(group: string, runningMax: number | undefined): void {
    if (runningMax === undefined) this.#limits.delete(group);
    else this.#limits.set(group, runningMax);
  }

  /** A run of the groups, and of those around them, begins. */
  begin(groups: readonly string[]): void {
    this.#runningCount += 1;
    for (const group of distinctAround(groups)) this.#running.set(group, this.#of(group) + 1);
  }

  end(groups: readonly string[]): void {
    this.#runningCount -= 1;
    for (const group of distinctAround(groups)) {
      const left = this.#of(group) - 1;
      if (left > 0) this.#running.set(group, left);
      else this.#running.delete(group);
    }
  }

  /** True when each of the groups has room for one more run. */
  hasRoom(groups: readonly string[]): boolean {
    return groups.every((group) => this.#room(group) > 0);
  }

  /**
   * How many more runs the group may begin. Of what is left around it, a widest group takes a half,
   * and one within another three quarters: n that hang leave one share in n + 1, or in 3n + 1.
   */
  #room(path: string): number {
    let room = this.#workersMax - this.#runningCount;
    for (const [level, group] of groupsAround(path).entries()) {
      const running = this.#of(group);
      const weight = level === 0 ? 1 : 3;
      const fair = Math.ceil((weight * room - running) / (1 + weight));
      room = Math.min(room, fair, this.#limitOf(group, level) - running);
    }
    return room;
  }

  #limitOf(group: string, level: number): number {
    const usual = level === 1 ? Math.ceil(this.#workersMax / 4) : this.#workersMax;
    return this.#limits.get(group) ?? usual;
  }

  #of(group: string): number {
    return this.#running.get(group) ?? 0;
  }
}

function distinctAround(groups: readonly string[]): ReadonlySet<string> {
  return new Set(groups.flatMap(groupsAround));
}
