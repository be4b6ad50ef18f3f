import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { acquireBuildLock } from "./build-lock.ts";

const patient = { timeoutMs: 10_000, onWait: () => undefined };

test("a lock is held by one at a time, and the next has it after the release", async (t) => {
  const file = await lockFile(t);
  const release = await acquireBuildLock(file, patient);
  const order: string[] = [];
  const { promise: isWaiting, resolve } = Promise.withResolvers<void>();
  const next = acquireBuildLock(file, { ...patient, onWait: () => resolve() }).then((done) => {
    order.push("next");
    return done;
  });
  await isWaiting;
  order.push("release");
  await release();
  await (
    await next
  )();
  assert.deepEqual(order, ["release", "next"]);
  assert.deepEqual(await readdir(join(file, "..")), []);
});

test("waiting for a living holder ends with the time limit", async (t) => {
  const file = await lockFile(t);
  const release = await acquireBuildLock(file, patient);
  t.after(release);
  await assert.rejects(acquireBuildLock(file, { ...patient, timeoutMs: 100 }), /more than 100 ms/);
});

test("the lock of a process that died is taken over", async (t) => {
  const file = await lockFile(t);
  const child = spawn(process.execPath, ["--eval", ""]);
  await once(child, "exit");
  await writeFile(file, JSON.stringify({ pid: child.pid, host: hostname() }));
  await (
    await acquireBuildLock(file, { ...patient, timeoutMs: 0 })
  )();
});

test("a lock that nobody has touched for a minute is taken over, whatever it says", async (t) => {
  const file = await lockFile(t);
  const minuteAgo = new Date(Date.now() - 61_000);
  for (const content of [JSON.stringify({ pid: process.pid, host: hostname() }), "", "{"]) {
    await writeFile(file, content);
    await utimes(file, minuteAgo, minuteAgo);
    await (
      await acquireBuildLock(file, { ...patient, timeoutMs: 0 })
    )();
  }
});

test("the lock of another machine counts while it is touched", async (t) => {
  const file = await lockFile(t);
  await writeFile(file, JSON.stringify({ pid: 2 ** 22 + 1, host: "elsewhere" }));
  await assert.rejects(acquireBuildLock(file, { ...patient, timeoutMs: 0 }), /elsewhere/);
});

async function lockFile(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "dhp-lock-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "build.lock");
}
