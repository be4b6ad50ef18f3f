/**
 * One run against one adapter: connects (or starts the adapter), asks who it is, runs the cases, and
 * adds up. What the command line does and what tests call.
 */
import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  GetProviderInfoRequestSchema,
  ProviderAPI,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { GetProviderInfoResponse } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { AdapterLauncher } from "./adapter-process.ts";
import { Bench } from "./bench.ts";
import type { ConformanceCase } from "./case.ts";
import { FaultPort } from "./fault-port.ts";
import type { SuiteParameters } from "./parameters.ts";
import { runSuite } from "./suite.ts";
import type { CaseResult } from "./suite.ts";
import { describeReply, WireClient } from "./wire-client.ts";
import type { TlsFiles, WireClientOptions } from "./wire-client.ts";

export interface ConformanceOptions {
  readonly parameters: SuiteParameters;
  readonly cases: readonly ConformanceCase[];
  /** host:port of an adapter that runs; absent: `start` of the parameters says how to start one. */
  readonly address?: string;
  readonly tls?: TlsFiles;
  /** http://127.0.0.1:PORT of an emulator's port behind the scenes. */
  readonly vendorFaultsUrl?: string;
  /** Beginnings of names; absent or empty: all cases. */
  readonly only?: readonly string[];
  /** After so long no further case begins; what was made is removed all the same. */
  readonly timeoutMs?: number;
  /** The same at once. */
  readonly signal?: AbortSignal;
  /** True: the vendor is thrown away afterwards; the look for leaks is left out. */
  readonly isThrownAway?: boolean;
  readonly onStart?: (start: ConformanceStart) => void;
  readonly onResult?: (result: CaseResult) => void;
}

/** What is known before the first case. */
export interface ConformanceStart {
  /** Of GetProviderInfo. */
  readonly adapter: string;
  readonly address: string;
  readonly runId: string;
  readonly caseCount: number;
}

export interface ConformanceReport extends ConformanceStart {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** False: it was interrupted, or its time was over; the cases that did not run are left out. */
  readonly isComplete: boolean;
  readonly durationMs: number;
  readonly results: readonly CaseResult[];
}

/** There is nothing to test: no answer, no emulator, nothing chosen. The message says what to do. */
export class CannotRun extends Error {
  override readonly name = "CannotRun";
}

const timeoutMsDefault = 600_000;
const firstDeadlineMs = 10_000;

/** @throws CannotRun */
export async function runConformance(options: ConformanceOptions): Promise<ConformanceReport> {
  const startMs = performance.now();
  const cases = chosen(options);
  const launcher = await launch(options);
  const address = options.address ?? launcher?.address ?? "";
  const { parameters, tls } = options;
  const wire = { address, secrets: parameters.secrets, ...(tls === undefined ? {} : { tls }) };
  let bench: Bench | undefined;
  try {
    const info = await askInfo(wire);
    const faults = await openFaults(options.vendorFaultsUrl);
    bench = new Bench({ runId: newRunId(), parameters, info, wire, faults, launcher });
    const { runId } = bench;
    const start = { adapter: info.name, address, runId, caseCount: cases.length };
    options.onStart?.(start);
    const signal = endOf(options);
    const { onResult, isThrownAway = false } = options;
    const results = await runSuite(bench, {
      cases,
      signal,
      isThrownAway,
      ...(onResult === undefined ? {} : { onResult }),
    });
    // The leak check comes beside the chosen cases.
    const isComplete = results.length >= cases.length + (isThrownAway ? 0 : 1);
    return { ...start, ...totals(results), isComplete, durationMs: performance.now() - startMs };
  } finally {
    bench?.close();
    await launcher?.kill();
  }
}

function chosen({ cases, only = [] }: ConformanceOptions): readonly ConformanceCase[] {
  if (only.length === 0) return cases;
  const found = cases.filter(({ name }) => only.some((prefix) => name.startsWith(prefix)));
  if (found.length > 0) return found;
  const groups = new Set(cases.map(({ name }) => name.split("/")[0] ?? ""));
  throw new CannotRun(
    `no case's name begins with ${only.join(" or ")}; the groups are ${[...groups].join(", ")}`,
  );
}

async function launch(options: ConformanceOptions): Promise<AdapterLauncher | undefined> {
  if (options.address !== undefined) return undefined;
  const { start } = options.parameters;
  if (start === undefined) {
    throw new CannotRun("no address is given, and the parameters file has no start");
  }
  try {
    const launcher = await AdapterLauncher.prepare(start, options.tls);
    await launcher.start();
    return launcher;
  } catch (cause) {
    throw new CannotRun(`cannot start the adapter: ${wordsOf(cause)}`, { cause });
  }
}

async function askInfo(wire: WireClientOptions): Promise<GetProviderInfoResponse> {
  const client = clientOf(wire);
  try {
    const request = create(GetProviderInfoRequestSchema, { contractVersion: 1 });
    const call = { deadlineMs: firstDeadlineMs };
    const reply = await client.call(ProviderAPI.method.getProviderInfo, request, call);
    if (reply.kind === "answer") return reply.answer;
    throw new CannotRun(
      `no ProviderAPI answers at ${wire.address}: ${describeReply(reply)}\n${adviceFor(wire)}`,
    );
  } finally {
    client.close();
  }
}

function clientOf(wire: WireClientOptions): WireClient {
  try {
    return new WireClient(wire);
  } catch (cause) {
    throw new CannotRun(`cannot use ${wire.address} or its TLS files: ${wordsOf(cause)}`, {
      cause,
    });
  }
}

function adviceFor({ tls }: WireClientOptions): string {
  if (tls === undefined) {
    return "Is the adapter running there? If it serves TLS, give --tls-ca, --tls-cert and --tls-key.";
  }
  return (
    "Is the adapter running there, and does it serve TLS? Its certificate has to come from --tls-ca " +
    "and name the host of --address; --tls-cert has to come from the authority that it trusts."
  );
}

async function openFaults(url: string | undefined): Promise<FaultPort | undefined> {
  if (url === undefined) return undefined;
  try {
    return await FaultPort.open(url);
  } catch (cause) {
    throw new CannotRun(`--vendor-faults: ${wordsOf(cause)}`, { cause });
  }
}

function endOf({ signal, timeoutMs = timeoutMsDefault }: ConformanceOptions): AbortSignal {
  const late = AbortSignal.timeout(timeoutMs);
  return signal === undefined ? late : AbortSignal.any([signal, late]);
}

function totals(
  results: readonly CaseResult[],
): Pick<ConformanceReport, "passed" | "failed" | "skipped" | "results"> {
  const count = (kind: CaseResult["kind"]): number =>
    results.filter((result) => result.kind === kind).length;
  const [passed, failed, skipped] = [count("passed"), count("failed"), count("skipped")];
  return { passed, failed, skipped, results };
}

/** Lower-case letters and digits, different in each run, also of two on one machine. */
function newRunId(): string {
  return `${Date.now().toString(36)}${randomBytes(3).toString("hex")}`;
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
