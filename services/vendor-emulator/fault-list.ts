/** Faults that wait for the requests they befall; the oldest that fits goes first. */
import type { Fault, Operation } from "./fault-words.ts";

interface PendingFault {
  readonly fault: Fault;
  skipsLeft: number;
  timesLeft: number;
}

const faultsMax = 1_000;

export class FaultList {
  #pending: PendingFault[] = [];

  add(fault: Fault): void {
    if (this.#pending.length >= faultsMax) throw new Error(`more than ${faultsMax} faults`);
    this.#pending.push({ fault, skipsLeft: fault.skip ?? 0, timesLeft: fault.times });
  }

  clear(): void {
    this.#pending = [];
  }

  /** The fault that befalls a request; undefined: none. */
  meet(operation: Operation): Fault | undefined {
    for (const pending of this.#pending) {
      const { fault } = pending;
      if (fault.operation !== "any" && fault.operation !== operation) continue;
      if (pending.skipsLeft > 0) {
        pending.skipsLeft -= 1;
        continue;
      }
      pending.timesLeft -= 1;
      this.#pending = this.#pending.filter(({ timesLeft }) => timesLeft > 0);
      return fault;
    }
    return undefined;
  }
}
