import { spawn, type ChildProcess } from "node:child_process";
import { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { ensureBinary } from "./binaries.ts";
import { createBoundedText, type BoundedText } from "./bounded-text.ts";
import type { Environment } from "./dev-cluster-options.ts";

const startTimeoutMsDefault = 60_000;
const stopTimeoutMsDefault = 10_000;
const probeMs = 25;
const outputLengthMax = 64 * 1024;
const outputLengthInErrors = 4_000;

/** How the starter learns that the child serves. */
export type Readiness =
  /** A line of standard output that begins with these words. */
  | { readonly kind: "line"; readonly prefix: string }
  /** A question asked again and again until the answer is true. */
  | { readonly kind: "probe"; readonly probe: () => Promise<boolean> };

export interface ChildOptions {
  /** How messages call it. */
  readonly name: string;
  /** Absolute path of the program. */
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly environment: Environment;
  readonly readiness: Readiness;
  /** 60 s when absent. */
  readonly startTimeoutMs?: number;
}

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A server process that serves. It dies with this process, whatever ends that (Linux). */
export interface RunningChild {
  readonly pid: number;
  /** The line that said it is ready; empty with a probe. */
  readonly readyLine: string;
  /** Fulfilled when it has ended, for whatever reason. */
  readonly exit: Promise<ChildExit>;
  /** The end of what it has written to both outputs. */
  output(): string;
  /** SIGTERM, and SIGKILL when that has not ended it in time (10 s when absent). */
  stop(timeoutMs?: number): Promise<ChildExit>;
  /** SIGKILL. */
  kill(): Promise<ChildExit>;
  /** SIGSTOP: it keeps its connections and answers nothing. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
}

/**
 * Starts a server and returns once it serves. Rejects, with the end of its output, when it ends
 * before that or is not ready in time; nothing is left running then.
 *
 * Call it from the main thread: the kernel ties the child's life to the thread that started it.
 */
export async function startChild(options: ChildOptions): Promise<RunningChild> {
  const guard = await ensureBinary("guard");
  const args = [String(process.pid), options.program, ...options.args];
  const child = spawn(guard, args, {
    cwd: options.cwd,
    env: options.environment,
    stdio: ["ignore", "pipe", "pipe"],
    // A process group of its own: Ctrl-C in a terminal is for this process to act on, in order.
    detached: true,
  });
  const output = createBoundedText(outputLengthMax);
  const exit = exitOf(child);
  const readyLine = watchOutput(child, output, options.readiness);
  try {
    return toRunningChild(child, output, exit, await whenReady(options, readyLine, exit));
  } catch (cause) {
    child.kill("SIGKILL");
    await exit.catch(() => undefined);
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `cannot start ${options.name}: ${reason}\n${output.text().slice(-outputLengthInErrors)}`,
      { cause },
    );
  }
}

async function whenReady(
  options: ChildOptions,
  readyLine: Promise<string>,
  exit: Promise<ChildExit>,
): Promise<string> {
  const { startTimeoutMs = startTimeoutMsDefault, readiness } = options;
  const settled = new AbortController();
  const { signal } = settled;
  const ended = exit.then(({ code, signal: by }) => {
    throw new Error(`it ended with ${by ?? `code ${code}`}`);
  });
  const late = delay(startTimeoutMs, undefined, { signal }).then(() => {
    throw new Error(`it was not ready after ${startTimeoutMs} ms`);
  });
  const ready = readiness.kind === "line" ? readyLine : probeUntilTrue(readiness.probe, signal);
  // The losers of the race may reject later: that is no news any more.
  for (const loser of [ended, late, ready]) loser.catch(() => undefined);
  try {
    return await Promise.race([ready, ended, late]);
  } finally {
    settled.abort();
  }
}

async function probeUntilTrue(probe: () => Promise<boolean>, signal: AbortSignal): Promise<string> {
  while (!(await probe())) await delay(probeMs, undefined, { signal });
  return "";
}

function exitOf(child: ChildProcess): Promise<ChildExit> {
  return new Promise((resolve, reject) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    child.once("error", reject);
  });
}

function watchOutput(
  child: ChildProcess,
  output: BoundedText,
  readiness: Readiness,
): Promise<string> {
  return new Promise((resolve) => {
    let line = "";
    let isSeen = readiness.kind !== "line";
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => output.append(chunk));
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      output.append(chunk);
      if (isSeen || readiness.kind !== "line") return;
      const lines = (line + chunk).split("\n");
      line = (lines.pop() ?? "").slice(-outputLengthMax);
      const ready = lines.find((text) => text.startsWith(readiness.prefix));
      if (ready === undefined) return;
      isSeen = true;
      resolve(ready);
    });
  });
}

function toRunningChild(
  child: ChildProcess,
  output: BoundedText,
  exit: Promise<ChildExit>,
  readyLine: string,
): RunningChild {
  if (child.pid === undefined) throw new Error("it has no process id");
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  // A forgotten server must not keep a test from ending: the guard then kills it.
  unreference(child);
  return {
    pid: child.pid,
    readyLine,
    exit,
    output: () => output.text(),
    async stop(timeoutMs = stopTimeoutMsDefault) {
      if (hasEnded()) return await exit;
      child.kill("SIGTERM");
      // A stopped process keeps the signal pending until it may run again.
      child.kill("SIGCONT");
      child.ref();
      const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
      try {
        return await exit;
      } finally {
        clearTimeout(timer);
      }
    },
    async kill() {
      if (hasEnded()) return await exit;
      child.ref();
      child.kill("SIGKILL");
      return await exit;
    },
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
  };
}

function unreference(child: ChildProcess): void {
  child.unref();
  for (const stream of [child.stdout, child.stderr]) {
    if (stream instanceof Socket) stream.unref();
  }
}
