/** Runs the suite against each mutant and says which were caught by the case that names them. */
import { allCases } from "../cases/all.ts";
import { runConformance } from "../core/conformance-run.ts";
import type { ConformanceReport } from "../core/conformance-run.ts";
import type { Mutant } from "./mutant.ts";
import { startReferenceRig } from "./reference-rig.ts";
import type { ReferenceRigOptions } from "./reference-rig.ts";

export interface MutantResult {
  readonly mutant: Mutant;
  /** The named case failed. */
  readonly isCaught: boolean;
  /** Names of all cases that failed. */
  readonly failed: readonly string[];
}

export interface RunMutantsOptions {
  readonly mutants: readonly Mutant[];
  /** All cases against each, not the named one alone. */
  readonly isWhole: boolean;
  /** So many at the same time: a run waits more than it works. */
  readonly lanes: number;
  readonly onResult?: (result: MutantResult) => void;
}

const timeoutMs = 240_000;

export async function runMutants(options: RunMutantsOptions): Promise<readonly MutantResult[]> {
  const { mutants, isWhole, lanes, onResult } = options;
  const waiting = [...mutants];
  const results: MutantResult[] = [];
  const lane = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const result = await runOne(mutant, isWhole);
      results.push(result);
      onResult?.(result);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}

async function runOne(mutant: Mutant, isWhole: boolean): Promise<MutantResult> {
  const { name, caughtBy } = mutant;
  const hasTls = mutant.server?.takesStrangers === true;
  // What leaked is seen only where something is asked first.
  const before = caughtBy.startsWith("secrets/") ? ["ensure/ten", "vendor-errors/create-bad"] : [];
  const only = isWhole ? [] : [...before, caughtBy];
  const report = await runSuiteAgainst({ mutant: name, hasTls }, only);
  const failed = report.results.filter(({ kind }) => kind === "failed").map((one) => one.case.name);
  return { mutant, isCaught: failed.includes(caughtBy), failed };
}

/** @param only beginnings of names; empty: all cases */
export async function runSuiteAgainst(
  rigOptions: ReferenceRigOptions,
  only: readonly string[] = [],
): Promise<ConformanceReport> {
  const rig = await startReferenceRig(rigOptions);
  try {
    const { parameters, vendorFaultsUrl, tls } = rig;
    return await runConformance({
      parameters,
      vendorFaultsUrl,
      ...(tls === undefined ? {} : { tls }),
      cases: allCases,
      only,
      timeoutMs,
    });
  } finally {
    await rig.stop();
  }
}
