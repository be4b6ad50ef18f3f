/**
 * `npm run load:adapter -- [--seconds N] [--concurrency N] [--json]`: how many settled Describes and
 * Ensures one adapter process answers a second, how long each takes, and how that compares with a
 * bare grpc-js server that echoes the same messages. Echo and adapters take turns in short slices, so
 * that what else the machine does befalls all of them. The last line is one JSON object.
 *
 * Two vendors: "smallest", an HTTP server with a map in it, shows what the adapter itself costs;
 * "livekit" is a real one. Loopback only, bounded in time.
 */
import type { ChildProcess } from "node:child_process";
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";

import {
  forked,
  nextMessage,
  startBeforeLiveKit,
  startEcho,
  startSmallest,
} from "./adapter-load-places.ts";
import type { Closers, LoadedRpc, Place } from "./adapter-load-places.ts";
import type { LoadResult, LoadTask } from "./adapter-load-tasks.ts";

const slices = 5;
const warmUpSeconds = 1;
const secondsMax = 600;
const concurrencyMax = 1_000;
const clockTicksPerSecond = 100;

interface Settings {
  /** Measured seconds per server and RPC. */
  readonly seconds: number;
  readonly concurrency: number;
  readonly isJsonOnly: boolean;
}

interface Measured {
  readonly latenciesMs: number[];
  seconds: number;
  cpuMs: number;
  failures: number;
}

/** Milliseconds; CPU of the server process alone. */
interface Figures {
  readonly callsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMsPerCall: number;
  readonly failures: number;
}

interface Compared extends Figures {
  /** Calls a second, as a share of the echo's. */
  readonly ratio: number;
}

async function main(): Promise<number> {
  const settings = readSettings();
  if (settings === undefined) return 2;
  const say = (line: string): void => {
    if (!settings.isJsonOnly) console.log(line);
  };
  const closers: Closers = [];
  try {
    say("starting LiveKit, two adapters, the smallest vendor and the echo");
    const smallest = await startSmallest(settings.concurrency, closers);
    const livekit = await startBeforeLiveKit(settings.concurrency, closers);
    const echo = await startEcho(smallest, closers);
    const client = forked("adapter-load-client.ts", closers);
    const places = { echo, smallest, livekit };
    const measured = {
      describe: await measure("describe", { places, client, settings, say }),
      ensure: await measure("ensure", { places, client, settings, say }),
    };
    const report = reportOf(measured, settings);
    console.log(JSON.stringify(report));
    const all = Object.values(measured).flatMap((byPlace) => [...byPlace.values()]);
    return all.every(({ failures, latenciesMs }) => failures === 0 && latenciesMs.length > 0)
      ? 0
      : 1;
  } finally {
    for (const close of closers.toReversed()) await close();
  }
}

function readSettings(): Settings | undefined {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "10" },
      concurrency: { type: "string", default: "32" },
      json: { type: "boolean", default: false },
    },
  });
  const seconds = Number(values.seconds);
  const concurrency = Number(values.concurrency);
  const problems = [
    seconds >= 1 && seconds <= secondsMax ? "" : `--seconds has to be from 1 to ${secondsMax}`,
    Number.isInteger(concurrency) && concurrency >= 1 && concurrency <= concurrencyMax
      ? ""
      : `--concurrency has to be a whole number from 1 to ${concurrencyMax}`,
  ].filter((problem) => problem !== "");
  for (const problem of problems) console.error(problem);
  return problems.length > 0 ? undefined : { seconds, concurrency, isJsonOnly: values.json };
}

type PlaceName = "echo" | "smallest" | "livekit";
type MeasuredPlaces = ReadonlyMap<PlaceName, Measured>;

interface Run {
  readonly places: Readonly<Record<PlaceName, Place>>;
  readonly client: ChildProcess;
  readonly settings: Settings;
  readonly say: (line: string) => void;
}

const placeNames: readonly PlaceName[] = ["echo", "smallest", "livekit"];

async function measure(rpc: LoadedRpc, run: Run): Promise<MeasuredPlaces> {
  const { places, client, settings, say } = run;
  const measured = new Map<PlaceName, Measured>(
    placeNames.map((name) => [name, { latenciesMs: [], seconds: 0, cpuMs: 0, failures: 0 }]),
  );
  say(`asking for ${rpc}`);
  for (const name of placeNames) await slice(client, places[name], rpc, warmUpSeconds);
  for (let round = 0; round < slices; round += 1) {
    for (const [name, sum] of measured) {
      const place = places[name];
      const beforeMs = await cpuMsOf(place.pid);
      const seconds = settings.seconds / slices;
      const result = await slice(client, place, rpc, seconds);
      sum.cpuMs += (await cpuMsOf(place.pid)) - beforeMs;
      sum.seconds += result.seconds;
      for (const ms of result.latenciesMs) sum.latenciesMs.push(ms);
      for (const [status, count] of result.failures) {
        sum.failures += count;
        say(`${count} calls of ${name} ended with ${status}`);
      }
    }
  }
  return measured;
}

function slice(
  client: ChildProcess,
  place: Place,
  rpc: LoadedRpc,
  seconds: number,
): Promise<LoadResult> {
  const task: LoadTask = { port: place.port, ...place.requests[rpc], seconds };
  client.send(task);
  return nextMessage<LoadResult>(client, seconds * 1_000 + 60_000);
}

/** User and system time of a process so far. */
async function cpuMsOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8");
  // The name, in parentheses, may hold spaces.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / clockTicksPerSecond;
}

function reportOf(
  measured: Readonly<Record<LoadedRpc, MeasuredPlaces>>,
  { seconds, concurrency }: Settings,
): object {
  const figures = (rpc: LoadedRpc, name: PlaceName): Figures => figuresOf(measured[rpc].get(name));
  const compared = (rpc: LoadedRpc, name: PlaceName): Compared => {
    const own = figures(rpc, name);
    return { ...own, ratio: round(own.callsPerSecond / figures(rpc, "echo").callsPerSecond) };
  };
  const vendor = (name: PlaceName) => ({
    describe: compared("describe", name),
    ensure: compared("ensure", name),
  });
  const smallest = vendor("smallest");
  return {
    seconds,
    concurrency,
    echo: figures("describe", "echo"),
    ...smallest,
    adapterCpuMsPerCall: round((smallest.describe.cpuMsPerCall + smallest.ensure.cpuMsPerCall) / 2),
    echoOfEnsure: figures("ensure", "echo"),
    livekit: vendor("livekit"),
  };
}

function figuresOf(measured: Measured | undefined): Figures {
  const { latenciesMs, seconds, cpuMs, failures } = measured ?? {
    latenciesMs: [],
    seconds: 1,
    cpuMs: 0,
    failures: 0,
  };
  const sorted = latenciesMs.toSorted((left, right) => left - right);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
  return {
    callsPerSecond: Math.round(sorted.length / seconds),
    p50Ms: round(at(0.5)),
    p99Ms: round(at(0.99)),
    cpuMsPerCall: round(cpuMs / Math.max(sorted.length, 1)),
    failures,
  };
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

process.exitCode = await main();
