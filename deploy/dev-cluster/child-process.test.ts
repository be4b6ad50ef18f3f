import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startChild, type ChildOptions } from "./child-process.ts";
import { readDevClusterOptions } from "./dev-cluster-options.ts";
import { eventually } from "./eventually.ts";

const { environment } = readDevClusterOptions();

test("a child is ready with the line it announces, and is stopped by SIGTERM", async () => {
  const child = await startChild(script("console.log('noise\\nready at 7');" + forever));
  assert.equal(child.readyLine, "ready at 7");
  assert.deepEqual(await child.stop(), { code: null, signal: "SIGTERM" });
  assert.deepEqual(await child.stop(), { code: null, signal: "SIGTERM" });
});

test("a child is ready when its probe says so", async (t) => {
  let questions = 0;
  const probe = async () => (questions += 1) === 3;
  const child = await startChild({ ...script(forever), readiness: { kind: "probe", probe } });
  t.after(() => child.kill());
  assert.equal(questions, 3);
});

test("a child that ends before it is ready rejects with its last words", async () => {
  await assert.rejects(startChild(script("console.error('no such disk'); process.exit(3);")), {
    message: /cannot start the child: it ended with code 3\n.*no such disk/s,
  });
});

test("a program that does not exist rejects with its path", async () => {
  await assert.rejects(
    startChild({ ...script(""), program: "/nonexistent/program" }),
    /cannot run "\/nonexistent\/program"/,
  );
});

test("a child that is not ready in time is killed", async () => {
  const late = { ...script(`console.log(process.pid);${forever}`), startTimeoutMs: 2_000 };
  const error: unknown = await startChild(late).catch((cause: unknown) => cause);
  assert.ok(error instanceof Error);
  assert.match(error.message, /it was not ready after 2000 ms/);
  const pid = Number(/\n(\d+)/.exec(error.message)?.[1]);
  assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
});

test("a terminal's Ctrl-C reaches this process and no child", async (t) => {
  const child = await startChild(script("console.log('ready');" + forever));
  t.after(() => child.kill());
  const stat = await readFile(`/proc/${child.pid}/stat`, "utf8");
  const [, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  assert.equal(group, String(child.pid));
});

test("a child that ignores SIGTERM is killed when its time is up", async () => {
  const stubborn = "process.on('SIGTERM', () => {}); console.log('ready');";
  const child = await startChild(script(stubborn + forever));
  assert.deepEqual(await child.stop(100), { code: null, signal: "SIGKILL" });
});

test("a paused child can be stopped", async () => {
  const child = await startChild(script(`console.log('ready');${forever}`));
  child.pause();
  assert.deepEqual(await child.stop(), { code: null, signal: "SIGTERM" });
});

test("the kept output is the end of what was written", async (t) => {
  const program = "console.log('x'.repeat(200000) + 'end'); console.log('ready');";
  const child = await startChild(script(program + forever));
  t.after(() => child.kill());
  assert.match(child.output(), /^\.\.\.x+end\nready\n$/);
  assert.ok(child.output().length < 70_000);
});

test(
  "a killed starter leaves no child behind, not even a paused one",
  { skip: process.platform !== "linux" && "the kernel has no such signal" },
  async () => {
    const module = fileURLToPath(new URL("child-process.ts", import.meta.url));
    const options = { ...script(`console.log('ready');${forever}`), environment: {} };
    const starter = spawn(
      process.execPath,
      [
        "--input-type=module",
        "--eval",
        `import { startChild } from ${JSON.stringify(module)};
         const child = await startChild(${JSON.stringify(options)});
         child.pause();
         console.log(child.pid);
         setInterval(() => {}, 1000);`,
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const [line] = await once(starter.stdout.setEncoding("utf8"), "data");
    const pid = Number(line);
    process.kill(pid, 0);
    starter.kill("SIGKILL");
    await eventually(async () => {
      assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
    });
  },
);

const forever = "setInterval(() => {}, 1000);";

function script(text: string): ChildOptions {
  return {
    name: "the child",
    program: process.execPath,
    args: ["--eval", text],
    environment,
    readiness: { kind: "line", prefix: "ready" },
  };
}
