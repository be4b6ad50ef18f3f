/** Chance that repeats: the same seed gives the same run. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed * 2_654_435_761) >>> 0;
  }

  /** In [0, 1); mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** True in `share` of the cases, 0 to 1. */
  chance(share: number): boolean {
    return this.next() < share;
  }

  /** Whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  pick<T>(choices: readonly T[]): T {
    const [chosen] = choices.slice(this.below(choices.length));
    if (chosen === undefined) throw new Error("nothing to pick from");
    return chosen;
  }

  /** Picks by weight; undefined where there is nothing. */
  weighted<T extends { readonly weight: number }>(choices: readonly T[]): T | undefined {
    let left = this.next() * choices.reduce((sum, { weight }) => sum + weight, 0);
    return choices.find(({ weight }) => (left -= weight) < 0) ?? choices.at(-1);
  }
}
