/** What is broken in one adapter on purpose. Without any it keeps the contract. */
import { mutationNames } from "./mutation-names.ts";
import type { MutationName } from "./mutation-names.ts";

export class Mutations {
  readonly #names: ReadonlySet<MutationName>;

  constructor(names: readonly MutationName[] = []) {
    this.#names = new Set(names);
  }

  /** Something is broken. */
  get isAny(): boolean {
    return this.#names.size > 0;
  }

  has(name: MutationName): boolean {
    return this.#names.has(name);
  }
}

/** @param text names, comma-separated. Throws an Error that names what is not known */
export function parseMutationNames(text: string): readonly MutationName[] {
  return text
    .split(",")
    .filter((name) => name !== "")
    .map((name) => {
      const known = mutationNames.find((one) => one === name);
      if (known === undefined) throw new Error(`"${name}" is no mutant`);
      return known;
    });
}
