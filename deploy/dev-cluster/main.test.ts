import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runCommand } from "./command.ts";
import { readDevClusterOptions } from "./dev-cluster-options.ts";

const { environment } = readDevClusterOptions();

test("a cluster in the foreground says how to reach it and ends with Ctrl-C", async (t) => {
  const main = spawn(process.execPath, [fileURLToPath(new URL("main.ts", import.meta.url))], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => main.kill("SIGKILL"));
  const ended = once(main, "exit");
  const shown = { kubeconfig: "", command: "" };
  for await (const line of createInterface({ input: main.stdout })) {
    shown.kubeconfig ||= /export KUBECONFIG=(.*)$/.exec(line)?.[1] ?? "";
    shown.command ||= /^ +(.*\/kubectl) get namespaces/.exec(line)?.[1] ?? "";
    if (shown.command !== "") break;
  }
  const { stdout } = await runCommand(shown.command, ["get", "namespaces", "--output=name"], {
    environment: { ...environment, KUBECONFIG: shown.kubeconfig },
  });
  assert.match(stdout, /namespace\/kube-system/);
  main.kill("SIGINT");
  assert.deepEqual(await ended, [0, null]);
  await assert.rejects(stat(shown.kubeconfig), { code: "ENOENT" });
});
