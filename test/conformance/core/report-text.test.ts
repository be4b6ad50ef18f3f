import assert from "node:assert/strict";
import { test } from "node:test";
import { allCases } from "../cases/all.ts";
import type { ConformanceReport } from "./conformance-run.ts";
import { endLines, junitXml, reportJson } from "./report-text.ts";

const [first] = allCases;
assert.ok(first !== undefined);
const nasty = 'a\u0000b\u001b[31m\u0085 <x> & "q" \uD800 🎭\nnext';

const report: ConformanceReport = {
  adapter: "livekit",
  address: "127.0.0.1:1",
  runId: "run",
  caseCount: 3,
  passed: 1,
  failed: 1,
  skipped: 1,
  isComplete: false,
  durationMs: 1_234.5,
  results: [
    { case: first, kind: "passed", durationMs: 1 },
    { case: first, kind: "failed", expected: nasty, came: nasty, durationMs: 2 },
    { case: first, kind: "skipped", reason: nasty, durationMs: 0 },
  ],
};

test("JUnit holds no character that XML has no place for, and escapes what has a meaning", () => {
  const xml = junitXml(report);
  assert.doesNotMatch(xml, /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u);
  assert.ok(xml.includes("a?b?[31m"));
  assert.ok(xml.includes("&lt;x&gt; &amp; &quot;q&quot;"));
  assert.ok(xml.includes("🎭"));
  assert.match(xml, /tests="3" failures="1" skipped="1"/);
});

test("the JSON document is one line", () => {
  const json = reportJson(report);
  assert.equal(json.split("\n").length, 1);
  assert.equal(JSON.parse(json).cases.length, 3);
});

test("an incomplete run says so before the totals", () => {
  assert.match(endLines(report), /incomplete: .*\n1 passed, 1 failed, 1 skipped in 1\.2 s$/);
});
