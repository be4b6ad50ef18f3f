/** Conditions Ready and Available: the two that consumers decide by. Pure. */
import { assertNever } from "../../services/process/assert-never.ts";
import { conditionOf } from "../resource/digital-human-provider.ts";
import type { Condition } from "../resource/digital-human-provider.ts";
import type { ConditionInput, Verdict } from "./conditions.ts";
import type { Failure } from "./failure.ts";
import type { ObservedInstance } from "./observed-instance.ts";

export interface ReadyVerdicts {
  readonly ready: Verdict;
  readonly available: Verdict;
}

export function readyOf(input: ConditionInput): ReadyVerdicts {
  const { outcome } = input;
  switch (outcome.kind) {
    case "ensured":
      return ensured(input, outcome);
    case "failed":
      return failed(input, outcome.failure);
    case "in-doubt":
      return no("Provisioning", inDoubtMessage(outcome.endpoint, outcome.untilMs));
    case "no-class":
      return no(outcome.reason, outcome.message);
    case "refused":
      return no("InvalidSpec", outcome.message);
    case "owned-by-another":
      return no(
        "OwnedByAnother",
        `the instance at ${outcome.endpoint} belongs to cluster "${outcome.owner}"; nothing was written. Choose another name or fleet, or take it over with spec.adopt.takeOverFrom`,
      );
    case "suspended":
      return suspended(input);
    case "retiring":
      return no(
        "Provisioning",
        "the instance at this place is being removed first, then it is made anew",
      );
    case "protected":
      return no(
        "DeleteBlocked",
        "spec.deletionProtection is true: set it to false to let the deletion go on",
      );
    case "removing":
      return removing(outcome);
    default:
      return assertNever(outcome);
  }
}

function ensured(
  { health, object }: ConditionInput,
  { instance, endpoint }: ConditionInput["outcome"] & { readonly kind: "ensured" },
): ReadyVerdicts {
  const { driftPolicy } = object.spec;
  const isOld = health?.kind === "stale" && instance.state === "READY";
  const available = isOld
    ? verdict("Unknown", health.reason, health.message)
    : availableOf(instance);
  switch (instance.state) {
    case "READY":
      return { ready: readyWhenProvisioned(instance, available, driftPolicy), available };
    case "AWAITING_HUMAN": {
      const { text, url } = instance.action ?? {
        text: "a person has to act at the vendor",
        url: "",
      };
      const message = url === "" ? text : `${text}: ${url}`;
      return { ready: verdict("False", "AwaitingHuman", message), available };
    }
    case "FAILED": {
      const message = `the vendor gave up on ${instance.providerID} at ${endpoint}: ${instance.message || "no reason given"}`;
      return { ready: verdict("False", "EnsureFailed", message), available };
    }
    case "DELETING": {
      const message = `the vendor is still removing ${instance.providerID} at ${endpoint}`;
      return { ready: verdict("False", "Provisioning", message), available };
    }
    case "PROVISIONING":
    case "UNKNOWN": {
      const message = `the vendor is provisioning ${instance.providerID} at ${endpoint}`;
      return { ready: verdict("False", "Provisioning", message), available };
    }
    default:
      return assertNever(instance.state);
  }
}

function readyWhenProvisioned(
  instance: ObservedInstance,
  available: Verdict,
  driftPolicy: "Correct" | "Observe",
): Verdict {
  if (instance.billing === "EXHAUSTED" && available.status === "False") {
    return verdict("False", "BillingStopped", available.message);
  }
  if (available.status === "False") return verdict("False", "Unavailable", available.message);
  if (available.status === "Unknown") return notKnown(available);
  if (instance.drift.length > 0 && driftPolicy === "Correct") {
    const fields = instance.drift.map(({ field }) => field).join(", ");
    return verdict("False", "Provisioning", `being corrected at the vendor: ${fields}`);
  }
  return verdict("True", "ProviderReady", `instance ${instance.providerID} works`);
}

/** Ready where Available is Unknown. */
function notKnown({ reason, message }: Verdict): Verdict {
  const why = reason === "AdapterUnreachable" ? reason : "HealthStale";
  return verdict("Unknown", why, message);
}

function availableOf(instance: ObservedInstance): Verdict {
  if (instance.state !== "READY") {
    return verdict("False", "NotReady", `the instance is ${instance.state}`);
  }
  const words = instance.message;
  switch (instance.availability) {
    case "AVAILABLE":
      return verdict("True", "Available", words || "the vendor says that it works");
    case "DEGRADED":
      return verdict("True", "Degraded", words || "the vendor says that it works, with losses");
    case "UNAVAILABLE":
      return verdict("False", "Unavailable", words || "the vendor says that it does not work");
    case "UNKNOWN":
      return verdict("Unknown", "NotReported", words || "the vendor does not say whether it works");
    default:
      return assertNever(instance.availability);
  }
}

/**
 * A failed pass. A Ready that was earned by this very generation survives what says nothing about
 * the instance; a refused change leaves the old truth, and the old generation beside it.
 */
