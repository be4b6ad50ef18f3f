import { randomUUID } from "node:crypto";
import { link, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";

const pollMs = 300;
const heartbeatMs = 5_000;
/** Past this without a heartbeat a lock is stale, even if its process id lives (again). */
const silenceMsMax = 60_000;

export interface BuildLockOptions {
  readonly timeoutMs: number;
  /** Called at each look at a lock that another process holds. */
  readonly onWait: (holder: string) => void;
}

/**
 * Takes the lock, a file, and returns its release. Waits while a living process holds it; the
 * lock of a dead one is taken over. Rejects after timeoutMs.
 *
 * Two processes that take over one stale lock in the same instant may both get it. Here that
 * wastes a build and nothing else, since results are put in place by an atomic rename.
 */
export async function acquireBuildLock(
  file: string,
  options: BuildLockOptions,
): Promise<() => Promise<void>> {
  const content = JSON.stringify({ pid: process.pid, host: hostname(), id: randomUUID() });
  const deadline = Date.now() + options.timeoutMs;
  while (!(await tryCreate(file, content))) {
    const holder = await readHolder(file);
    if (holder === undefined) continue;
    if (await isStale(file, holder)) {
      await removeStale(file, holder);
      continue;
    }
    if (Date.now() > deadline) {
      throw new Error(`lock "${file}" is held by ${holder} for more than ${options.timeoutMs} ms`);
    }
    options.onWait(holder);
    await delay(pollMs);
  }
  const heartbeat = setInterval(() => void touch(file), heartbeatMs);
  return async () => {
    clearInterval(heartbeat);
    if ((await readHolder(file)) === content) await rm(file, { force: true });
  };
}

/** Creates the lock together with its content: nobody ever reads an empty one. */
async function tryCreate(file: string, content: string): Promise<boolean> {
  const own = `${file}.${randomUUID()}`;
  await writeFile(own, content);
  try {
    await link(own, file);
    return true;
  } catch (cause) {
    if (hasCode(cause, "EEXIST")) return false;
    throw cause;
  } finally {
    await rm(own, { force: true });
  }
}

async function readHolder(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    if (hasCode(cause, "ENOENT")) return undefined;
    throw cause;
  }
}

async function isStale(file: string, holder: string): Promise<boolean> {
  const { pid, host } = parseHolder(holder);
  if (host === hostname() && pid !== undefined && !isAlive(pid)) return true;
  try {
    return Date.now() - (await stat(file)).mtimeMs > silenceMsMax;
  } catch (cause) {
    if (hasCode(cause, "ENOENT")) return false;
    throw cause;
  }
}

/** Moves the stale lock aside; gives back a fresh one that was caught by mistake. */
async function removeStale(file: string, holder: string): Promise<void> {
  const aside = `${file}.${randomUUID()}`;
  try {
    await rename(file, aside);
    if ((await readHolder(aside)) !== holder) await link(aside, file);
  } catch (cause) {
    if (!hasCode(cause, "ENOENT") && !hasCode(cause, "EEXIST")) throw cause;
  } finally {
    await rm(aside, { force: true });
  }
}

async function touch(file: string): Promise<void> {
  const now = new Date();
  try {
    await utimes(file, now, now);
  } catch (cause) {
    // Someone took the lock over: the build goes on, its result is as good as theirs.
    if (!hasCode(cause, "ENOENT")) throw cause;
  }
}

function parseHolder(holder: string): { pid?: number; host?: string } {
  try {
    const value: unknown = JSON.parse(holder);
    if (typeof value !== "object" || value === null) return {};
    const pid = "pid" in value && typeof value.pid === "number" ? { pid: value.pid } : {};
    const host = "host" in value && typeof value.host === "string" ? { host: value.host } : {};
    return { ...pid, ...host };
  } catch (cause) {
    // A foreign or damaged file: it is stale once nobody has touched it for a while.
    if (cause instanceof SyntaxError) return {};
    throw cause;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (cause) {
    return !hasCode(cause, "ESRCH");
  }
}

function hasCode(cause: unknown, code: string): boolean {
  return cause instanceof Error && "code" in cause && cause.code === code;
}
