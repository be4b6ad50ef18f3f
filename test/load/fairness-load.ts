/**
 * `npm run load:fairness -- [--objects 200] [--stuck 500] [--rounds 2] [--json]`: how long objects take
 * to be Ready beside so many others whose vendor, or whose account at the same vendor, never answers,
 * as a multiple of what they take alone in the same run. The last line is one
 * JSON object. Loopback only, bounded in count and time.
 */
import { parseArgs } from "node:util";

import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";
import { LoadObjects } from "./load-objects.ts";

const countMax = 5_000;
const roundsMax = 20;
/** For the hung ones to take whatever they are going to take. */
const settleMs = 3_000;

type Spec = Readonly<Record<string, unknown>>;

/** What is measured beside objects of ElevenLabs' account "default" that hang. */
interface Contest {
  readonly name: "vendor" | "account";
  readonly measured: Spec;
}

interface Settings {
  readonly objects: number;
  readonly stuck: number;
  readonly rounds: number;
  readonly isJsonOnly: boolean;
}

/** Seconds until all were Ready, per round. */
interface Outcome {
  readonly aloneSeconds: readonly number[];
  readonly besideSeconds: readonly number[];
  /** Of the sums. */
  readonly ratio: number;
}

const ours = { endpoint: elevenLabsEndpoint, region: "global", className: "elevenlabs" };
const contests: readonly Contest[] = [
  { name: "vendor", measured: {} },
  { name: "account", measured: { ...ours, className: "elevenlabs-other" } },
];

async function main(): Promise<number> {
  const settings = readSettings();
  if (settings === undefined) return 2;
  const say = (line: string): void => {
    if (!settings.isJsonOnly) console.log(line);
  };
  const stack = await startStack({
    withElevenLabs: {},
    onProgress: (what) => say(`starting ${what}`),
  });
  try {
    await stack.applyElevenLabsClass("elevenlabs-other", { account: "other" });
    const outcomes = await compareAll(stack, settings, say);
    const { objects, stuck, rounds } = settings;
    console.log(JSON.stringify({ objects, stuck, rounds, ...outcomes }));
    return 0;
  } finally {
    await stack.stop();
  }
}

/** First all alone, then all beside those that hang, which stay until the end. */
async function compareAll(
  stack: Stack,
  settings: Settings,
  say: (line: string) => void,
): Promise<Readonly<Record<string, Outcome>>> {
  const alone = await measureAll(stack, "alone", settings, say);
  const stuck = await LoadObjects.open(stack, specsOf("stuck", settings.stuck, ours));
  try {
    await hangOurs(stack);
    await stuck.sendAll();
    say(`${settings.stuck} hang`);
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    const beside = await measureAll(stack, "beside", settings, say);
    return Object.fromEntries(
      contests.map(({ name }) => {
        const aloneSeconds = alone.get(name) ?? [];
        const besideSeconds = beside.get(name) ?? [];
        const ratio = round2(sum(besideSeconds) / sum(aloneSeconds));
        return [name, { aloneSeconds, besideSeconds, ratio }];
      }),
    );
  } finally {
    await stuck.close();
  }
}

/** Seconds per round, by contest. */
async function measureAll(
  stack: Stack,
  how: string,
  { objects, rounds }: Settings,
  say: (line: string) => void,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const seconds = new Map<string, readonly number[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, measured } of contests) {
      const specs = specsOf(`${name}-${how}-${round}`, objects, measured);
      const took = await secondsUntilReady(stack, specs);
      say(`${name}, ${how}: ${took} s`);
      seconds.set(name, [...(seconds.get(name) ?? []), took]);
    }
  }
  return seconds;
}

/** All calls of account "default", and no other's. */
async function hangOurs(stack: Stack): Promise<void> {
  const effect = { kind: "hang" };
  await stack.elevenLabs.script({ do: "fault", userId: "user-1", times: 10_000, effect });
}

/** Creates them, waits until all are Ready, and deletes them; the wait's seconds. */
async function secondsUntilReady(stack: Stack, specs: ReadonlyMap<string, Spec>): Promise<number> {
  const objects = await LoadObjects.open(stack, specs);
  try {
    const { seconds } = await objects.createAll();
    await objects.deleteAll();
    return round2(seconds);
  } finally {
    await objects.close();
  }
}

function specsOf(prefix: string, count: number, spec: Spec): ReadonlyMap<string, Spec> {
  return new Map(Array.from({ length: count }, (_, index) => [`${prefix}-${index}`, spec]));
}

function readSettings(): Settings | undefined {
  const { values } = parseArgs({
    options: {
      objects: { type: "string", default: "200" },
      stuck: { type: "string", default: "500" },
      rounds: { type: "string", default: "2" },
      json: { type: "boolean", default: false },
    },
  });
  const [objects, stuck, rounds] = [values.objects, values.stuck, values.rounds].map(Number);
  const isWhole = (value: number | undefined, max: number): value is number =>
    Number.isInteger(value) && (value ?? 0) >= 1 && (value ?? 0) <= max;
  if (isWhole(objects, countMax) && isWhole(stuck, countMax) && isWhole(rounds, roundsMax)) {
    return { objects, stuck, rounds, isJsonOnly: values.json };
  }
  console.error(
    `want whole numbers: --objects and --stuck from 1 to ${countMax}, --rounds from 1 to ${roundsMax}`,
  );
  return undefined;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function round2(value: number): number {
  return Math.round(value * 100) / 100;
}

process.exitCode = await main();
