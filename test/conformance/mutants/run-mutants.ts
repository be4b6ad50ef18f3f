/**
 * `npm run conformance:mutants -- [--only NAME,...] [--whole] [--json]`: the negative proof of the
 * suite. The right adapter has to pass all cases, each mutant has to fail at the case that names it.
 * The last line is {"mutants", "caught", "missed"}. Exits 1 when anything is missed, 2 for a wrong option.
 */
import { parseArgs } from "node:util";
import type { ConformanceReport } from "../core/conformance-run.ts";
import { resultLines } from "../core/report-text.ts";
import { nameOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";
import { mutants } from "./mutants.ts";
import { neverRun, proveMutants, rightOnes, runRightOne } from "./proof.ts";
import type { MutantResult } from "./proof.ts";

const lanes = 8;
const cameLengthMax = 160;

interface Arguments {
  readonly chosen: readonly Mutant[];
  readonly isWhole: boolean;
  readonly isJson: boolean;
  /** All mutants are asked for, so the right adapter is looked at too. */
  readonly isAll: boolean;
}

/** Throws an Error with plain words. */
function readArguments(): Arguments {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true, default: [] },
      whole: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  const only = values.only.flatMap((names) => names.split(","));
  const unknown = only.filter((name) => !mutants.some((mutant) => nameOf(mutant) === name));
  if (unknown.length > 0) {
    const known = mutants.map((mutant) => `  ${nameOf(mutant)}: ${mutant.what}`).join("\n");
    throw new Error(`there is no mutant ${unknown.join(", ")}; there are:\n${known}`);
  }
  const isAll = only.length === 0;
  const chosen = isAll ? mutants : mutants.filter((mutant) => only.includes(nameOf(mutant)));
  return { chosen, isWhole: values.whole, isJson: values.json, isAll };
}

async function main({ chosen, isWhole, isJson, isAll }: Arguments): Promise<number> {
  const say = (line: string): void => {
    if (!isJson) console.log(line);
  };
  const isRight = !isAll || (await rightOnesPass(say));
  const onResult = (result: MutantResult): void => say(lineOf(result, isWhole));
  const results = await proveMutants({ mutants: chosen, isWhole, lanes, onResult });
  const missed = results.filter(({ isCaught }) => !isCaught).map(({ mutant }) => nameOf(mutant));
  const caught = results.length - missed.length;
  console.log(JSON.stringify({ mutants: results.length, caught, missed }));
  return isRight && missed.length === 0 ? 0 : 1;
}

function lineOf({ mutant, isCaught, failed }: MutantResult, isWhole: boolean): string {
  const more = isWhole ? ` (${failed.length} cases failed)` : "";
  const head = `${isCaught ? "caught" : "MISSED"}  ${nameOf(mutant)}: ${mutant.caughtBy}${more}`;
  if (!isCaught) {
    return `${head}\n        failed instead: ${failed.map(({ name }) => name).join(", ") || "nothing"}`;
  }
  const came = failed.find(({ name }) => name === mutant.caughtBy)?.came ?? "";
  return `${head}\n        ${came.replaceAll("\n", " ").slice(0, cameLengthMax)}`;
}

async function rightOnesPass(say: (line: string) => void): Promise<boolean> {
  const reports: ConformanceReport[] = [];
  for (const one of rightOnes) {
    for (const report of await runRightOne(one, 1)) {
      reports.push(report);
      const { results, passed, failed, skipped } = report;
      for (const result of results) if (result.kind === "failed") say(resultLines(result));
      const counts = `${passed} passed, ${failed} failed, ${skipped} skipped`;
      say(`the right adapter ${one.what}: ${counts}`);
    }
  }
  const never = neverRun(reports);
  if (never.length > 0) say(`never run: ${never.join(", ")}`);
  return (
    never.length === 0 && reports.every(({ failed, isComplete }) => failed === 0 && isComplete)
  );
}

try {
  process.exitCode = await main(readArguments());
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 2;
}
