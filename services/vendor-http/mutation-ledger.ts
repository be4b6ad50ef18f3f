import type { MutationEffect } from "../contract/provider-error.ts";

/**
 * What one primitive has done to the vendor so far, over all requests it made. One request may be
 * refused while an earlier one took effect: then the whole is PARTIAL, whatever the last error says.
 */
export class MutationLedger {
  #sent = 0;
  #applied = 0;
  #refused = 0;

  /** True once a mutation left this process; from then on it cannot be called back. */
  get isSent(): boolean {
    return this.#sent > 0;
  }

  /** A mutation is about to be written to the vendor's connection. */
  noteSent(): void {
    this.#sent += 1;
  }

  /** How a sent mutation ended. UNKNOWN needs no note: that is what "sent" means until told. */
  noteOutcome(outcome: MutationEffect): void {
    if (outcome === "APPLIED") this.#applied += 1;
    if (outcome === "NOT_APPLIED") this.#refused += 1;
  }

  /** The outcome of a primitive that failed. */
  get outcomeOfFailure(): MutationEffect {
    if (this.#sent > this.#applied + this.#refused) return "UNKNOWN";
    return this.#applied > 0 ? "PARTIAL" : "NOT_APPLIED";
  }
}
