import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const fixture = fileURLToPath(new URL("shutdown-fixture.ts", import.meta.url));

interface Ended {
  readonly exitCode: number | null;
  readonly messages: readonly string[];
  readonly output: string;
}

/** Runs the fixture, sends the signals once it has started, and waits for its end. */
async function runFixture(how: string, signals: readonly NodeJS.Signals[] = []): Promise<Ended> {
  const child = spawn(process.execPath, [fixture, ...how.split(" ")], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 20_000,
    killSignal: "SIGKILL",
  });
  const messages: string[] = [];
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => {
    output += `${line}\n`;
    if (!line.startsWith("{")) return;
    const message: unknown = JSON.parse(line).msg;
    messages.push(String(message));
    const at = message === "started" ? 0 : message === "process stops" ? 1 : undefined;
    const signal = at === undefined ? undefined : signals[at];
    if (signal !== undefined) child.kill(signal);
  });
  const [[exitCode]] = await Promise.all([once(child, "close"), once(lines, "close")]);
  return { exitCode, messages, output };
}

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`${signal} stops what was started in reverse order and exits 0 with nothing left open`, async () => {
    const { exitCode, messages } = await runFixture("well", [signal]);
    assert.equal(exitCode, 0);
    assert.deepEqual(messages, [
      "started",
      "process stops",
      "signal aborted",
      "stopping third",
      "stopped",
      "cannot stop cleanly",
      "stopping first",
      "stopped",
      "stopped",
      "process stopped",
    ]);
  });
}

test("a second signal ends the process at once", async () => {
  const { exitCode, messages } = await runFixture("hang", ["SIGTERM", "SIGINT"]);
  assert.equal(exitCode, 130);
  assert.ok(messages.includes("second signal: process ends at once"));
});

test("a stop that hangs ends at the limit with exit code 1", async () => {
  const { exitCode, messages } = await runFixture("hang", ["SIGTERM"]);
  assert.equal(exitCode, 1);
  assert.ok(messages.includes("process did not stop in time"));
});

test("a handle left open is named and does not keep the process", async () => {
  const { exitCode, output } = await runFixture("open", ["SIGTERM"]);
  assert.equal(exitCode, 0);
  assert.match(output, /handles left open/u);
  assert.match(output, /Timeout/u);
});

test("a signal during the start aborts it, and what had started is stopped", async () => {
  const { exitCode, messages } = await runFixture("slow-start", ["SIGTERM"]);
  assert.equal(exitCode, 0);
  assert.ok(messages.includes("stopping first"));
  assert.ok(!messages.includes("process cannot start"));
});

test("a start that fails stops what had started and exits 1", async () => {
  const { exitCode, messages } = await runFixture("no-start");
  assert.equal(exitCode, 1);
  assert.ok(messages.includes("process cannot start"));
  assert.ok(messages.includes("stopping first"));
});

test("a part that cannot go on stops the process with exit code 1", async () => {
  const { exitCode, messages } = await runFixture("fail");
  assert.equal(exitCode, 1);
  assert.ok(messages.includes("process cannot go on"));
  assert.ok(messages.includes("stopping third"));
});

for (const how of ["reject", "throw"]) {
  test(`an unhandled ${how === "reject" ? "rejection" : "exception"} is a logged crash without secrets, exit 1`, async () => {
    const { exitCode, messages, output } = await runFixture(how);
    assert.equal(exitCode, 1);
    assert.ok(messages.includes("process crashed"));
    assert.ok(messages.includes("stopping first"));
    assert.ok(!output.includes("sentinel-crash"));
    assert.match(output, /shutdown-fixture\.ts/u, "the stack is logged");
  });
}

test("a crash does not wait long for a stop that hangs", async () => {
  const { exitCode, messages } = await runFixture("throw-and-hang");
  assert.equal(exitCode, 1);
  assert.ok(messages.includes("process did not stop in time"));
});

test("wrong options exit 2 with all mistakes, --help exits 0", async () => {
  const wrong = await runFixture("options --b 1");
  assert.equal(wrong.exitCode, 2);
  assert.match(wrong.output, /--b.*no such option[\s\S]*--a .*missing/u);
  const help = await runFixture("options --help");
  assert.equal(help.exitCode, 0);
  assert.match(help.output, /Usage: fixture/u);
});
