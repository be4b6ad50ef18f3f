/** The status as it should stand after a pass. Pure; only its difference is ever sent. */
import type { ClassChoice } from "../resource/class-choice.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import type { JsonObject } from "../resource/json-door.ts";
import { isSamePlace, placementToJson } from "../resource/placement.ts";
import type { Placement } from "../resource/placement.ts";
import { conditionsOf, isWaitStanding, observedGenerationOf } from "./conditions.ts";
import type { ConditionInput } from "./conditions.ts";
import { seenIn } from "./health-overlay.ts";
import { roundedUsage } from "./usage.ts";

/** `undefined` fields are taken away. */
export function nextStatus(input: ConditionInput, choice: ClassChoice): JsonObject {
  const { object, record, outcome } = input;
  const until = rateLimitedUntil(input);
  const seen = seenIn(outcome);
  const usage = seen === undefined ? object.rawStatus["usage"] : roundedUsage(seen.usage);
  return withoutEmpty({
    ...object.rawStatus,
    observedGeneration: observedGenerationOf(input),
    providerID: currentProviderID(record, choice) || undefined,
    // Without a choice nothing is pinned: what was chosen for another spec must not stick.
    className: choice.kind === "chosen" ? choice.class.name : undefined,
    account: (choice.kind === "chosen" && choice.class.account) || undefined,
    placements: record.length === 0 ? undefined : record.map(placementToJson),
    usage: isEmpty(usage) ? undefined : usage,
    rateLimitedUntil: until,
    conditions: conditionsOf(input),
  });
}

/** The status with another record and nothing else changed. */
export function statusWithRecord(
  object: DigitalHumanProvider,
  record: readonly Placement[],
): JsonObject {
  return withoutEmpty({
    ...object.rawStatus,
    placements: record.length === 0 ? undefined : record.map(placementToJson),
  });
}

/** The id at the wanted place, else that of the place which still serves. */
function currentProviderID(record: readonly Placement[], choice: ClassChoice): string {
  const wanted =
    choice.kind === "chosen"
      ? record.find((placement) => isSamePlace(placement, choice.place))
      : undefined;
  if (wanted !== undefined && wanted.providerID !== "") return wanted.providerID;
  return record.find((placement) => placement.providerID !== "")?.providerID ?? "";
}

function rateLimitedUntil(input: ConditionInput): string | undefined {
  const { outcome, object, nowMs } = input;
  if (isWaitStanding(input) && !("failure" in outcome)) return object.status.rateLimitedUntil;
  const seen = seenIn(outcome);
  if (seen !== undefined) {
    const untilMs = seen.rateLimitedUntilMs;
    return untilMs === undefined || untilMs <= nowMs ? undefined : wholeSecond(untilMs);
  }
  const failure = "failure" in outcome ? outcome.failure : undefined;
  if (failure?.condition === "RateLimited") {
    return failure.retryAtMs === undefined ? undefined : wholeSecond(failure.retryAtMs);
  }
  return object.status.rateLimitedUntil;
}

/** Rounded up: an attempt a moment early is an attempt too many. */
function wholeSecond(ms: number): string {
  return new Date(Math.ceil(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");
}

function isEmpty(value: unknown): boolean {
  return (
    value === undefined ||
    (typeof value === "object" && value !== null && Object.keys(value).length === 0)
  );
}

function withoutEmpty(status: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(Object.entries(status).filter(([, value]) => value !== undefined));
}
