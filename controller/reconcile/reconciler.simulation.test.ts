import assert from "node:assert/strict";
import { test } from "node:test";

import { mutants } from "./simulation/mutants.ts";
import { runSeed, ViolationError } from "./simulation/run.ts";

/** About 5 ms each on one core. */
const seeds = 2_000;
/** The rarest mutant shows itself once in about a thousand. */
const mutantSeedsMax = 6_000;

test("no history leaks, duplicates or takes away an instance, and each comes to its goal", async () => {
  // A failure's message holds the seed and everything that happened: runSeed(seed) repeats it.
  for (let seed = 0; seed < seeds; seed++) await runSeed(seed);
});

for (const [name, mutant] of mutants) {
  test(`the simulation notices when ${name}`, async () => {
    for (let seed = 0; seed < mutantSeedsMax; seed++) {
      try {
        await runSeed(seed, mutant);
      } catch (error) {
        assert.ok(error instanceof ViolationError, String(error));
        return;
      }
    }
    assert.fail(`${mutantSeedsMax} histories, and nothing was noticed`);
  });
}
