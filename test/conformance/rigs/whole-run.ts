/** A run of all cases in a test: which failed, with everything that is known of each. */
import type { TestContext } from "node:test";
import { allCases } from "../cases/all.ts";
import { runConformance } from "../core/conformance-run.ts";
import type { ConformanceOptions, ConformanceReport } from "../core/conformance-run.ts";
import { resultLines } from "../core/report-text.ts";

export async function wholeRun(
  context: TestContext,
  options: Omit<ConformanceOptions, "cases">,
): Promise<{ readonly report: ConformanceReport; readonly failedNames: readonly string[] }> {
  const report = await runConformance({ ...options, cases: allCases });
  const failed = report.results.filter(({ kind }) => kind === "failed");
  for (const result of failed) context.diagnostic(resultLines(result));
  return { report, failedNames: failed.map((result) => result.case.name) };
}
