/** One of this project's own processes, started as a user starts it. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startChild } from "../../deploy/dev-cluster/child-process.ts";
import type { RunningChild } from "../../deploy/dev-cluster/child-process.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const startTimeoutMs = 30_000;

/** Ports as a process writes them to its --port-file. */
export interface Ports {
  readonly adminPort: number;
  /** Adapters alone. */
  readonly grpcPort?: number;
}

export interface Program extends RunningChild {
  readonly ports: Ports;
}

/**
 * Starts `node <main> <flags> --port-file ...` and returns once it has written its ports.
 * `main` is relative to the repository.
 */
export function startProgram(
  main: string,
  flags: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Program> {
  const args = [join(root, main), ...flags];
  return startExecutable({ name: main, program: process.execPath, args, environment });
}

/** The same of any program that takes --port-file, whatever it is written in. */
export async function startExecutable(executable: {
  /** How messages call it. */
  readonly name: string;
  /** Absolute path. */
  readonly program: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}): Promise<Program> {
  const { name, program, args, environment = {} } = executable;
  const folder = await mkdtemp(join(tmpdir(), "dhp-program-"));
  const portFile = join(folder, "ports.json");
  const child = await startChild({
    name,
    program,
    args: [...args, "--port-file", portFile],
    cwd: root,
    environment,
    readiness: { kind: "probe", probe: async () => (await readPorts(portFile)) !== undefined },
    startTimeoutMs,
  });
  const ports = await readPorts(portFile);
  await rm(folder, { recursive: true, force: true });
  if (ports === undefined) throw new Error(`${name} took its port file back`);
  return { ...child, ports };
}

async function readPorts(path: string): Promise<Ports | undefined> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (_notYet) {
    // Written in one piece when the process listens.
    return undefined;
  }
}
