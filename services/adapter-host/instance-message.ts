/** Instances as adapters find them, to messages of the contract. Pure. */
import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Duration } from "@bufbuild/protobuf/wkt";

import {
  Availability,
  Billing,
  InstanceSchema,
  State,
} from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Instance } from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { redactText } from "../process/redaction.ts";
import type { FieldChange, FoundInstance, FoundUsage, Quota, Stamp } from "./adapter.ts";
import { isOwnedByCluster } from "./stamp.ts";

/** What surrounds an instance in an answer. */
export interface InstanceContext {
  readonly realm: string;
  readonly nowMs: number;
  /** The stamp that was asked for: fills in what the vendor's short field could not hold. */
  readonly asked?: Stamp;
  readonly drift?: readonly FieldChange[];
}

/** One instance as the contract shows it. */
export function instanceMessage(found: FoundInstance, context: InstanceContext): Instance {
  const { realm, nowMs, asked, drift = [] } = context;
  const stamp = fullStamp(found.stamp, asked);
  return create(InstanceSchema, {
    providerId: found.id,
    realm,
    stamp: stamp?.short ?? "",
    instanceKey: stamp?.key ?? "",
    owner: { cluster: stamp?.cluster ?? "", uid: stamp?.uid ?? "" },
    state: states[found.state],
    ...(found.action === undefined ? {} : { action: found.action }),
    observed: {
      ...(found.displayName === undefined ? {} : { displayName: found.displayName }),
      parameters: { ...found.parameters },
      ...(found.quota === undefined ? {} : { quota: quotaMessage(found.quota) }),
    },
    specHash: stamp?.specHash ?? "",
    drift: drift.map(({ field, want, have }) => ({
      field,
      ...(want === undefined ? {} : { want }),
      ...(have === undefined ? {} : { have }),
    })),
    health: {
      availability: availabilities[found.availability],
      billing: found.billing === undefined ? Billing.UNSPECIFIED : billings[found.billing],
      message: redactText(found.message ?? ""),
      observedAt: timestampFromMs(nowMs),
    },
    ...(found.usage === undefined ? {} : { usage: usageMessage(found.usage) }),
    ...(found.createdAtMs === 0 ? {} : { createdAt: timestampFromMs(found.createdAtMs) }),
  });
}

/** Whole milliseconds as a Duration; nothing where there is nothing to wait for. */
export function pollAfterField(ms: number | undefined): { pollAfter?: Duration } {
  return ms === undefined ? {} : { pollAfter: durationFromMs(Math.ceil(ms)) };
}

function fullStamp(stamp: Stamp | undefined, asked: Stamp | undefined): Stamp | undefined {
  if (stamp === undefined || asked === undefined) return stamp;
  if (stamp.keyShort !== asked.keyShort) return stamp;
  const isSameCluster = isOwnedByCluster(stamp, asked.cluster);
  return {
    ...stamp,
    key: stamp.key === "" ? asked.key : stamp.key,
    cluster: stamp.cluster === "" && isSameCluster ? asked.cluster : stamp.cluster,
  };
}

const states: Readonly<Record<FoundInstance["state"], State>> = {
  PROVISIONING: State.PROVISIONING,
  READY: State.READY,
  AWAITING_HUMAN: State.AWAITING_HUMAN,
  FAILED: State.FAILED,
  DELETING: State.DELETING,
};

const availabilities: Readonly<Record<FoundInstance["availability"], Availability>> = {
  AVAILABLE: Availability.AVAILABLE,
  DEGRADED: Availability.DEGRADED,
  UNAVAILABLE: Availability.UNAVAILABLE,
  UNKNOWN: Availability.UNKNOWN,
};

const billings: Readonly<Record<NonNullable<FoundInstance["billing"]>, Billing>> = {
  CURRENT: Billing.CURRENT,
  OVERDUE: Billing.OVERDUE,
  EXHAUSTED: Billing.EXHAUSTED,
};

function quotaMessage(quota: Quota): { readonly [name in keyof Quota]: bigint } {
  return {
    ...whole("maxConcurrency", quota.maxConcurrency),
    ...whole("dailyCalls", quota.dailyCalls),
    ...whole("monthlyCredits", quota.monthlyCredits),
  };
}

function usageMessage({ calls, concurrency, credits }: FoundUsage): object {
  return {
    ...(calls === undefined
      ? {}
      : {
          calls: {
            ...whole("used", calls.used),
            ...whole("limit", calls.limit),
            ...instant("resetsAt", calls.resetsAtMs),
          },
        }),
    ...(concurrency === undefined
      ? {}
      : {
          concurrency: {
            ...whole("used", concurrency.used),
            ...whole("limit", concurrency.limit),
          },
        }),
    ...(credits === undefined
      ? {}
      : {
          credits: {
            ...whole("remaining", credits.remaining),
            ...whole("limit", credits.limit),
            ...instant("expiresAt", credits.expiresAtMs),
          },
        }),
  };
}

/** Absent stays absent: it is not zero. Vendors count in fractions; the contract in whole numbers. */
function whole(name: string, value: number | undefined): Readonly<Record<string, bigint>> {
  return value === undefined ? {} : { [name]: BigInt(Math.floor(value)) };
}

function instant(name: string, ms: number | undefined): object {
  return ms === undefined ? {} : { [name]: timestampFromMs(ms) };
}
