/**
 * `npm run load:health -- [--instances 1000] [--json]`: how soon a change at a vendor stands in status.
 * Two vendors (two emulators of ElevenLabs with an adapter each, 20 ms an answer), half of the
 * instances each; times are from the change at the vendor to its sight in a watch of the objects.
 * The last line is one JSON object. Loopback only, bounded in count and time.
 */
import { parseArgs } from "node:util";
import { elevenLabsEndpoint, startElevenLabs } from "../support/elevenlabs.ts";
import type { ElevenLabs } from "../support/elevenlabs.ts";
import { httpGet, metricValue } from "../support/http-get.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";
import { systemClock } from "../../services/process/clock.ts";
import { HealthWatcher } from "./health-watcher.ts";
import { LoadObjects, openConnection } from "./load-objects.ts";

const instancesMax = 5_000;
const answerMs = 20;
const steadyMsDefault = 60_000;
const seenMsMax = 60_000;
/** So many are broken and mended one by one. */
const editedMax = 100;

interface Times {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Report {
  readonly instances: number;
  readonly changes: Readonly<Record<string, Times>>;
  readonly vendorCallsPerSecond: number;
  readonly statusWritesSteady: number;
  readonly statusWritesPerTransition: number;
  readonly controllerCpuPercent: number;
  readonly adapterCpuPercent: number;
}

interface Run {
  readonly stack: Stack;
  readonly vendors: readonly [ElevenLabs, ElevenLabs];
  readonly watcher: HealthWatcher;
  /** All names, and those at the first vendor. */
  readonly names: readonly string[];
  readonly first: readonly string[];
  readonly say: (line: string) => void;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      instances: { type: "string", default: "1000" },
      "steady-seconds": { type: "string", default: `${steadyMsDefault / 1_000}` },
      json: { type: "boolean", default: false },
    },
  });
  const count = Number(values.instances);
  const steadyMs = Number(values["steady-seconds"]) * 1_000;
  if (!Number.isInteger(count) || count < 2 || count > instancesMax || !(steadyMs > 0)) {
    console.error(`--instances: want a whole number from 2 to ${instancesMax}`);
    return 2;
  }
  const say = (line: string): void => {
    if (!values.json) console.log(line);
  };
  const flags = ["--resync", "1h"];
  const options = { answerMs };
  const stack = await startStack({
    controllerFlags: flags,
    withElevenLabs: options,
    onProgress: (what) => say(`starting ${what}`),
  });
  const second = await startElevenLabs(options);
  try {
    await stack.applyClass("second", { adapter: { address: second.address }, endpointHosts: [] });
    const report = await measure({ stack, second, count, steadyMs, say });
    console.log(values.json ? JSON.stringify(report) : report);
    return report.statusWritesSteady === 0 ? 0 : 1;
  } finally {
    await second.stop();
    await stack.stop();
  }
}

async function measure(given: {
  readonly stack: Stack;
  readonly second: ElevenLabs;
  readonly count: number;
  readonly steadyMs: number;
  readonly say: (line: string) => void;
}): Promise<Report> {
  const { stack, second, count, steadyMs, say } = given;
  const names = Array.from({ length: count }, (_, at) => `voice-${at}`);
  const first = names.slice(0, count / 2);
  const specs = new Map(names.map((name, at) => [name, specOf(at < first.length)]));
  const objects = await LoadObjects.open(stack, specs);
  const connection = openConnection(stack);
  const watcher = await HealthWatcher.open(connection);
  try {
    const { seconds } = await objects.createAll();
    say(`${count} instances Ready after ${seconds.toFixed(1)} s`);
    const run: Run = { stack, vendors: [stack.elevenLabs, second], watcher, names, first, say };
    // Until every answer of a create is old enough for the stream to be believed.
    await systemClock.sleep(15_000);
    const steady = await steadyState(run, steadyMs);
    const before = await statusWrites(run);
    const { changes, transitions } = await allChanges(run);
    const statusWritesPerTransition = ((await statusWrites(run)) - before) / transitions;
    return { instances: count, changes, ...steady, statusWritesPerTransition };
  } finally {
    await watcher.close();
    await objects.close();
    await connection.close();
  }
}

function specOf(isFirst: boolean): Readonly<Record<string, unknown>> {
  return {
    endpoint: elevenLabsEndpoint,
    region: "global",
    className: isFirst ? "elevenlabs" : "second",
    driftPolicy: "Observe",
  };
}

/** What goes on while nothing happens. */
async function steadyState(
  run: Run,
  steadyMs: number,
): Promise<
  Pick<
    Report,
    "vendorCallsPerSecond" | "statusWritesSteady" | "controllerCpuPercent" | "adapterCpuPercent"
  >
> {
  run.say(`looking at ${steadyMs / 1_000} s in which nothing happens`);
  const before = await snapshot(run);
  await systemClock.sleep(steadyMs);
  const after = await snapshot(run);
  const seconds = (after.atMs - before.atMs) / 1_000;
  return {
    vendorCallsPerSecond: round((after.vendorCalls - before.vendorCalls) / seconds),
    statusWritesSteady: after.writes - before.writes,
    controllerCpuPercent: round(((after.controllerCpu - before.controllerCpu) / seconds) * 100),
    adapterCpuPercent: round(((after.adapterCpu - before.adapterCpu) / seconds) * 100),
  };
}

