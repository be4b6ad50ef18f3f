/** The vendor's record of an instance, and our message made of it. */
import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  Availability,
  Billing,
  InstanceSchema,
  State,
} from "../../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type {
  HealthSchema,
  Instance,
  QuotaSchema,
  UsageSchema,
} from "../../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { normalised } from "./parameters.ts";
import { stampIn } from "./stamp.ts";
import type { Stamp, Tags } from "./stamp.ts";
import type { quotaFields } from "./differences.ts";
import type { Difference } from "./differences.ts";
import type { World } from "./world.ts";

/** What we write. */
export interface RecordFields {
  readonly name: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly tags: Tags;
  /** Names of quota fields; what is absent is no limit. */
  readonly limits: Readonly<Record<string, number>>;
}

export interface VendorRecord extends RecordFields {
  readonly id: string;
  readonly stamp: Stamp | undefined;
  readonly createdAtMs: number;
  readonly works: boolean;
  readonly state: string;
  readonly confirmUrl: string;
  readonly billing: string;
  readonly streams: number | undefined;
  readonly streamsMax: number | undefined;
  readonly calls: number | undefined;
  readonly callsResetAtMs: number | undefined;
}

// A number that the enum does not have: what a mutant may send.
const inventedState = 99 as State;

const states: Readonly<Record<string, State>> = {
  making: State.PROVISIONING,
  active: State.READY,
  waiting: State.AWAITING_HUMAN,
  deleting: State.DELETING,
};

const billings: Readonly<Record<string, Billing>> = {
  current: Billing.CURRENT,
  overdue: Billing.OVERDUE,
  exhausted: Billing.EXHAUSTED,
};

/** undefined: it is no instance. */
export function recordOf(json: unknown): VendorRecord | undefined {
  if (typeof json !== "object" || json === null) return undefined;
  const fields: Readonly<Record<string, unknown>> = { ...json };
  const { id, name, created_at_ms: createdAtMs, state } = fields;
  if (typeof id !== "string" || typeof name !== "string") return undefined;
  if (typeof createdAtMs !== "number" || typeof state !== "string") return undefined;
  const usage = numbersIn(fields["usage"]);
  const tags = textsIn(fields["tags"]);
  return {
    id,
    name,
    createdAtMs,
    state,
    tags,
    stamp: stampIn(tags),
    parameters: textsIn(fields["parameters"]),
    limits: numbersIn(fields["limits"]),
    works: fields["works"] === true,
    confirmUrl: typeof fields["confirm_url"] === "string" ? fields["confirm_url"] : "",
    billing: String(fields["billing"]),
    streams: usage["streams"],
    streamsMax: usage["streams_max"],
    calls: usage["calls"],
    callsResetAtMs: usage["calls_reset_at_ms"],
  };
}

/** The oldest first. */
export function byAge(a: VendorRecord, b: VendorRecord): number {
  return a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1);
}

export function instanceOf(
  { mutations, capabilities }: World,
  record: VendorRecord,
  { realm, drift }: { readonly realm: string; readonly drift: readonly Difference[] },
): Instance {
  const { stamp } = record;
  const readState = states[record.state] ?? State.UNSPECIFIED;
  const state = mutations.has("always-ready") ? State.READY : readState;
  const isWaiting = state === State.AWAITING_HUMAN && !mutations.has("human-without-action");
  return create(InstanceSchema, {
    providerId: record.id,
    realm,
    stamp: stamp?.short ?? "",
    instanceKey: stamp?.key ?? "",
    owner: { cluster: stamp?.cluster ?? "", uid: stamp?.uid ?? "" },
    state: mutations.has("state-of-its-own") ? inventedState : state,
    ...(isWaiting ? { action: { text: "confirm it at the vendor", url: record.confirmUrl } } : {}),
    observed: {
      displayName: record.name,
      parameters: normalised(record.parameters, mutations),
      ...quotaOf(record, mutations.has("absent-is-zero")),
    },
    specHash: stamp?.specHash ?? "",
    drift: drift.map((one) => ({ ...one })),
    health: healthOf(record, mutations.has("hides-billing")),
    ...(capabilities.includes("USAGE") ? { usage: usageOf(record) } : {}),
    createdAt: timestampFromMs(record.createdAtMs),
  });
}

function healthOf(
  { works, billing }: VendorRecord,
  isBillingHidden: boolean,
): MessageInitShape<typeof HealthSchema> {
  return {
    availability: works ? Availability.AVAILABLE : Availability.UNAVAILABLE,
    billing: isBillingHidden ? Billing.CURRENT : (billings[billing] ?? Billing.UNSPECIFIED),
    message: works ? "" : "the vendor says that it does not work",
    observedAt: timestampFromMs(Date.now()),
  };
}

function usageOf(record: VendorRecord): MessageInitShape<typeof UsageSchema> {
  const { streams, streamsMax, calls, callsResetAtMs } = record;
  const used = streams === undefined ? {} : { used: BigInt(streams) };
  const limit = streamsMax === undefined ? {} : { limit: BigInt(streamsMax) };
  const made = calls === undefined ? {} : { used: BigInt(calls) };
  const reset = callsResetAtMs === undefined ? {} : { resetsAt: timestampFromMs(callsResetAtMs) };
  return { concurrency: { ...used, ...limit }, calls: { ...made, ...reset } };
}

function quotaOf(
  { limits }: VendorRecord,
  isZero: boolean,
): { readonly quota: MessageInitShape<typeof QuotaSchema> } {
  const read = (name: (typeof quotaFields)[number]): MessageInitShape<typeof QuotaSchema> => {
    const limit = limits[name] ?? (isZero ? 0 : undefined);
    return limit === undefined ? {} : { [name]: BigInt(limit) };
  };
  return { quota: { ...read("maxConcurrency"), ...read("dailyCalls"), ...read("monthlyCredits") } };
}

function textsIn(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(Object.entries(value).map(([name, text]) => [name, String(text)]));
}

function numbersIn(value: unknown): Readonly<Record<string, number>> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(Object.entries(value).map(([name, count]) => [name, Number(count)]));
}
