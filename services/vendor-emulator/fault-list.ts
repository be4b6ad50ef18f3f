/** Faults that wait for the requests they befall; the oldest that fits goes first. */

/** So many fitting requests go by first (0 when absent), and so many are befallen then. */
export interface Counted {
  readonly skip?: number;
  readonly times: number;
}

interface Waiting<Fault> {
  readonly fault: Fault;
  skipsLeft: number;
  timesLeft: number;
}

const faultsMax = 1_000;

export class FaultList<Fault extends Counted> {
  #waiting: Waiting<Fault>[] = [];

  /** Those that will befall at least one request more. */
  get faults(): readonly Fault[] {
    return this.#waiting.map(({ fault }) => fault);
  }

  add(fault: Fault): void {
    if (this.#waiting.length >= faultsMax) throw new Error(`more than ${faultsMax} faults`);
    this.#waiting.push({ fault, skipsLeft: fault.skip ?? 0, timesLeft: fault.times });
  }

  clear(): void {
    this.#waiting = [];
  }

  /** The fault that befalls a request; undefined: none. @param fits whether one is meant for it */
  meet(fits: (fault: Fault) => boolean): Fault | undefined {
    for (const waiting of this.#waiting) {
      if (!fits(waiting.fault)) continue;
      if (waiting.skipsLeft > 0) {
        waiting.skipsLeft -= 1;
        continue;
      }
      waiting.timesLeft -= 1;
      this.#waiting = this.#waiting.filter(({ timesLeft }) => timesLeft > 0);
      return waiting.fault;
    }
    return undefined;
  }
}
