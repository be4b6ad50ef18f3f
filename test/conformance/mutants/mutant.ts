/** What a mutant is: the reference adapter with one thing broken, and the case that has to notice. */
import type { RuleId } from "../core/rules.ts";
import type { MutationName } from "./reference-adapter/mutation-names.ts";
import type { CapabilityName } from "./reference-adapter/world.ts";

export interface Mutant {
  readonly mutation: MutationName;
  /** Where one mutation makes several mutants; the mutation's name when absent. */
  readonly name?: string;
  /** What it does wrong, as a sentence about it. */
  readonly what: string;
  /** The promises it breaks; the case checks at least one of them. */
  readonly breaks: readonly RuleId[];
  /** Name of the conformance case that has to fail. */
  readonly caughtBy: string;
  /** Cases that have to run first: what they leave is what the case looks at. */
  readonly before?: readonly string[];
  /** Capabilities that it does not declare. */
  readonly without?: readonly CapabilityName[];
  /** In a process of its own: it has a port that the suite chooses. */
  readonly hasProcess?: boolean;
  /** It takes ten seconds and more to be caught: it goes first, so that the end waits for nobody. */
  readonly isSlow?: boolean;
  /** Served with TLS. */
  readonly isTls?: boolean;
}

export function nameOf({ name, mutation }: Mutant): string {
  return name ?? mutation;
}
