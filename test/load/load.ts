/**
 * `npm run load -- --objects 1000 [--vendors livekit,elevenlabs] [--cold-start] [--json]`: creates so many objects
 * at each vendor of the local stack (a real LiveKit, an emulated ElevenLabs), waits until all are
 * Ready, deletes them, and says what that cost. With --json the last line is one JSON object.
 * Loopback only, bounded in count and time.
 */
import { parseArgs } from "node:util";
import { httpGet, metricValue } from "../support/http-get.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import { elevenLabsEndpoint, startElevenLabs } from "../support/elevenlabs.ts";
import type { ElevenLabs } from "../support/elevenlabs.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";
import { heapBytesPerObject } from "./cache-heap.ts";
import { LoadObjects } from "./load-objects.ts";
import type { LoadSpecs } from "./load-objects.ts";
import { coldStart } from "./cold-start.ts";
import type { ColdStart } from "./cold-start.ts";

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
  /** Passes of the reconciler from create to Ready, the settled ones among them. */
  readonly passesPerCreate: number;
  readonly vendorCreates: number;
  readonly vendorInstancesLeft: number;
  readonly rssMiB: number;
  readonly heapBytesPerObject: number;
  /** A fresh controller over settled objects, until each has been looked at. */
  readonly coldStart?: ColdStart;
}

const vendorNames: ReadonlyMap<string, string> = new Map([
  ["livekit", "LiveKit v1.9.11, local"],
  ["elevenlabs", "ElevenLabs, emulated"],
]);

interface LoadRun {
  readonly stack: Stack;
  /** Undefined: LiveKit alone. */
  readonly elevenLabs: ElevenLabs | undefined;
  readonly specs: LoadSpecs;
  readonly vendors: readonly string[];
  readonly isColdStartWanted: boolean;
  readonly say: (line: string) => void;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      objects: { type: "string", default: "1000" },
      vendors: { type: "string", default: "livekit" },
      "cold-start": { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  const count = Number(values.objects);
  const vendors = values.vendors.split(",");
  const problem = problemWith(count, values.objects, vendors);
  if (problem !== undefined) {
    console.error(problem);
    return 2;
  }
  const say = (line: string): void => {
    if (!values.json) console.log(line);
  };
  const stack = await startStack({
    onProgress: (what) => say(`starting ${what}`),
    ...(values["cold-start"] ? { adapterFlags: ["--sweep-interval=30s"] } : {}),
  });
  let elevenLabs: ElevenLabs | undefined;
  try {
    // What a look each three seconds costs a LiveKit with ten thousand rooms is not asked here.
    if (values["cold-start"]) await stack.applyClass("livekit", { freshnessSeconds: 120 });
    if (vendors.includes("elevenlabs")) {
      elevenLabs = await startElevenLabs();
      const adapter = { address: elevenLabs.address };
      await stack.applyClass("elevenlabs", { adapter, endpointHosts: ["api.elevenlabs.io"] });
    }
    const specs = specsOf(count, vendors);
    const report = await measure({
      stack,
      elevenLabs,
      specs,
      vendors,
      isColdStartWanted: values["cold-start"],
      say,
    });
    console.log(values.json ? JSON.stringify(report) : report);
    return report.vendorInstancesLeft === 0 && report.vendorCreates === specs.size ? 0 : 1;
  } finally {
    await stack.stop();
    await elevenLabs?.stop();
  }
}

function problemWith(count: number, text: string, vendors: readonly string[]): string | undefined {
  if (!Number.isInteger(count) || count < 1 || count > objectsMax) {
    return `--objects has to be a whole number from 1 to ${objectsMax}: ${text}`;
  }
  const unknown = vendors.filter((vendor) => !vendorNames.has(vendor));
  if (unknown.length === 0) return undefined;
  return `--vendors knows ${[...vendorNames.keys()].join(", ")}, not ${unknown.join(", ")}`;
}

function specsOf(count: number, vendors: readonly string[]): LoadSpecs {
  const elevenLabs = { endpoint: elevenLabsEndpoint, region: "global" };
  return new Map(
    Array.from({ length: count }, (_, index) => index).flatMap((index) =>
      vendors.map((vendor) => [
        `load-${vendor}-${index}`,
        vendor === "elevenlabs" ? elevenLabs : {},
      ]),
    ),
  );
}

async function measure(run: LoadRun): Promise<LoadReport> {
  const { stack, specs, say } = run;
  const count = specs.size;
  const objects = await LoadObjects.open(stack, specs);
  try {
    const before = await counters(stack);
    say(`creating ${count} objects`);
    const created = await objects.createAll();
    const afterCreate = await counters(stack);
    const vendorCreates = await instances(run);
    const heapBytes = await heapBytesPerObject(stack, count);
    say(`all Ready after ${created.seconds.toFixed(1)} s`);
    const cold = run.isColdStartWanted ? { coldStart: await coldStart(stack, count, say) } : {};
    const beforeDelete = await counters(stack);
    say("deleting them");
    const deleteSeconds = await objects.deleteAll();
    const afterDelete = await counters(stack);
    return {
      objects: count,
      vendor: run.vendors.map((vendor) => vendorNames.get(vendor)).join(" and "),
      createToReadySeconds: round(created.seconds),
      applyToReadyMsP50: Math.round(created.msP50),
      applyToReadyMsP99: Math.round(created.msP99),
      deleteToGoneSeconds: round(deleteSeconds),
      writesPerCreate: round((afterCreate.writes - before.writes) / count),
      writesPerDelete: round((afterDelete.writes - beforeDelete.writes) / count),
      passesPerCreate: round((afterCreate.passes - before.passes) / count),
      vendorCreates,
      vendorInstancesLeft: await instances(run),
      rssMiB: Math.round(afterCreate.rssBytes / 2 ** 20),
      heapBytesPerObject: heapBytes,
      ...cold,
    };
  } finally {
    await objects.close();
  }
}

async function instances({ stack, elevenLabs }: LoadRun): Promise<number> {
  const rooms = (await listRooms(stack.livekit)).length;
  return rooms + (elevenLabs === undefined ? 0 : (await elevenLabs.agents()).length);
}

interface Counters {
  readonly writes: number;
  readonly passes: number;
  readonly rssBytes: number;
}

async function counters(stack: Stack): Promise<Counters> {
  const { text } = await httpGet(stack.controller.ports.adminPort, "/metrics");
  return {
    writes: metricValue(text, "dhp_api_writes_total"),
    passes: metricValue(text, "controller_runtime_reconcile_total"),
    rssBytes: metricValue(text, "process_resident_memory_bytes"),
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

process.exitCode = await main();
