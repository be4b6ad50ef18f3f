import { spawn } from "node:child_process";
import { createBoundedText } from "./bounded-text.ts";
import type { Environment } from "./dev-cluster-options.ts";

const timeoutMsDefault = 120_000;
const outputLengthMax = 16 * 1024 * 1024;

export interface CommandOptions {
  readonly cwd?: string | undefined;
  readonly environment?: Environment | undefined;
  /** Written to the command's standard input, which is empty otherwise. */
  readonly input?: string | undefined;
  /** After this the command is killed and the promise rejected; 120 s when absent. */
  readonly timeoutMs?: number | undefined;
  /** Each chunk of standard error as it comes, for progress. */
  readonly onErrorOutput?: ((chunk: string) => void) | undefined;
}

/** How a command ended; it ran, whatever its code says. */
export interface CommandResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Exit code; 128 when a signal ended it. */
  readonly code: number;
}

/**
 * Runs a command to its end.
 *
 * Rejects when it cannot be started (the cause carries the system's code, ENOENT for a missing
 * program) and when it does not end in time. Of each output the last 16 Mi characters are kept.
 */
export function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const { timeoutMs = timeoutMsDefault } = options;
  const stdout = createBoundedText(outputLengthMax);
  const stderr = createBoundedText(outputLengthMax);
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.environment,
      stdio: ["pipe", "pipe", "pipe"],
    });
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`${command} ${args.join(" ")}: still running after ${timeoutMs} ms`));
    }, timeoutMs);
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => stdout.append(chunk));
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr.append(chunk);
      options.onErrorOutput?.(chunk);
    });
    child.on("error", (cause) => {
      clearTimeout(timer);
      reject(new Error(`cannot run ${command}: ${cause.message}`, { cause }));
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ stdout: stdout.text(), stderr: stderr.text(), code: code ?? 128 });
    });
    // A command that reads no input may close the pipe first: that is no failure of the command.
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input ?? "");
  });
}
