/** The negative proof: what keeps the contract passes, and what breaks it is caught where it should be. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { resultLines } from "../core/report-text.ts";
import { nameOf } from "./mutant.ts";
import { mutants } from "./mutants.ts";
import { neverRun, proveMutants, rightOnes, runRightOne } from "./proof.ts";

test(
  "the reference adapter passes the whole suite, and between its two forms each case runs",
  { timeout: 300_000 },
  async (context) => {
    const reports = (await Promise.all(rightOnes.map((one) => runRightOne(one, 2)))).flat();
    for (const { results, isComplete } of reports) {
      const failed = results.filter(({ kind }) => kind === "failed");
      for (const result of failed) context.diagnostic(resultLines(result));
      assert.deepEqual(
        failed.map((result) => result.case.name),
        [],
      );
      assert.ok(isComplete);
    }
    assert.deepEqual(neverRun(reports), []);
  },
);

test("each mutant is caught by the case that names it", { timeout: 300_000 }, async (context) => {
  const results = await proveMutants({ mutants, isWhole: false, lanes: 8 });
  const missed = results.filter(({ isCaught }) => !isCaught);
  for (const { mutant, failed } of missed) {
    context.diagnostic(`${nameOf(mutant)}: ${failed.map(({ name }) => name).join(", ")}`);
  }
  assert.deepEqual(
    missed.map(({ mutant }) => nameOf(mutant)),
    [],
  );
  assert.equal(results.length, mutants.length);
});
