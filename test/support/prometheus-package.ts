/**
 * Prometheus and promtool for tests: Debian's package, unpacked into the user's cache without its
 * dependencies, which the two programs do not need. Nothing is installed, and root is not needed.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { acquireBuildLock } from "../../deploy/dev-cluster/build-lock.ts";
import { runCommand } from "../../deploy/dev-cluster/command.ts";
import type { CommandResult } from "../../deploy/dev-cluster/command.ts";
import { readDevClusterOptions } from "../../deploy/dev-cluster/dev-cluster-options.ts";
import type { DevClusterOptions } from "../../deploy/dev-cluster/dev-cluster-options.ts";

const fetchTimeoutMs = 180_000;
const lockTimeoutMs = 240_000;
const programs = ["prometheus", "promtool"] as const;
const sumsFile = "sums.json";
const errorLengthMax = 2_000;

/** Absolute paths. */
export interface PrometheusPrograms {
  readonly prometheus: string;
  readonly promtool: string;
}

/**
 * Where the programs are; fetched when the cache has none, or not what was put there. Two callers
 * at once fetch once. Rejects with one message where apt is missing or refuses.
 */
export async function ensurePrometheus(
  options: DevClusterOptions = readDevClusterOptions(),
): Promise<PrometheusPrograms> {
  const shelf = join(options.cacheFolder, "prometheus");
  const folder = join(shelf, "debian");
  if (!(await isIntact(folder))) {
    await mkdir(shelf, { recursive: true });
    const release = await acquireBuildLock(`${folder}.lock`, {
      timeoutMs: lockTimeoutMs,
      onWait: () => undefined,
    });
    try {
      // Whoever held the lock has most likely fetched it.
      if (!(await isIntact(folder))) await fetchInto(folder, options);
    } finally {
      await release();
    }
  }
  return { prometheus: join(folder, "prometheus"), promtool: join(folder, "promtool") };
}

/** Whether the programs are byte for byte what was unpacked. */
async function isIntact(folder: string): Promise<boolean> {
  try {
    const sums: unknown = JSON.parse(await readFile(join(folder, sumsFile), "utf8"));
    return JSON.stringify(sums) === JSON.stringify(await sumsOf(folder));
  } catch {
    // Absent or damaged: it is fetched anew.
    return false;
  }
}

async function sumsOf(folder: string): Promise<Readonly<Record<string, string>>> {
  const sums: Record<string, string> = {};
  for (const program of programs) {
    const content = await readFile(join(folder, program));
    sums[program] = createHash("sha256").update(content).digest("hex");
  }
  return sums;
}

async function fetchInto(folder: string, options: DevClusterOptions): Promise<void> {
  const temporary = `${folder}.${randomUUID()}.tmp`;
  const [state, download, unpacked] = ["state", "download", "unpacked"].map((name) =>
    join(temporary, name),
  );
  if (state === undefined || download === undefined || unpacked === undefined) return;
  for (const path of [join(state, "lists/partial"), join(state, "archives/partial"), download]) {
    await mkdir(path, { recursive: true });
  }
  const run = (command: string, args: readonly string[]) =>
    runOrSay({ command, args, cwd: download, options });
  try {
    // Lists of its own: another apt may be at work, and those of the machine may be old.
    const settings = {
      "Dir::State::lists": join(state, "lists"),
      "Dir::Cache": state,
      "APT::Sandbox::User": "root",
    };
    const own = Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
    await run("apt-get", [...own, "update"]);
    // apt checks what it downloads against the lists, and those against Debian's signature.
    await run("apt-get", [...own, "download", "prometheus"]);
    const [archive] = (await readdir(download)).filter((name) => name.endsWith(".deb"));
    await run("dpkg", ["-x", archive ?? "prometheus.deb", unpacked]);
    const bin = join(unpacked, "usr/bin");
    for (const program of programs) await run(join(bin, program), ["--version"]);
    await writeFile(join(bin, sumsFile), JSON.stringify(await sumsOf(bin)));
    await rm(folder, { recursive: true, force: true });
    await rename(bin, folder);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

interface Step {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly options: DevClusterOptions;
}

async function runOrSay({ command, args, cwd, options }: Step): Promise<CommandResult> {
  const { environment } = options;
  const result = await runCommand(command, args, {
    cwd,
    environment,
    timeoutMs: fetchTimeoutMs,
  }).catch((cause: unknown) => {
    throw new Error(
      `cannot fetch Prometheus: no ${command} on this machine. The tests of the metrics run ` +
        `Debian's package "prometheus"; they need a machine with apt, Debian 12 for example.`,
      { cause },
    );
  });
  if (result.code === 0) return result;
  const words = result.stderr.trim().slice(-errorLengthMax);
  throw new Error(`cannot fetch Prometheus: ${command} ${args.at(-1)} failed: ${words}`);
}
