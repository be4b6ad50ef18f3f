/**
 * `npm run load -- --objects 1000 [--json]`: creates objects on the local stack with a real LiveKit
 * as the vendor, waits until all are Ready, deletes them, and says what that cost. With --json the
 * last line is one JSON object. Loopback only, bounded in count and time.
 */
import { parseArgs } from "node:util";
import { httpGet, metricValue } from "../support/http-get.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";
import { heapBytesPerObject } from "./cache-heap.ts";
import { LoadObjects } from "./load-objects.ts";

const objectsMax = 10_000;

/** Times in seconds or ms as named; rates are per object. */
interface LoadReport {
  readonly objects: number;
  readonly vendor: string;
  readonly createToReadySeconds: number;
  readonly applyToReadyMsP50: number;
  readonly applyToReadyMsP99: number;
  readonly deleteToGoneSeconds: number;
  readonly writesPerCreate: number;
  readonly writesPerDelete: number;
  readonly vendorCreates: number;
  readonly vendorInstancesLeft: number;
  readonly rssMiB: number;
  readonly heapBytesPerObject: number;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      objects: { type: "string", default: "1000" },
      json: { type: "boolean", default: false },
    },
  });
  const count = Number(values.objects);
  if (!Number.isInteger(count) || count < 1 || count > objectsMax) {
    console.error(`--objects has to be a whole number from 1 to ${objectsMax}: ${values.objects}`);
    return 2;
  }
  const say = (line: string): void => {
    if (!values.json) console.log(line);
  };
  const stack = await startStack({ onProgress: (what) => say(`starting ${what}`) });
  try {
    const report = await measure(stack, count, say);
    console.log(values.json ? JSON.stringify(report) : report);
    return report.vendorInstancesLeft === 0 && report.vendorCreates === count ? 0 : 1;
  } finally {
    await stack.stop();
  }
}

async function measure(
  stack: Stack,
  count: number,
  say: (line: string) => void,
): Promise<LoadReport> {
  const objects = await LoadObjects.open(stack, count);
  try {
    const before = await counters(stack);
    say(`creating ${count} objects`);
    const created = await objects.createAll();
    const afterCreate = await counters(stack);
    const rooms = (await listRooms(stack.livekit)).length;
    const heapBytes = await heapBytesPerObject(stack, count);
    say(`all Ready after ${created.seconds.toFixed(1)} s; deleting them`);
    const deleteSeconds = await objects.deleteAll();
    const afterDelete = await counters(stack);
    return {
      objects: count,
      vendor: "LiveKit v1.9.11, local",
      createToReadySeconds: round(created.seconds),
      applyToReadyMsP50: Math.round(created.msP50),
      applyToReadyMsP99: Math.round(created.msP99),
      deleteToGoneSeconds: round(deleteSeconds),
      writesPerCreate: round((afterCreate.writes - before.writes) / count),
      writesPerDelete: round((afterDelete.writes - afterCreate.writes) / count),
      vendorCreates: rooms,
      vendorInstancesLeft: (await listRooms(stack.livekit)).length,
      rssMiB: Math.round(afterCreate.rssBytes / 2 ** 20),
      heapBytesPerObject: heapBytes,
    };
  } finally {
    await objects.close();
  }
}

async function counters(
  stack: Stack,
): Promise<{ readonly writes: number; readonly rssBytes: number }> {
  const { text } = await httpGet(stack.controller.ports.adminPort, "/metrics");
  return {
    writes: metricValue(text, "dhp_api_writes_total"),
    rssBytes: metricValue(text, "process_resident_memory_bytes"),
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

process.exitCode = await main();
