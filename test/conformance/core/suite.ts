/**
 * Runs cases one after the other, waits for what comes later together, removes what was made, and
 * looks with List that nothing is left. Everything has an end: each case its time, the run a total.
 */
import { ProviderAPI } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { systemClock } from "../../../services/process/clock.ts";
import type { Bench } from "./bench.ts";
import { Unmet, unmet } from "./case.ts";
import type { ConformanceCase, Later } from "./case.ts";
import { whatIsMissing } from "./needs.ts";
import { settled } from "./settled.ts";
import { describeReply } from "./wire-client.ts";

export type CaseResult = {
  readonly case: ConformanceCase;
  readonly durationMs: number;
} & (
  | { readonly kind: "passed" }
  | { readonly kind: "skipped"; readonly reason: string }
  | { readonly kind: "failed"; readonly expected: string; readonly came: string }
);

export interface SuiteOptions {
  readonly cases: readonly ConformanceCase[];
  /** True: the vendor is thrown away afterwards, so nothing is removed and looked for at the end. */
  readonly isThrownAway?: boolean;
  /** Told of each result as it comes. */
  readonly onResult?: (result: CaseResult) => void;
  /** Stops before the next case; what was made is removed all the same. */
  readonly signal?: AbortSignal;
}

/** What a case that threw something else than Unmet is said to have failed at. */
export const brokenCase = "the case to run";
const caseTimeoutMsDefault = 20_000;
const laterTimeoutMs = 60_000;
const removalTimeoutMs = 60_000;
const removalsAtOnce = 10;
const listPagesMax = 1_000;

/** Results in the order in which they came; the last is the leak check. */
export async function runSuite(
  bench: Bench,
  options: SuiteOptions,
): Promise<readonly CaseResult[]> {
  const results: CaseResult[] = [];
  const add = (result: CaseResult): void => {
    results.push(result);
    options.onResult?.(result);
  };
  const waiting: {
    readonly case: ConformanceCase;
    readonly later: Later;
    readonly sinceMs: number;
  }[] = [];
  for (const one of options.cases) {
    if (options.signal?.aborted === true) break;
    const reason = whatIsMissing(one, bench);
    if (reason !== undefined) {
      add({ case: one, kind: "skipped", reason, durationMs: 0 });
      continue;
    }
    const { result, later } = await runCase(one, bench);
    if (later === undefined || result.kind === "failed") add(result);
    else waiting.push({ case: one, later, sinceMs: Date.now() });
  }
  waiting.sort((a, b) => a.sinceMs + a.later.afterMs - (b.sinceMs + b.later.afterMs));
  for (const { case: one, later, sinceMs } of waiting) {
    const waitMs = Math.max(0, sinceMs + later.afterMs - Date.now());
    if (await isInterrupted(waitMs, options.signal)) break;
    add(await timed(one, laterTimeoutMs, later.check));
  }
  if (options.isThrownAway !== true) add(await lookForLeaks(bench));
  return results;
}

/** Waits; true at once when the run is to end meanwhile. */
async function isInterrupted(waitMs: number, signal: AbortSignal | undefined): Promise<boolean> {
  await systemClock.sleep(waitMs, signal).catch(() => undefined);
  return signal?.aborted === true;
}

async function runCase(
  one: ConformanceCase,
  bench: Bench,
): Promise<{ readonly result: CaseResult; readonly later: Later | undefined }> {
  let later: Later | void = undefined;
  const result = await timed(one, one.timeoutMs ?? caseTimeoutMsDefault, async () => {
    try {
      later = await one.run(bench);
    } finally {
      if (bench.hasFaults) await bench.faults.reset();
    }
  });
  return { result, later: later ?? undefined };
}

async function timed(
  one: ConformanceCase,
  timeoutMs: number,
  work: () => Promise<void>,
): Promise<CaseResult> {
  const startMs = performance.now();
  const ended = new AbortController();
  const late = systemClock.sleep(timeoutMs, ended.signal).then(
    () => unmet("an end", `after ${timeoutMs} ms the case was still running`),
    () => undefined,
  );
  try {
    await Promise.race([work(), late]);
    return { case: one, kind: "passed", durationMs: performance.now() - startMs };
  } catch (error) {
    const durationMs = performance.now() - startMs;
    if (error instanceof Unmet) {
      return { case: one, kind: "failed", ...wordsOf(error), durationMs };
    }
    const came = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { case: one, kind: "failed", expected: brokenCase, came, durationMs };
  } finally {
    ended.abort();
  }
}

function wordsOf({ expected, came }: Unmet): { readonly expected: string; readonly came: string } {
  return { expected, came };
}

const nothingIsLeft: ConformanceCase = {
  name: "leaks/nothing-is-left",
  promise: "what the run made can be deleted, and List shows nothing of it afterwards",
  checks: ["rpc:list", "rule:deletion"],
  needs: [],
  fix: "look for instances whose display name or stamp is named here, and why Delete or List misses them",
  run: async () => undefined,
};

async function lookForLeaks(bench: Bench): Promise<CaseResult> {
  if (bench.hasCapability("DELETE")) {
    return await timed(nothingIsLeft, removalTimeoutMs * 2, () => removeAll(bench));
  }
  const reason = `capability DELETE is not declared: what run ${bench.runId} made stays at the vendor`;
  return { case: nothingIsLeft, kind: "skipped", reason, durationMs: 0 };
}

async function removeAll(bench: Bench): Promise<void> {
  if (bench.hasFaults) await bench.faults.reset();
  const problems: string[] = [];
  const left = [...bench.subjects];
  const work = async (): Promise<void> => {
    for (let subject = left.pop(); subject !== undefined; subject = left.pop()) {
      const { key } = subject;
      await subject.remove({}, removalTimeoutMs).catch((error: unknown) => {
        if (problems.length < 20) problems.push(`${key}: ${String(error)}`);
      });
    }
  };
  await Promise.all(Array.from({ length: removalsAtOnce }, work));
  if (problems.length > 0) unmet("all of this run removed", problems.join("\n"));
  await settled(bench, () => expectNothingListed(bench), removalTimeoutMs);
}

async function expectNothingListed(bench: Bench): Promise<void> {
  const left: string[] = [];
  for (const cluster of new Set(bench.subjects.map(({ owner }) => owner.cluster))) {
    left.push(...(await listed(bench, cluster)));
  }
  if (left.length > 0) unmet("nothing left of this run", left.slice(0, 20).join("\n"));
}

/** Ids of what List still shows of one owner. */
async function listed(bench: Bench, ownerCluster: string): Promise<readonly string[]> {
  if (!bench.hasCapability("LIST_BY_OWNER")) return [];
  const found: string[] = [];
  let pageToken = "";
  for (let page = 0; page < listPagesMax; page++) {
    const request = { target: bench.parameters.target, ownerCluster, pageToken, pageSize: 1000 };
    const reply = await bench.client.call(ProviderAPI.method.list, request, { deadlineMs: 30_000 });
    if (reply.kind === "failure") return [`List of ${ownerCluster}: ${describeReply(reply)}`];
    found.push(
      ...reply.answer.instances.map(
        ({ providerId, stamp }) => `${providerId} (${stamp}) is listed`,
      ),
    );
    pageToken = reply.answer.nextPageToken;
    if (pageToken === "") return found;
  }
  return [...found, `List of ${ownerCluster} has more than ${listPagesMax} pages`];
}