async function snapshot(run: Run): Promise<{
  readonly atMs: number;
  readonly vendorCalls: number;
  readonly writes: number;
  readonly controllerCpu: number;
  readonly adapterCpu: number;
}> {
  const [first] = run.vendors;
  const cpu = "process_cpu_seconds_total";
  const [controller, adapter] = await Promise.all([
    metrics(run.stack.controller.ports.adminPort),
    metrics(first.adapter.ports.adminPort),
  ]);
  const calls = await Promise.all(
    run.vendors.map(async (vendor) => {
      const text = await metrics(vendor.adapter.ports.adminPort);
      return metricValue(text, "dhp_vendor_request_total");
    }),
  );
  return {
    atMs: performance.now(),
    vendorCalls: calls.reduce((sum, one) => sum + one, 0),
    writes: await statusWrites(run),
    controllerCpu: metricValue(controller, cpu),
    adapterCpu: metricValue(adapter, cpu),
  };
}

async function allChanges(run: Run): Promise<{
  readonly changes: Readonly<Record<string, Times>>;
  readonly transitions: number;
}> {
  const { vendors, first, watcher } = run;
  const [vendor] = vendors;
  const changes: Record<string, Times> = {};
  let transitions = 0;
  const time = async (
    name: string,
    names: readonly string[],
    change: () => Promise<unknown>,
    expected: readonly [type: string, status: string, reason?: string],
  ): Promise<void> => {
    const [type, status, reason] = expected;
    const isSeen = (one: string): boolean => {
      const seen = watcher.condition(one, type);
      return seen?.status === status && (reason === undefined || seen.reason === reason);
    };
    const times = await watcher.timeUntil(names, { change, isSeen, limitMs: seenMsMax });
    transitions += names.length;
    changes[name] = { p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) };
    run.say(`${name}: ${JSON.stringify(changes[name])} for ${names.length}`);
  };
  const edited = first.slice(0, editedMax);
  const ids = new Map(
    (await vendor.agents()).map((agent) => [agent.tags.join(" "), agent.id] as const),
  );
  const idOf = (name: string): string =>
    [...ids].find(
      ([tags]) => tags.includes(`/default/${name} `) || tags.endsWith(`/default/${name}`),
    )?.[1] ?? "";
  const archive = (archived: boolean) => (): Promise<unknown> =>
    vendor.script(
      ...edited.map((name) => ({
        do: "edit-agent",
        agentId: idOf(name),
        fields: { platform_settings: { archived } },
      })),
    );
  const subscription = (fields: object) => (): Promise<unknown> =>
    vendor.script({ do: "subscription", workspace: "global", fields });
  await time("dead", edited, archive(true), ["Available", "False"]);
  await time("alive", edited, archive(false), ["Available", "True"]);
  await time("overdue", first, subscription({ status: "past_due" }), ["BillingOverdue", "True"]);
  await time("paid", first, subscription({ status: "active" }), ["BillingOverdue", "False"]);
  const spent = { character_count: 500_000, can_extend_character_limit: false };
  await time("exhausted", first, subscription(spent), ["QuotaExceeded", "True"]);
  const refilled = { character_count: 1_200, can_extend_character_limit: true };
  await time("refilled", first, subscription(refilled), ["QuotaExceeded", "False"]);
  const limited = { kind: "error", name: "too_many_concurrent_requests" };
  const throttle = (): Promise<unknown> =>
    vendor.script({
      do: "fault",
      path: "^/v1/convai/agents$",
      times: 1,
      effect: { ...limited, headers: { "retry-after": "20" } },
    });
  await time("rateLimited", first, throttle, ["RateLimited", "True"]);
  await time("unlimited", first, async () => undefined, ["RateLimited", "False"]);
  const silence = (): Promise<unknown> =>
    vendor.script({ do: "fault", times: 10_000, effect: { kind: "hang" } });
  await time("stale", first, silence, ["Available", "Unknown", "HealthStale"]);
  await time("fresh", first, () => vendor.script({ do: "clear-faults" }), ["Available", "True"]);
  const { grpcPort = 0 } = vendor.adapter.ports;
  const dead = ["Available", "Unknown", "AdapterUnreachable"] as const;
  await time("adapterDead", first, () => vendor.adapter.kill(), dead);
  await time("adapterBack", first, () => vendor.startAdapter(grpcPort), ["Available", "True"]);
  return { changes, transitions };
}

async function statusWrites({ stack }: Run): Promise<number> {
  const text = await metrics(stack.controller.ports.adminPort);
  return metricValue(text, "dhp_api_writes_total");
}

async function metrics(port: number): Promise<string> {
  return (await httpGet(port, "/metrics")).text;
}

function quantile(sorted: readonly number[], share: number): number {
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

process.exitCode = await main();