function failed({ object, health }: ConditionInput, failure: Failure): ReadyVerdicts {
  const { readyReason: reason, readyEffect: effect, message } = failure;
  const ready = conditionOf(object.status, "Ready");
  const watched = effect === "keep" ? watchedAvailable(health) : undefined;
  const available = watched ?? availableAfter(failure, conditionOf(object.status, "Available"));
  const isOfThisGeneration = ready?.observedGeneration === object.generation;
  const isKept = effect === "keep" && (isOfThisGeneration || leavesOldTruth(failure));
  if (ready !== undefined && isKept && watched !== undefined && wasEarned(ready)) {
    return { ready: readyBeside(ready, watched), available };
  }
  if (ready !== undefined && ready.status !== "False" && effect !== "refused") {
    if (isKept) return { ready: kept(ready), available };
    if (effect === "unknown" && isOfThisGeneration) {
      return { ready: verdict("Unknown", reason, message), available };
    }
  }
  return { ready: verdict("False", reason, message), available };
}

/** Only billing takes an instance out of service; other failures tell how little is known of it. */
function availableAfter(failure: Failure, before: Condition | undefined): Verdict {
  const { readyReason: reason, readyEffect: effect, message } = failure;
  if (reason === "BillingStopped") return verdict("False", reason, message);
  return effect === "keep" && before !== undefined
    ? kept(before)
    : verdict("Unknown", reason, message);
}

function leavesOldTruth(failure: Failure): boolean {
  return failure.condition === "ReplaceRequired";
}

/** What stood, for the generation it stood for. */
function kept({ status, reason, message, observedGeneration }: Condition): Verdict {
  return { status, reason, message, observedGeneration };
}

/** Available as the health stream has it; undefined: it says nothing. */
function watchedAvailable(health: ConditionInput["health"]): Verdict | undefined {
  if (health?.kind === "seen") return availableOf(health.instance);
  if (health?.kind === "stale") return verdict("Unknown", health.reason, health.message);
  return undefined;
}

/** Reasons under which an instance is provisioned, whether or not it works just now. */
const earnedReasons: readonly string[] = [
  "ProviderReady",
  "Suspended",
  "Unavailable",
  "HealthStale",
  "AdapterUnreachable",
];

/** True for a Ready that was True once and lost it to bad health alone. */
function wasEarned({ status, reason }: Condition): boolean {
  return status === "True" || earnedReasons.includes(reason);
}

/** Ready of an instance that is provisioned as it was, for the generation it was earned by. */
function readyBeside(before: Condition, available: Verdict): Verdict {
  const { observedGeneration } = before;
  if (available.status === "False") {
    return { ...verdict("False", "Unavailable", available.message), observedGeneration };
  }
  if (available.status === "Unknown") return { ...notKnown(available), observedGeneration };
  if (before.status === "True") return kept(before);
  return { ...verdict("True", "ProviderReady", "the instance works again"), observedGeneration };
}

function suspended({ object, health }: ConditionInput): ReadyVerdicts {
  const before = conditionOf(object.status, "Ready");
  const available = conditionOf(object.status, "Available");
  const watched = watchedAvailable(health);
  if (before !== undefined && watched !== undefined && wasEarned(before)) {
    const ready = readyBeside(before, watched);
    return {
      ready: ready.status === "True" ? { ...ready, ...servesSuspended } : ready,
      available: watched,
    };
  }
  if (before?.status === "True" && available !== undefined) {
    return { ready: { ...kept(before), ...servesSuspended }, available: kept(available) };
  }
  return no("Suspended", "spec.suspend is true: nothing is created or changed until it is false");
}

const servesSuspended = {
  reason: "Suspended",
  message:
    "the instance serves as last asked for; spec.suspend holds every change until it is false",
} as const;

function removing(outcome: {
  readonly failure?: Failure;
  readonly untilMs?: number;
  readonly why?: string;
}): ReadyVerdicts {
  const { failure, untilMs } = outcome;
  if (failure !== undefined) {
    const reason = failure.needsPerson ? "DeleteBlocked" : "DeleteFailed";
    return no(reason, failure.message);
  }
  if (outcome.why !== undefined) return no("Deleting", outcome.why);
  const why =
    untilMs === undefined
      ? "the vendor is removing the instance"
      : `the answer of an earlier call was lost, so absence is believed from ${clockTime(untilMs)} on; the deletion then goes on by itself`;
  return no("Deleting", why);
}

function inDoubtMessage(endpoint: string, untilMs: number): string {
  return `the answer of an earlier call to ${endpoint} was lost; nothing is created before ${clockTime(untilMs)}, then work goes on by itself`;
}

function clockTime(ms: number): string {
  return new Date(Math.ceil(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");
}

function no(reason: string, message: string): ReadyVerdicts {
  return {
    ready: verdict("False", reason, message),
    available: verdict("Unknown", reason, message),
  };
}

function verdict(status: Verdict["status"], reason: string, message: string): Verdict {
  return { status, reason, message };
}
