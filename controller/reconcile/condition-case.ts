/** Situations that conditions are computed for, for tests. */
import assert from "node:assert/strict";
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { ProviderErrorFacts, Reason } from "../../services/contract/provider-error.ts";
import type { Condition } from "../resource/digital-human-provider.ts";
import type { JsonObject } from "../resource/json-door.ts";
import { endpointA, endpointB, objectWith, placementJson } from "../resource/object-fixture.ts";
import type { Place } from "../resource/placement.ts";
import { conditionsOf } from "./conditions.ts";
import type { ConditionInput, Outcome } from "./conditions.ts";
import { failureOf } from "./failure.ts";
import type { Failure } from "./failure.ts";
import { withHealth } from "./health-overlay.ts";
import { unwatched } from "./health-view.ts";
import type { HealthView } from "./health-view.ts";
import { ensuredAs } from "./outcome-fixture.ts";
import type { ObservedInstance } from "./observed-instance.ts";

export const nowMs = Date.UTC(2026, 0, 1, 12);
export const earlier = "2026-01-01T11:00:00Z";
const place: Place = { class: "a", endpoint: endpointA, region: "r", account: "" };

export interface Case {
  readonly outcome: Outcome;
  readonly generation?: number;
  readonly spec?: JsonObject;
  readonly before?: readonly JsonObject[];
  readonly observedGeneration?: number;
  readonly placements?: readonly JsonObject[];
  readonly isDeleting?: boolean;
  readonly hasNoPlace?: boolean;
  readonly provisioningMs?: number;
  readonly health?: HealthView;
  readonly scaleOutAtPercent?: number;
}

export function inputOf(given: Case): ConditionInput {
  const { generation = 1, before = [], placements = [], health, scaleOutAtPercent } = given;
  const object = objectWith({
    metadata: {
      generation,
      ...(given.isDeleting === true ? { deletionTimestamp: earlier } : {}),
    },
    ...(given.spec === undefined ? {} : { spec: given.spec }),
    status: {
      conditions: before,
      placements,
      observedGeneration: given.observedGeneration ?? 0,
    },
  });
  return {
    object,
    record: object.record,
    outcome: withHealth(given.outcome, health ?? unwatched),
    ...(health === undefined ? {} : { health }),
    ...(scaleOutAtPercent === undefined ? {} : { scaleOutAtPercent }),
    place: given.hasNoPlace === true ? undefined : place,
    removalWaits: new Map(),
    provisioningMs: given.provisioningMs ?? 600_000,
    nowMs,
  };
}

export function find(conditions: readonly Condition[], type: string): Condition {
  const condition = conditions.find((candidate) => candidate.type === type);
  assert.ok(condition, `there is no condition ${type}`);
  return condition;
}

export function condition(
  type: string,
  status: string,
  reason: string,
  observedGeneration = 1,
): JsonObject {
  return { type, status, reason, message: "", observedGeneration, lastTransitionTime: earlier };
}

export const wasReady = [
  condition("Ready", "True", "ProviderReady"),
  condition("Available", "True", "Available"),
];
export const wasUnknown = [
  condition("Ready", "Unknown", "EnsureFailed"),
  condition("Available", "Unknown", "EnsureFailed"),
];
export const wasMaking = [
  condition("Ready", "False", "Provisioning"),
  condition("Available", "False", "NotReady"),
  condition("Reconciling", "True", "Provisioning"),
];

export function failureBy(reason: Reason, facts: ProviderErrorFacts = {}): Failure {
  return failureOf(new ProviderError(reason, "no", facts), "ask", nowMs);
}
export const failed = (reason: Reason): Outcome => ({ kind: "failed", failure: failureBy(reason) });
/** The health stream shows the instance of `ensuredAs`, changed as asked, later than any pass. */
export function seenAs(change: Partial<ObservedInstance> = {}): HealthView {
  return { kind: "seen", instance: ensuredAs("READY", change).instance, readAtMs: nowMs };
}
export const stale: HealthView = { kind: "stale", reason: "HealthStale", message: "old" };
export const unreachable: HealthView = {
  kind: "stale",
  reason: "AdapterUnreachable",
  message: "no answer",
};
export const atA = placementJson(endpointA, "realm-1");
export const atB = placementJson(endpointB, "realm-2");
export const retiringB = { ...atB, state: "Retiring" };

/** "Ready, Available, then what else is True": each "status reason", generation only if older. */
export function brief(given: Case): string {
  const input = inputOf(given);
  const conditions = conditionsOf(input);
  const words = ({ status, reason, observedGeneration }: Condition): string =>
    `${status} ${reason}${observedGeneration === input.object.generation ? "" : ` of ${observedGeneration}`}`;
  const others = conditions.filter(
    ({ type, status }) => status === "True" && type !== "Ready" && type !== "Available",
  );
  const rest = others.map(({ type, reason }) => `${type} ${reason}`).join(", ");
  const main = ["Ready", "Available"].map((type) => words(find(conditions, type)));
  return [...main, rest === "" ? "-" : rest].join(" | ");
}

/** A truth table: what holds, for what, and what `brief` makes of it. */
export type Rows = readonly (readonly [rule: string, given: Case, expected: string])[];
