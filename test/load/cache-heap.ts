/** How much heap the watch's cache takes an object, measured on the objects that the run made. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { RawObject } from "../../controller/kubernetes/raw-object.ts";
import { Watch } from "../../controller/kubernetes/watch.ts";
import { systemClock } from "../../services/process/clock.ts";
import { silentLog } from "../../services/process/log.ts";
import type { Stack } from "../support/stack.ts";
import { collectionPath, openConnection } from "./load-objects.ts";

const syncTimeoutMs = 60_000;

/** Heap in use with a second cache of the same kind, less that without it, by object. */
export async function heapBytesPerObject(stack: Stack, count: number): Promise<number> {
  const connection = openConnection(stack);
  const watching = new AbortController();
  const beforeBytes = settledHeapBytes();
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
  await watch.whenSynced(AbortSignal.timeout(syncTimeoutMs));
  const afterBytes = settledHeapBytes();
  watching.abort(new Error("measured"));
  await running;
  await connection.close();
  return Math.round((afterBytes - beforeBytes) / count);
}

function settledHeapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
