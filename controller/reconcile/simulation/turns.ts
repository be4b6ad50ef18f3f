/**
 * Every await of the simulated world stops here until the schedule lets it go on. What belongs to a
 * process that has ended never goes on, which is how a process dies at any await.
 */
export interface Turn {
  readonly owner: string;
  readonly label: string;
}

interface WaitingTurn extends Turn {
  readonly go: () => void;
}

export class Turns {
  #waiting: WaitingTurn[] = [];
  readonly #ended = new Set<string>();

  get waiting(): readonly Turn[] {
    return this.#waiting;
  }

  wait(owner: string, label: string): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#ended.has(owner)) this.#waiting.push({ owner, label, go: resolve });
    });
  }

  go(turn: Turn): void {
    const found = this.#waiting.find((candidate) => candidate === turn);
    if (found === undefined) throw new Error(`"${turn.label}" does not wait`);
    this.#waiting = this.#waiting.filter((candidate) => candidate !== found);
    found.go();
  }

  /** Nothing of the owner goes on any more. */
  end(owner: string): void {
    this.#ended.add(owner);
    this.#waiting = this.#waiting.filter((turn) => turn.owner !== owner);
  }

  hasEnded(owner: string): boolean {
    return this.#ended.has(owner);
  }
}
