/** Results as text for people, as one JSON document, and as JUnit XML. Pure. */
import { assertNever } from "../../../services/process/assert-never.ts";
import type { ConformanceReport, ConformanceStart } from "./conformance-run.ts";
import { rules } from "./rules.ts";
import type { CaseResult } from "./suite.ts";

export function startLine({ adapter, address, runId, caseCount }: ConformanceStart): string {
  return `adapter ${adapter} at ${address}, run ${runId}: ${caseCount} cases`;
}

/** One line; a failure says on more what was promised, expected, came, and how to mend it. */
export function resultLines(result: CaseResult): string {
  const { name, promise, checks, fix } = result.case;
  const time = `${Math.round(result.durationMs)} ms`;
  switch (result.kind) {
    case "passed":
      return `ok    ${name} (${time})`;
    case "skipped":
      return `skip  ${name}`;
    case "failed":
      return [
        `FAIL  ${name} (${time})`,
        `      promise:  ${promise}`,
        ...checks.map((id) => `      rule:     ${id}: ${rules[id]}`),
        `      expected: ${indented(result.expected)}`,
        `      came:     ${indented(result.came)}`,
        `      to do:    ${fix}`,
      ].join("\n");
    default:
      return assertNever(result);
  }
}

/** What was skipped and why, and the totals. */
export function endLines(report: ConformanceReport): string {
  const skipped = new Map<string, string[]>();
  for (const result of report.results) {
    if (result.kind !== "skipped") continue;
    skipped.set(result.reason, [...(skipped.get(result.reason) ?? []), result.case.name]);
  }
  const reasons = [...skipped].map(
    ([reason, names]) => `  ${reason}:\n${names.map((name) => `    ${name}`).join("\n")}`,
  );
  const { passed, failed } = report;
  const seconds = (report.durationMs / 1000).toFixed(1);
  return [
    ...(reasons.length === 0 ? [] : ["", "skipped:", ...reasons]),
    "",
    ...(report.isComplete ? [] : ["incomplete: not all cases ran before the end"]),
    `${passed} passed, ${failed} failed, ${report.skipped} skipped in ${seconds} s`,
  ].join("\n");
}

/** One JSON document on one line. Durations in ms. */
export function reportJson(report: ConformanceReport): string {
  const { adapter, address, runId, passed, failed, skipped, isComplete } = report;
  return JSON.stringify({
    adapter,
    address,
    runId,
    passed,
    failed,
    skipped,
    isComplete,
    durationMs: Math.round(report.durationMs),
    cases: report.results.map(caseJson),
  });
}

function caseJson(result: CaseResult): object {
  const { name, promise, checks, fix } = result.case;
  const base = { name, result: result.kind, durationMs: Math.round(result.durationMs), checks };
  if (result.kind === "skipped") return { ...base, reason: result.reason };
  if (result.kind === "passed") return base;
  return { ...base, promise, expected: result.expected, came: result.came, fix };
}

export function junitXml(report: ConformanceReport): string {
  const counts = `tests="${report.results.length}" failures="${report.failed}" skipped="${report.skipped}"`;
  const name = `conformance of ${report.adapter}`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${escaped(name)}" ${counts} time="${seconds(report.durationMs)}">`,
    `<testsuite name="${escaped(name)}" ${counts} errors="0" time="${seconds(report.durationMs)}">`,
    ...report.results.map(junitCase),
    "</testsuite>",
    "</testsuites>",
    "",
  ].join("\n");
}

function junitCase(result: CaseResult): string {
  const { name, promise, fix } = result.case;
  const [group = ""] = name.split("/");
  const open = `<testcase classname="${escaped(group)}" name="${escaped(name)}" time="${seconds(result.durationMs)}"`;
  if (result.kind === "passed") return `${open}/>`;
  if (result.kind === "skipped") {
    return `${open}><skipped message="${escaped(result.reason)}"/></testcase>`;
  }
  const body = `expected: ${result.expected}\ncame: ${result.came}\nto do: ${fix}`;
  return `${open}><failure message="${escaped(promise)}">${escaped(body)}</failure></testcase>`;
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

const entities: ReadonlyMap<string, string> = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
  ["'", "&apos;"],
]);

/** XML 1.0 has no place for most control characters, lone surrogates and two more: they become "?". */
function escaped(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "?")
    .replaceAll(/[&<>"']/gu, (character) => entities.get(character) ?? "");
}

function indented(text: string): string {
  return text.replaceAll("\n", "\n                ");
}
