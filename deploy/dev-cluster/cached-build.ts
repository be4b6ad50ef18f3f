import { createHash, randomUUID } from "node:crypto";
import { access, mkdir, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { acquireBuildLock } from "./build-lock.ts";
import { runCommand } from "./command.ts";
import type { DevClusterOptions } from "./dev-cluster-options.ts";

const buildTimeoutMs = 45 * 60_000;
const progressMs = 1_000;
const unusedDaysMax = 30;
const errorLengthMax = 4_000;

/** One program of a Go module whose go.mod and go.sum pin every version. */
export interface BuildRecipe {
  /** Name of the program's file. */
  readonly name: string;
  /** Absolute path of the folder with go.mod. */
  readonly moduleFolder: string;
  /** Import path of the main package, "." for the module's own. */
  readonly packagePath: string;
  readonly linkerFlags: string;
}

/** What happens while a program is made ready. Times are since ensureBinary was called. */
export type BuildProgress =
  | {
      readonly kind: "building";
      readonly name: string;
      readonly elapsedMs: number;
      readonly packages: number;
    }
  | {
      readonly kind: "waiting";
      readonly name: string;
      readonly elapsedMs: number;
      readonly holder: string;
    }
  | { readonly kind: "built"; readonly name: string; readonly elapsedMs: number };

export interface CachedBuildOptions extends DevClusterOptions {
  readonly onProgress: (progress: BuildProgress) => void;
}

/**
 * Returns the path of the built program: <cache folder>/<name>/<content hash>/<name>. The hash
 * covers the module's files, the flags and the Go version, so an old program is never taken for
 * a new one, and a second call costs milliseconds.
 */
export async function buildCached(
  recipe: BuildRecipe,
  options: CachedBuildOptions,
): Promise<string> {
  const hash = await contentHash(recipe, await readGoVersion(recipe, options));
  const shelf = join(options.cacheFolder, recipe.name);
  const program = join(shelf, hash, recipe.name);
  if (await exists(program)) {
    await markUsed(join(shelf, hash));
    return program;
  }
  await mkdir(shelf, { recursive: true });
  const startedAt = Date.now();
  const release = await acquireBuildLock(join(shelf, `${hash}.lock`), {
    timeoutMs: buildTimeoutMs,
    onWait: (holder) =>
      options.onProgress({
        kind: "waiting",
        name: recipe.name,
        elapsedMs: Date.now() - startedAt,
        holder,
      }),
  });
  try {
    // Whoever held the lock has most likely built it.
    if (!(await exists(program))) await build(recipe, join(shelf, hash), startedAt, options);
  } finally {
    await release();
  }
  await removeUnused(shelf);
  return program;
}

async function build(
  recipe: BuildRecipe,
  target: string,
  startedAt: number,
  options: CachedBuildOptions,
): Promise<void> {
  const temporary = `${target}.${randomUUID()}.tmp`;
  let packages = 0;
  const report = () =>
    options.onProgress({
      kind: "building",
      name: recipe.name,
      elapsedMs: Date.now() - startedAt,
      packages,
    });
  report();
  const timer = setInterval(report, progressMs);
  try {
    const output = join(temporary, recipe.name);
    const args = ["build", "-v", ...buildFlags(recipe), "-o", output, recipe.packagePath];
    const { code, stderr } = await runCommand("go", args, {
      cwd: recipe.moduleFolder,
      environment: goEnvironment(options),
      timeoutMs: buildTimeoutMs,
      onErrorOutput: (chunk) => (packages += chunk.split("\n").length - 1),
    });
    if (code !== 0) throw new Error(`cannot build ${recipe.name}: ${buildErrors(stderr)}`);
    await rename(temporary, target);
  } finally {
    clearInterval(timer);
    await rm(temporary, { recursive: true, force: true });
  }
  options.onProgress({ kind: "built", name: recipe.name, elapsedMs: Date.now() - startedAt });
}

function buildFlags(recipe: BuildRecipe): readonly string[] {
  return ["-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", recipe.linkerFlags];
}

/** The compiler's memory is collected late (a fifth faster), and no C compiler is needed. */
function goEnvironment(options: CachedBuildOptions): Record<string, string | undefined> {
  return { ...options.environment, GOGC: "800", CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "" };
}

/** Says which Go builds and for which machine, for example "go1.26.8 linux amd64". */
async function readGoVersion(recipe: BuildRecipe, options: CachedBuildOptions): Promise<string> {
  const variables = ["GOVERSION", "GOOS", "GOARCH"];
  const result = await runCommand("go", ["env", ...variables], {
    cwd: recipe.moduleFolder,
    environment: goEnvironment(options),
  }).catch((cause: unknown) => {
    throw new Error(
      `cannot build ${recipe.name}: no Go on this machine. The local control plane and the ` +
        `other servers of the tests are built once from their Go modules: install Go 1.26 or ` +
        `later (https://go.dev/dl), so that "go version" works, and try again.`,
      { cause },
    );
  });
  if (result.code !== 0) {
    throw new Error(`cannot build ${recipe.name}: ${buildErrors(result.stderr)}`);
  }
  return result.stdout.trim().split("\n").join(" ");
}

async function contentHash(recipe: BuildRecipe, goVersion: string): Promise<string> {
  const hash = createHash("sha256");
  hash.update(JSON.stringify([goVersion, recipe.packagePath, buildFlags(recipe)]));
  const names = (await readdir(recipe.moduleFolder, { recursive: true })).filter(
    (name) => name === "go.mod" || name === "go.sum" || isSource(name),
  );
  for (const name of names.sort()) {
    const content = await readFile(join(recipe.moduleFolder, name));
    hash.update(`${name} ${content.length}\n`).update(content);
  }
  return hash.digest("hex").slice(0, 24);
}

/** Tests are no part of a program: to change them builds nothing. */
function isSource(name: string): boolean {
  return name.endsWith(".go") && !name.endsWith("_test.go");
}

/** The end of the compiler's output without the list of packages. */
function buildErrors(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => /[\s:#]/.test(line));
  return lines.join("\n").trim().slice(-errorLengthMax);
}

async function markUsed(folder: string): Promise<void> {
  const now = new Date();
  await utimes(folder, now, now);
}

/** Drops what no call has asked for in a month: a program may have 100 MB. */
async function removeUnused(shelf: string): Promise<void> {
  const oldest = Date.now() - unusedDaysMax * 24 * 60 * 60_000;
  for (const entry of await readdir(shelf)) {
    const path = join(shelf, entry);
    // Another process may have removed it in between.
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined && found.mtimeMs < oldest) {
      await rm(path, { recursive: true, force: true });
    }
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    // Whatever the reason, it cannot be used as it is.
    return false;
  }
}
