/**
 * `npm run load:cache -- [--objects 10000] [--json]`: the watch's cache over a real API server: so many
 * objects, then all of them deleted and made again, several times and across broken connections. Says
 * what an object takes in the heap, and how far the heap comes back. The last line is one JSON object.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Connection } from "../../controller/kubernetes/connection.ts";
import { kubeConfigFile } from "../../controller/kubernetes/kube-config.ts";
import type { RawObject } from "../../controller/kubernetes/raw-object.ts";
import { TcpRelay } from "../../controller/kubernetes/tcp-relay.ts";
import { Watch } from "../../controller/kubernetes/watch.ts";
import { expectDone, layerFolder, untilEstablished } from "../../deploy/crd/cluster-fixture.ts";
import { startCluster } from "../../deploy/dev-cluster/cluster.ts";
import { systemClock } from "../../services/process/clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { dhp } from "../support/providers.ts";
import { collectionPath } from "./load-objects.ts";

const roundsCount = 3;
const warmUpCount = 2_000;
const noteCharacters = 1_900;
const inFlightMax = 64;
const limitMs = 120_000;
const pollMs = 50;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      objects: { type: "string", default: "10000" },
      json: { type: "boolean", default: false },
    },
  });
  const count = Number(values.objects);
  if (!Number.isInteger(count) || count < 1 || count > 50_000) {
    console.error("--objects: want a whole number from 1 to 50000");
    return 2;
  }
  const say = (line: string): void => {
    if (!values.json) console.log(line);
  };
  const cluster = await startCluster({ withControllerManager: false, auditLog: false });
  const folder = await mkdtemp(join(tmpdir(), "dhp-cache-"));
  try {
    expectDone(await cluster.kubectl(["apply", "-k", layerFolder("crd")]));
    await untilEstablished(cluster);
    const report = await churn(cluster.adminKubeconfig, { folder, count, say });
    console.log(values.json ? JSON.stringify(report) : report);
    return Math.abs(report.heapAfterPercent - 100) <= 10 ? 0 : 1;
  } finally {
    await cluster.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Report {
  readonly objects: number;
  readonly heapBytesPerObject: number;
  /** Heap of the cache after the churn, of that before it. */
  readonly heapAfterPercent: number;
  readonly reconnects: number;
}

async function churn(
  kubeconfig: string,
  { folder, count, say }: { folder: string; count: number; say: (line: string) => void },
): Promise<Report> {
  const direct = connect(kubeconfig);
  const relayed = await relay(kubeconfig, folder);
  const watching = new AbortController();
  const connection = connect(relayed.kubeconfig);
  const watch = new Watch<RawObject>({
    connection,
    path: collectionPath,
    parse: (raw) => raw,
    onEvent: () => undefined,
    clock: systemClock,
    random: Math.random,
    log: silentLog,
  });
  const running = watch.run(watching.signal);
  try {
    await watch.whenSynced(AbortSignal.timeout(limitMs));
    say("warming up");
    await each(warmUpCount, (name) => send(direct, "POST", collectionPath, large(name)));
    await each(warmUpCount, (name) => send(direct, "DELETE", `${collectionPath}/${name}`));
    await until(() => watch.keys().length === 0);
    await systemClock.sleep(1_000);
    const emptyBytes = settledHeapBytes();
    say(`making ${count} objects`);
    await each(count, (name) => send(direct, "POST", collectionPath, large(name)));
    await until(() => watch.keys().length === count);
    await systemClock.sleep(1_000);
    const firstBytes = settledHeapBytes() - emptyBytes;
    for (let round = 1; round <= roundsCount; round += 1) {
      say(`round ${round}: the connection breaks, all are deleted and made again`);
      relayed.cut();
      await each(count, (name) => send(direct, "DELETE", `${collectionPath}/${name}`));
      await each(count, (name) => send(direct, "POST", collectionPath, large(name)));
      await relayed.mend();
      await until(() => watch.state === "watching" && watch.keys().length === count);
    }
    await systemClock.sleep(2_000);
    const lastBytes = settledHeapBytes() - emptyBytes;
    return {
      objects: count,
      heapBytesPerObject: Math.round(firstBytes / count),
      heapAfterPercent: Math.round((lastBytes / firstBytes) * 1_000) / 10,
      reconnects: roundsCount,
    };
  } finally {
    watching.abort(new Error("measured"));
    await running;
    await connection.close();
    await direct.close();
    relayed.cut();
  }
}

/** As large as an object with a full status is: about 2.3 kB of JSON without managedFields. */
function large(name: string): object {
  return dhp(name, { parameters: { note: `${name} `.padEnd(noteCharacters, `${name}-`) } });
}

/** The same access through a relay that can be cut. */
async function relay(
  kubeconfig: string,
  folder: string,
): Promise<{ readonly kubeconfig: string; cut(): void; mend(): Promise<void> }> {
  const text = await readFile(kubeconfig, "utf8");
  const port = Number(/https:\/\/127\.0\.0\.1:(\d+)/.exec(text)?.[1]);
  let running = await TcpRelay.start(port);
  const path = join(folder, "kubeconfig");
  await writeFile(path, text.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${running.port}`));
  return {
    kubeconfig: path,
    cut: () => running.stop(),
    mend: async () => {
      running = await TcpRelay.start(port, running.port);
    },
  };
}

function connect(kubeconfig: string): Connection {
  return new Connection({
    source: kubeConfigFile(kubeconfig),
    clock: systemClock,
    log: silentLog,
    metrics: { onRequest: () => undefined, onHandshake: () => undefined },
    userAgent: "dhp-load",
  });
}

async function send(
  connection: Connection,
  method: "POST" | "DELETE",
  path: string,
  body?: unknown,
): Promise<void> {
  await connection.request({ method, path, body, timeoutMs: 30_000 });
}

async function each(count: number, run: (name: string) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const name = `churn-${next}`;
      next += 1;
      await run(name);
    }
  };
  await Promise.all(Array.from({ length: inFlightMax }, worker));
}

async function until(isSo: () => boolean): Promise<void> {
  const endMs = Date.now() + limitMs;
  while (!isSo()) {
    if (Date.now() > endMs) throw new Error(`it did not come about within ${limitMs} ms`);
    await systemClock.sleep(pollMs);
  }
}

function settledHeapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  for (let count = 0; count < 3; count += 1) collectGarbage();
  return process.memoryUsage().heapUsed;
}

process.exitCode = await main();
