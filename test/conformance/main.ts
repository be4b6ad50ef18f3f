/**
 * The conformance suite as a command; `npm run conformance -- --help` names the options.
 *
 * Exits 0 when all that ran passed, 1 when a case failed, 2 when there was nothing to test (no
 * answer, wrong options or parameters) or not all cases ran.
 */
import { writeFile } from "node:fs/promises";
import { optionsOrExit } from "../../services/process/shutdown.ts";
import { allCases } from "./cases/all.ts";
import { readConformanceOptions } from "./conformance-options.ts";
import type { ConformanceCommandOptions } from "./conformance-options.ts";
import { CannotRun, runConformance } from "./core/conformance-run.ts";
import type { ConformanceOptions } from "./core/conformance-run.ts";
import { parseParameters, readParameters } from "./core/parameters.ts";
import { endLines, junitXml, reportJson, resultLines, startLine } from "./core/report-text.ts";

async function main(options: ConformanceCommandOptions): Promise<number> {
  const say = (line: string): void => {
    if (!options.json) process.stdout.write(`${line}\n`);
  };
  const report = await runConformance({
    ...suiteOptionsOf(options),
    signal: interruption(say),
    onStart: (start) => say(startLine(start)),
    onResult: (result) => say(resultLines(result)),
  });
  if (options.junit !== undefined) await writeFile(options.junit, junitXml(report));
  say(endLines(report));
  if (options.json) process.stdout.write(`${reportJson(report)}\n`);
  if (report.failed > 0) return 1;
  return report.isComplete ? 0 : 2;
}

function suiteOptionsOf(options: ConformanceCommandOptions): ConformanceOptions {
  const { address, tlsCa, tlsCert, tlsKey, vendorFaults, only, timeoutMs } = options;
  const own = tlsCert === undefined || tlsKey === undefined ? {} : { cert: tlsCert, key: tlsKey };
  return {
    parameters: parametersOf(options),
    cases: allCases,
    only,
    timeoutMs,
    ...(address === undefined ? {} : { address: addressText(address) }),
    ...(tlsCa === undefined ? {} : { tls: { ca: tlsCa, ...own } }),
    ...(vendorFaults === undefined ? {} : { vendorFaultsUrl: vendorFaults }),
  };
}

function parametersOf({
  params,
  endpoint,
}: ConformanceCommandOptions): ConformanceOptions["parameters"] {
  try {
    return params === undefined
      ? parseParameters({ target: { endpoint } }, "--endpoint")
      : readParameters(params);
  } catch (cause) {
    throw new CannotRun(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

function addressText({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The first Ctrl-C ends the run in good order, what was made is removed; the second ends at once. */
function interruption(say: (line: string) => void): AbortSignal {
  const interrupted = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      if (interrupted.signal.aborted) process.exit(130);
      say("interrupted: the case that runs ends, then what was made is removed");
      interrupted.abort();
    });
  }
  return interrupted.signal;
}

const options = optionsOrExit(() => readConformanceOptions());
try {
  process.exitCode = await main(options);
} catch (error) {
  if (!(error instanceof CannotRun)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
