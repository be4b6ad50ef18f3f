/**
 * `npm run conformance:mutants -- [--only NAME]... [--whole] [--json]`: the negative proof of the suite.
 * The right adapter has to pass, each mutant has to fail at the case that names it. The last line is
 * {"mutants", "caught", "missed"}; exits 1 when anything is missed.
 */
import { parseArgs } from "node:util";
import { resultLines } from "../core/report-text.ts";
import { mutants } from "./mutants.ts";
import { runMutants, runSuiteAgainst } from "./run-mutants.ts";

const lanes = 4;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true, default: [] },
      whole: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  const say = (line: string): void => {
    if (!values.json) console.log(line);
  };
  const { only } = values;
  const unknown = only.filter((name) => !mutants.some((mutant) => mutant.name === name));
  if (unknown.length > 0) {
    console.error(`there is no mutant ${unknown.join(", ")}; there are:`);
    for (const { name, what } of mutants) console.error(`  ${name}: ${what}`);
    return 2;
  }
  const isRight = only.length > 0 || (await rightOnePasses(say));
  const chosen = only.length === 0 ? mutants : mutants.filter(({ name }) => only.includes(name));
  const results = await runMutants({
    mutants: chosen,
    isWhole: values.whole,
    lanes,
    onResult: ({ mutant, isCaught, failed }) => {
      const more = values.whole ? ` (${failed.length} cases failed)` : "";
      say(`${isCaught ? "caught" : "MISSED"}  ${mutant.name}: ${mutant.caughtBy}${more}`);
      if (!isCaught) say(`        failed instead: ${failed.join(", ") || "nothing"}`);
    },
  });
  const missed = results.filter(({ isCaught }) => !isCaught).map(({ mutant }) => mutant.name);
  const caught = results.length - missed.length;
  console.log(JSON.stringify({ mutants: results.length, caught, missed }));
  return isRight && missed.length === 0 ? 0 : 1;
}

async function rightOnePasses(say: (line: string) => void): Promise<boolean> {
  say("the right adapter: the whole suite");
  const report = await runSuiteAgainst({});
  const failed = report.results.filter(({ kind }) => kind === "failed");
  for (const result of failed) console.error(resultLines(result));
  say(`${report.passed} passed, ${failed.length} failed, ${report.skipped} skipped`);
  return failed.length === 0 && report.isComplete;
}

process.exitCode = await main();
