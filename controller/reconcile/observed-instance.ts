/** What a vendor instance was last seen as: the parts of the contract's Instance that conditions read. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { Availability, Billing, State } from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type {
  Drift,
  Instance,
  InstanceSpec,
  Usage,
} from "../../proto/gen/dhp/provider/v1/instance_pb.ts";

export interface ObservedInstance {
  readonly providerID: string;
  readonly realm: string;
  readonly state: "PROVISIONING" | "READY" | "AWAITING_HUMAN" | "FAILED" | "DELETING" | "UNKNOWN";
  readonly availability: "AVAILABLE" | "DEGRADED" | "UNAVAILABLE" | "UNKNOWN";
  readonly billing: "CURRENT" | "OVERDUE" | "EXHAUSTED" | "UNKNOWN";
  readonly isRateLimited: boolean;
  readonly rateLimitedUntilMs?: number;
  readonly message: string;
  readonly action?: { readonly text: string; readonly url: string };
  readonly drift: readonly DriftedField[];
  readonly usage: ObservedUsage;
  /** As the vendor shows it; absent members are not shown. */
  readonly observedSpec?: ObservedSpec;
  /** When the vendor was read, adapter's time, epoch ms. */
  readonly observedAtMs?: number;
}

export interface ObservedSpec {
  readonly displayName?: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly quota: {
    readonly maxConcurrency?: number;
    readonly dailyCalls?: number;
    readonly monthlyCredits?: number;
  };
}

export interface DriftedField {
  readonly field: string;
  readonly want?: string;
  readonly have?: string;
}

/** As it stands in status.usage; counts are numbers, times RFC 3339. */
export interface ObservedUsage {
  readonly calls?: Readonly<Record<string, number | string>>;
  readonly concurrency?: Readonly<Record<string, number | string>>;
  readonly credits?: Readonly<Record<string, number | string>>;
}

/** Unknown enum values of a newer adapter are read as "UNKNOWN". */
export function observeInstance(instance: Instance): ObservedInstance {
  const { health, action } = instance;
  const untilMs = timeMs(health?.rateLimited?.until);
  const observedAtMs = timeMs(health?.observedAt);
  return {
    providerID: instance.providerId,
    realm: instance.realm,
    state: states.get(instance.state) ?? "UNKNOWN",
    availability: availabilities.get(health?.availability ?? Availability.UNKNOWN) ?? "UNKNOWN",
    billing: billings.get(health?.billing ?? Billing.UNSPECIFIED) ?? "UNKNOWN",
    isRateLimited: health?.rateLimited !== undefined,
    ...(untilMs === undefined ? {} : { rateLimitedUntilMs: untilMs }),
    message: health?.message ?? "",
    ...(action === undefined ? {} : { action: { text: action.text, url: action.url } }),
    drift: instance.drift.map(driftedField),
    usage: instance.usage === undefined ? {} : observeUsage(instance.usage),
    ...(instance.observed === undefined ? {} : { observedSpec: observeSpec(instance.observed) }),
    ...(observedAtMs === undefined ? {} : { observedAtMs }),
  };
}

function observeSpec({ displayName, parameters, quota }: InstanceSpec): ObservedSpec {
  const whole = (name: "maxConcurrency" | "dailyCalls" | "monthlyCredits"): object => {
    const value = quota?.[name];
    return value === undefined ? {} : { [name]: Number(value) };
  };
  return {
    ...(displayName === undefined ? {} : { displayName }),
    parameters: { ...parameters },
    quota: { ...whole("maxConcurrency"), ...whole("dailyCalls"), ...whole("monthlyCredits") },
  };
}

const states: ReadonlyMap<State, ObservedInstance["state"]> = new Map([
  [State.PROVISIONING, "PROVISIONING"],
  [State.READY, "READY"],
  [State.AWAITING_HUMAN, "AWAITING_HUMAN"],
  [State.FAILED, "FAILED"],
  [State.DELETING, "DELETING"],
]);

const availabilities: ReadonlyMap<Availability, ObservedInstance["availability"]> = new Map([
  [Availability.AVAILABLE, "AVAILABLE"],
  [Availability.DEGRADED, "DEGRADED"],
  [Availability.UNAVAILABLE, "UNAVAILABLE"],
]);

const billings: ReadonlyMap<Billing, ObservedInstance["billing"]> = new Map([
  [Billing.CURRENT, "CURRENT"],
  [Billing.OVERDUE, "OVERDUE"],
  [Billing.EXHAUSTED, "EXHAUSTED"],
]);

function driftedField(drift: Drift): DriftedField {
  return {
    field: drift.field,
    ...(drift.want === undefined ? {} : { want: drift.want }),
    ...(drift.have === undefined ? {} : { have: drift.have }),
  };
}

function observeUsage(usage: Usage): ObservedUsage {
  const { calls, concurrency, credits } = usage;
  return {
    ...(calls === undefined
      ? {}
      : { calls: present({ used: calls.used, limit: calls.limit, resetsAt: calls.resetsAt }) }),
    ...(concurrency === undefined
      ? {}
      : { concurrency: present({ used: concurrency.used, limit: concurrency.limit }) }),
    ...(credits === undefined
      ? {}
      : {
          credits: present({
            remaining: credits.remaining,
            limit: credits.limit,
            expiresAt: credits.expiresAt,
          }),
        }),
  };
}

function present(
  fields: Readonly<Record<string, bigint | Timestamp | undefined>>,
): Readonly<Record<string, number | string>> {
  const values: Record<string, number | string> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    values[name] =
      typeof value === "bigint" ? Number(value) : new Date(timestampMs(value)).toISOString();
  }
  return values;
}

function timeMs(timestamp: Timestamp | undefined): number | undefined {
  return timestamp === undefined ? undefined : timestampMs(timestamp);
}
