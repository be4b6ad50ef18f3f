/**
 * The negative proof: the reference adapter passes the whole suite, and each mutant fails at the case
 * that it names. The adapter is served from this process unless a case stops it or reads its output.
 */
import { allCases } from "../cases/all.ts";
import type { ConformanceCase } from "../core/case.ts";
import { CannotRun, runConformance } from "../core/conformance-run.ts";
import type { ConformanceReport } from "../core/conformance-run.ts";
import { brokenCase } from "../core/suite.ts";
import { nameOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";
import { capabilityNames } from "./reference-adapter/world.ts";
import { startReferenceRig } from "./reference-rig.ts";
import type { ReferenceRigOptions } from "./reference-rig.ts";

export interface MutantResult {
  readonly mutant: Mutant;
  /** The named case failed. */
  readonly isCaught: boolean;
  /** Names of all cases that failed, and how in their own words. */
  readonly failed: readonly { readonly name: string; readonly came: string }[];
}

export interface ProofOptions {
  readonly mutants: readonly Mutant[];
  /** All cases against each, not the named one alone. */
  readonly isWhole: boolean;
  /** So many at the same time: a run waits more than it works. */
  readonly lanes: number;
  readonly onResult?: (result: MutantResult) => void;
}

const timeoutMs = 300_000;

/**
 * The right adapter twice: with everything, over TLS; and with no capability at all, in plaintext.
 * Between them each case has to run.
 */
export const rightOnes: readonly (ReferenceRigOptions & { readonly what: string })[] = [
  { what: "with everything", isTls: true },
  { what: "without capabilities", without: capabilityNames },
];

/** @param shards so many adapters share the cases, each with a vendor of its own */
export async function runRightOne(
  rig: ReferenceRigOptions,
  shards: number,
): Promise<readonly ConformanceReport[]> {
  const parts = Array.from({ length: shards }, (_, at) =>
    allCases.filter((_case, place) => place % shards === at),
  );
  return await Promise.all(
    parts.map((cases) => runAgainst(rig, { cases, isWhole: true, hasProcess: true })),
  );
}

/** Names of cases that ran in none of the reports. */
export function neverRun(reports: readonly ConformanceReport[]): readonly string[] {
  const ran = new Set(
    reports.flatMap(({ results }) =>
      results.flatMap((result) => (result.kind === "skipped" ? [] : [result.case.name])),
    ),
  );
  return allCases.map(({ name }) => name).filter((name) => !ran.has(name));
}

/** Results in the order in which they came. */
export async function proveMutants(options: ProofOptions): Promise<readonly MutantResult[]> {
  const { mutants, isWhole, lanes, onResult } = options;
  const waiting = mutants.toSorted((a, b) => rank(a) - rank(b));
  const results: MutantResult[] = [];
  const lane = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const result = await proveOne(mutant, isWhole);
      results.push(result);
      onResult?.(result);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}

function rank({ isSlow }: Mutant): number {
  return isSlow === true ? 0 : 1;
}

async function proveOne(mutant: Mutant, isWhole: boolean): Promise<MutantResult> {
  const { mutation, caughtBy, before = [], without = [], isTls = false } = mutant;
  const names = [...before, caughtBy];
  const cases = isWhole ? allCases : allCases.filter(({ name }) => names.includes(name));
  if (!allCases.some(({ name }) => name === caughtBy)) {
    throw new CannotRun(`mutant ${nameOf(mutant)}: there is no case ${caughtBy}`);
  }
  const report = await runAgainst(
    { mutants: [mutation], without, isTls },
    { cases, isWhole, hasProcess: mutant.hasProcess === true },
  );
  const failed = report.results.flatMap((result) =>
    // A case that breaks down has noticed nothing.
    result.kind === "failed" && result.expected !== brokenCase
      ? [{ name: result.case.name, came: result.came }]
      : [],
  );
  return { mutant, isCaught: failed.some(({ name }) => name === caughtBy), failed };
}

interface RunOptions {
  readonly cases: readonly ConformanceCase[];
  readonly isWhole: boolean;
  /** True: in a process of its own, also where no case asks for one. */
  readonly hasProcess: boolean;
}

async function runAgainst(
  options: ReferenceRigOptions,
  { cases, isWhole, hasProcess }: RunOptions,
): Promise<ConformanceReport> {
  const rig = await startReferenceRig(options);
  try {
    const needsProcess =
      hasProcess || cases.some(({ needs }) => needs.some(({ kind }) => kind === "own-process"));
    const { parameters, vendorFaultsUrl, tls } = rig;
    return await runConformance({
      parameters,
      vendorFaultsUrl,
      cases,
      timeoutMs,
      isThrownAway: !isWhole,
      ...(needsProcess ? {} : { address: await rig.serveHere() }),
      ...(tls === undefined ? {} : { tls }),
    });
  } finally {
    await rig.stop();
  }
}
