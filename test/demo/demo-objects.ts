/** The demo's samples, three rooms and two voices, and their table. */
import { setTimeout as delay } from "node:timers/promises";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import { livekitEndpoint } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

/** One line of the table. */
export interface Row {
  readonly name: string;
  readonly region: string;
  readonly providerID: string;
  readonly ready: string;
  readonly reason: string;
  readonly age: string;
  readonly generation: number;
  readonly observedGeneration: number;
}

const sampleSpecs: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "aliyun-tts": { region: "cn-hangzhou", displayName: "杭州文字转语音" },
  "morning-show": { region: "cn-shanghai", displayName: "Morning show" },
  "evening-gala": { region: "ap-southeast-1", parameters: { maxParticipants: "50" } },
  "news-voice": { endpoint: elevenLabsEndpoint, region: "global", displayName: "News voice" },
  "shop-voice": {
    endpoint: elevenLabsEndpoint,
    region: "global",
    parameters: { language: "en", firstMessage: "Welcome to the show." },
  },
};

const isVoice = (name: string): boolean => name.endsWith("-voice");
export const sampleNames: readonly string[] = Object.keys(sampleSpecs);
export const roomCount = sampleNames.filter((name) => !isVoice(name)).length;
export const voiceCount = sampleNames.filter(isVoice).length;

const refreshMs = 500;
const readyLimitMs = 120_000;

export async function applySamples(stack: Stack): Promise<void> {
  const items = Object.entries(sampleSpecs).map(([name, spec]) => ({
    apiVersion: "dhp.example.com/v1alpha1",
    kind: "DigitalHumanProvider",
    metadata: { name, namespace: "default" },
    spec: { endpoint: livekitEndpoint, ...spec },
  }));
  await stack.apply({ apiVersion: "v1", kind: "List", items });
}

export async function readRows(stack: Stack): Promise<readonly Row[]> {
  const json = expectDone(await stack.cluster.kubectl(["get", "dhp", "-A", "-o", "json"]));
  const list: { readonly items: readonly ListedObject[] } = JSON.parse(json);
  return list.items.map(rowOf);
}

interface ListedObject {
  readonly metadata: {
    readonly name: string;
    readonly generation: number;
    readonly creationTimestamp: string;
  };
  readonly spec: { readonly region: string };
  readonly status?: {
    readonly providerID?: string;
    readonly observedGeneration?: number;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
    }[];
  };
}

function rowOf({ metadata, spec, status }: ListedObject): Row {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return {
    name: metadata.name,
    region: spec.region,
    providerID: status?.providerID ?? "",
    ready: ready?.status ?? "",
    reason: ready?.reason ?? "",
    age: `${Math.max(0, Math.round((Date.now() - Date.parse(metadata.creationTimestamp)) / 1000))}s`,
    generation: metadata.generation,
    observedGeneration: status?.observedGeneration ?? 0,
  };
}

/** Shows the table until every object is Ready: redrawn in a terminal, plain lines elsewhere. */
export async function watchUntilReady(stack: Stack, signal: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + readyLimitMs;
  const table = new Table(process.stdout);
  while (!signal.aborted) {
    const rows = await readRows(stack);
    table.show(rows);
    if (rows.length > 0 && rows.every(({ ready }) => ready === "True")) return;
    if (performance.now() > deadlineMs) {
      throw new Error(
        `not all objects are Ready after ${readyLimitMs / 1000} s; see the table above`,
      );
    }
    await delay(refreshMs, undefined, { signal }).catch(() => undefined);
  }
}

class Table {
  readonly #output: NodeJS.WriteStream;
  #linesShown = 0;
  #last = "";

  constructor(output: NodeJS.WriteStream) {
    this.#output = output;
  }

  show(rows: readonly Row[]): void {
    const lines = formatTable(rows);
    if (this.#output.isTTY) {
      if (this.#linesShown > 0) this.#output.write(`\u001b[${this.#linesShown}A\u001b[J`);
      this.#output.write(`${lines.join("\n")}\n`);
      this.#linesShown = screenLines(lines, this.#output.columns);
      return;
    }
    // Age alone is no news.
    const news = formatTable(rows.map((row) => ({ ...row, age: "" }))).join("\n");
    if (news !== this.#last) this.#output.write(`${lines.join("\n")}\n`);
    this.#last = news;
  }
}

/** How many lines of a terminal they take: what is wider than it goes on in the next one. */
export function screenLines(lines: readonly string[], columns: number): number {
  const heights = lines.map((line) => Math.max(1, Math.ceil(line.length / Math.max(1, columns))));
  return heights.reduce((sum, height) => sum + height, 0);
}

export function formatTable(rows: readonly Row[]): readonly string[] {
  const cells = [
    ["NAME", "REGION", "PROVIDERID", "READY", "REASON", "AGE"],
    ...rows.map(({ name, region, providerID, ready, reason, age }) => [
      name,
      region,
      providerID || "-",
      ready || "-",
      reason || "-",
      age,
    ]),
  ];
  const widths = [0, 1, 2, 3, 4, 5].map((column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  );
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("   ")
      .trimEnd(),
  );
}
