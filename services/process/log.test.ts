import assert from "node:assert/strict";
import { test } from "node:test";

import { createLog } from "./log.ts";
import type { LogLevel } from "./log.ts";
import { registerSecret } from "./redaction.ts";

function collect(level: LogLevel) {
  const lines: string[] = [];
  const log = createLog({
    name: "dhp-test",
    level,
    destination: { write: (line) => void lines.push(line) },
  });
  return { log, lines };
}

test("a line is one JSON object with level, time, process, fields and message", () => {
  const { log, lines } = collect("debug");
  log.child({ vendor: "v" }).info({ durationMs: 5 }, "ensured");
  assert.equal(lines.length, 1);
  const line = JSON.parse(lines[0] ?? "");
  assert.equal(line.level, "info");
  assert.equal(line.process, "dhp-test");
  assert.equal(line.vendor, "v");
  assert.equal(line.durationMs, 5);
  assert.equal(line.msg, "ensured");
  assert.ok(!Number.isNaN(Date.parse(line.time)));
});

test("levels below the log's own are not written", () => {
  const { log, lines } = collect("warn");
  log.debug({}, "a");
  log.info({}, "b");
  log.warn({}, "c");
  log.error({}, "d");
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).msg),
    ["c", "d"],
  );
});

test("a field cannot take the place of a line's own member", () => {
  const { log, lines } = collect("info");
  log.info({ level: "x", msg: "y" }, "m");
  const line = JSON.parse(lines[0] ?? "");
  assert.deepEqual([line.level, line.level_, line.msg, line.msg_], ["info", "x", "m", "y"]);
});

test("a sentinel secret appears on no path through the log", () => {
  const sentinel = "sentinel-log-5f1c9a";
  const { log, lines } = collect("debug");
  const early = log.child({ url: `https://h/?k=${sentinel}` });
  registerSecret(sentinel);
  early.debug({}, "child made before the secret was known");
  log.info({ text: `x${sentinel}x`, [sentinel]: 1 }, `message ${sentinel}`);
  log.warn({ error: new Error(sentinel, { cause: new Error(sentinel) }) }, "error");
  log.error({ headers: { authorization: `Bearer ${sentinel}` } }, "headers");
  assert.equal(lines.length, 4);
  assert.ok(!lines.join("").includes(sentinel));
});

test("fields that JSON cannot hold do not break the line", () => {
  const { log, lines } = collect("info");
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  log.info({ cycle, big: 10n, fn: () => 1 }, "odd");
  assert.equal(JSON.parse(lines[0] ?? "").msg, "odd");
});
