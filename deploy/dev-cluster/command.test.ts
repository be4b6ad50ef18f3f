import assert from "node:assert/strict";
import { test } from "node:test";
import { runCommand } from "./command.ts";

const node = process.execPath;

test("a command's outputs and exit code are returned, whatever the code", async () => {
  const script = "console.log('out'); console.error('err'); process.exitCode = 4;";
  assert.deepEqual(await runCommand(node, ["--eval", script]), {
    stdout: "out\n",
    stderr: "err\n",
    code: 4,
  });
});

test("a command reads its input", async () => {
  const script = "process.stdin.pipe(process.stdout);";
  const result = await runCommand(node, ["--eval", script], { input: "hello" });
  assert.equal(result.stdout, "hello");
});

test("a command that reads no input does not fail because of it", async () => {
  const input = "x".repeat(1_000_000);
  assert.equal((await runCommand(node, ["--eval", ""], { input })).code, 0);
});

test("a command that takes too long is killed and rejected", async () => {
  const command = runCommand(node, ["--eval", "setInterval(() => {}, 1000);"], { timeoutMs: 300 });
  await assert.rejects(command, /still running after 300 ms/);
});

test("a missing program is rejected with the system's code as cause", async () => {
  await assert.rejects(runCommand("/nonexistent/program", []), {
    message: /cannot run \/nonexistent\/program/,
    cause: Object.assign(new Error("spawn /nonexistent/program ENOENT"), {
      errno: -2,
      code: "ENOENT",
      syscall: "spawn /nonexistent/program",
      path: "/nonexistent/program",
      spawnargs: [],
    }),
  });
});
