/** A small process for shutdown.test.ts; its first argument says how it behaves. */
import { createServer } from "node:http";

import { createLog } from "./log.ts";
import { text } from "./option-kinds.ts";
import { readOptions } from "./options.ts";
import { optionsOrExit, runProcess } from "./shutdown.ts";
import type { StopStack } from "./shutdown.ts";

const log = createLog({ name: "fixture", level: "debug" });
const [how = "", ...rest] = process.argv.slice(2);

const never = new Promise<void>(() => undefined);

async function listen(stack: StopStack): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stack.defer("server", () => {
    server.close();
  });
}

async function start(stack: StopStack, signal: AbortSignal): Promise<void> {
  await listen(stack);
  stack.defer("first", () => log.info({}, "stopping first"));
  stack.defer("second", () => Promise.reject(new Error("second fails to stop")));
  stack.defer("third", () => log.info({}, "stopping third"));
  signal.addEventListener("abort", () => log.info({}, "signal aborted"));
  await misbehave(stack, signal);
  log.info({}, "started");
}

async function misbehave(stack: StopStack, signal: AbortSignal): Promise<void> {
  switch (how) {
    case "hang":
      stack.defer("hanging", () => never);
      return;
    case "open":
      setInterval(() => undefined, 1_000);
      return;
    case "slow-start":
      log.info({}, "started");
      await new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
      return;
    case "no-start":
      throw new Error("port is taken");
    case "fail":
      setTimeout(() => stack.fail(new Error("leadership lost")), 10);
      return;
    case "reject":
      setTimeout(() => void Promise.reject(new Error("crash token=sentinel-crash")), 10);
      return;
    case "throw":
      setTimeout(() => {
        throw new Error("crash token=sentinel-crash");
      }, 10);
      return;
    case "throw-and-hang":
      stack.defer("hanging", () => never);
      setTimeout(() => {
        throw new Error("crash");
      }, 10);
      return;
    default:
      return;
  }
}

if (how === "options") {
  const spec = { program: "fixture", summary: "s.", options: { a: text({ help: "A." }) } };
  optionsOrExit(() => readOptions(spec, rest, {}));
}
await runProcess({ log, stopTimeoutMs: 500, crashStopTimeoutMs: 300, start });
