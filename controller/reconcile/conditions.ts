/**
 * All conditions of an object from what is known of it: one pure function. Its truth table is a
 * test. A message says what, where, until when, and what a person can do.
 */
import type { Condition, DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import { conditionOf } from "../resource/digital-human-provider.ts";
import { isSamePlace } from "../resource/placement.ts";
import type { Place, Placement } from "../resource/placement.ts";
import { identity } from "./decide.ts";
import { readyOf } from "./ready.ts";
import { rateLimitedMessage } from "./failure.ts";
import type { Failure } from "./failure.ts";
import { seenIn } from "./health-overlay.ts";
import type { HealthView } from "./health-view.ts";
import type { RemovalWaits } from "./memory.ts";
import type { ObservedInstance } from "./observed-instance.ts";
import { quotaVerdict, scaleOutVerdict } from "./usage.ts";

/** What one pass came to. */
export type Outcome =
  | {
      readonly kind: "ensured";
      readonly instance: ObservedInstance;
      readonly endpoint: string;
      /** The health stream knows better from then on, in the adapter's time; epoch ms. */
      readonly trustHealthAfterMs?: number;
    }
  | { readonly kind: "failed"; readonly failure: Failure }
  | { readonly kind: "in-doubt"; readonly untilMs: number; readonly endpoint: string }
  | {
      readonly kind: "no-class";
      readonly reason: "NoClass" | "AmbiguousClass" | "NotAllowed";
      readonly message: string;
    }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "owned-by-another"; readonly owner: string; readonly endpoint: string }
  | {
      readonly kind: "suspended";
      /** As the health stream shows the instance that stays as it is. */
      readonly seen?: ObservedInstance;
    }
  | { readonly kind: "retiring" }
  | { readonly kind: "protected" }
  | {
      readonly kind: "removing";
      readonly failure?: Failure;
      /** Doubt lasts until then. */
      readonly untilMs?: number;
      /** What it waits for, in words, where that is neither a failure nor our doubt. */
      readonly why?: string;
    };

export interface ConditionInput {
  readonly object: DigitalHumanProvider;
  /** The record as it will stand beside these conditions. */
  readonly record: readonly Placement[];
  readonly outcome: Outcome;
  /** The place that spec asks for; undefined while no class is chosen. */
  readonly place: Place | undefined;
  /** Why former placements are not removed yet. */
  readonly removalWaits: RemovalWaits;
  /** What the health stream says; absent: nobody watches. `outcome` holds what it has seen. */
  readonly health?: HealthView;
  /** Of the class; absent: no advice. */
  readonly scaleOutAtPercent?: number;
  /** Provisioning longer than this is Stalled. */
  readonly provisioningMs: number;
  readonly nowMs: number;
}

/** One condition before its transition time is known. */
export interface Verdict {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  /** The generation that it speaks for, where that is an older one. */
  readonly observedGeneration?: number;
}

/** Vendors' words can be long, and a condition that is too long is refused as a whole. */
const messageCharactersMax = 2_048;
/** As the CRD bounds them: a status with more is refused as a whole. */
const conditionsMax = 32;

export function conditionsOf(input: ConditionInput): readonly Condition[] {
  const ready = readyOf(input);
  const verdicts: ReadonlyMap<string, Verdict | undefined> = new Map([
    ["Ready", ready.ready],
    ["Available", ready.available],
    ["RateLimited", rateLimited(input)],
    ["BillingOverdue", billingOverdue(input)],
    ["QuotaExceeded", quotaExceeded(input)],
    ["ScaleOutAdvised", scaleOutAdvised(input)],
    ["Drifted", drifted(input)],
    ["ReplaceRequired", replaceRequired(input)],
    ["CleanupPending", cleanupPending(input)],
    ["Reconciling", reconciling(input, ready.ready)],
    ["Stalled", stalled(input, ready.ready)],
  ]);
  const ours = new Set(verdicts.keys());
  const foreign = input.object.status.conditions.filter(({ type }) => !ours.has(type));
  const conditions = [...verdicts].flatMap(([type, verdict]) => {
    const before = conditionOf(input.object.status, type);
    return verdict === undefined
      ? before === undefined
        ? []
        : [before]
      : [dated(type, verdict, before, input)];
  });
  return [...conditions, ...foreign].slice(0, conditionsMax);
}

/** Epoch ms at which provisioning becomes Stalled; undefined when nothing is being provisioned. */
export function stallsAtMs(input: ConditionInput): number | undefined {
  if (!isProvisioning(input.outcome)) return undefined;
  const before = conditionOf(input.object.status, "Reconciling");
  const sinceMs =
    before?.status === "True" && before.observedGeneration === input.object.generation
      ? Date.parse(before.lastTransitionTime)
      : input.nowMs;
  return (Number.isNaN(sinceMs) ? input.nowMs : sinceMs) + input.provisioningMs;
}

function isProvisioning(outcome: Outcome): boolean {
  return outcome.kind === "ensured" && outcome.instance.state === "PROVISIONING";
}

/** lastTransitionTime moves on a transition of status alone. */
function dated(
  type: string,
  verdict: Verdict,
  before: Condition | undefined,
  input: ConditionInput,
): Condition {
  const keepsTime = before !== undefined && before.status === verdict.status;
  const { status, reason, message } = verdict;
  return {
    type,
    status,
    reason,
    message: message.slice(0, messageCharactersMax).toWellFormed(),
    observedGeneration: verdict.observedGeneration ?? observedGenerationOf(input),
    lastTransitionTime: keepsTime
      ? before.lastTransitionTime
      : new Date(Math.floor(input.nowMs / 1000) * 1000).toISOString().replace(".000Z", "Z"),
  };
}

/** The generation these conditions speak for: a suspended object is not looked at any more. */
export function observedGenerationOf({ object, outcome }: ConditionInput): number {
  return outcome.kind === "suspended" && object.status.observedGeneration > 0
    ? Math.min(object.status.observedGeneration, object.generation)
    : object.generation;
}

function failureIn(outcome: Outcome): Failure | undefined {
  return outcome.kind === "failed" || outcome.kind === "removing" ? outcome.failure : undefined;
}

/**
 * True while the vendor's own word stands: it asked for a wait that is not over, and nobody has looked
 * since. What an earlier pass came to says nothing against it.
 */
export function isWaitStanding({ object, health, nowMs }: ConditionInput): boolean {
  const untilMs = Date.parse(object.status.rateLimitedUntil ?? "");
  const isBlind = health?.kind === "stale" || health?.kind === "pending";
  return isBlind && untilMs > nowMs;
}

/** `undefined`: nothing new is known, what stood stands. */
function rateLimited(input: ConditionInput): Verdict | undefined {
  const { outcome, object } = input;
  const failure = failureIn(outcome);
  if (failure?.condition === "RateLimited") {
    return { status: "True", reason: "Throttled", message: rateLimitedMessage(failure) };
  }
  if (isWaitStanding(input)) return undefined;
  const seen = seenIn(outcome);
  if (seen?.isRateLimited === true) {
    const message = seen.message || "the vendor limits calls";
    return { status: "True", reason: "Throttled", message };
  }
  return quiet(object, "RateLimited", outcome, {
    status: "False",
    reason: "NotLimited",
    message: "the vendor takes calls",
  });
}

function billingOverdue({ outcome, object }: ConditionInput): Verdict | undefined {
  const failure = failureIn(outcome);
  if (failure?.condition === "BillingOverdue") {
    return { status: "True", reason: "Stopped", message: failure.message };
  }
  const seen = seenIn(outcome);
  if (seen !== undefined) {
    const { billing, message } = seen;
    const words = message || "settle the vendor's invoice, or the vendor may stop serving";
    if (billing === "OVERDUE") return { status: "True", reason: "Overdue", message: words };
    if (billing === "EXHAUSTED") return { status: "True", reason: "Exhausted", message: words };
  }
  return quiet(object, "BillingOverdue", outcome, {
    status: "False",
    reason: "Current",
    message: "nothing overdue is known",
  });
}

function quotaExceeded({ outcome, object }: ConditionInput): Verdict | undefined {
  const failure = failureIn(outcome);
  if (failure?.condition === "QuotaExceeded") {
    const until =
      failure.resetsAtMs === undefined
        ? ""
        : `; filled again at ${new Date(failure.resetsAtMs).toISOString()}`;
    return { status: "True", reason: "Exhausted", message: `${failure.message}${until}` };
  }
  const seen = seenIn(outcome);
  const verdict = seen === undefined ? undefined : quotaVerdict(seen.usage, object.spec.quota);
  if (verdict !== undefined) return verdict;
  return quiet(object, "QuotaExceeded", outcome, {
    status: "False",
    reason: "WithinQuota",
    message: "no quota is known to be used up",
  });
}

function scaleOutAdvised({
  outcome,
  object,
  scaleOutAtPercent,
}: ConditionInput): Verdict | undefined {
  const usage = seenIn(outcome)?.usage ?? {};
  const verdict = scaleOutVerdict(usage, object.spec.quota, scaleOutAtPercent);
  return quiet(object, "ScaleOutAdvised", outcome, verdict);
}

/** A condition that only a pass of its own may set back: it compares with the spec. */
function afterPass(
  object: DigitalHumanProvider,
  type: string,
  outcome: Outcome,
  verdict: Verdict,
): Verdict | undefined {
  const isKnown = outcome.kind === "ensured" || conditionOf(object.status, type) === undefined;
  return isKnown ? verdict : undefined;
}

/** A condition that only an answer of the vendor, or a first sight, may set back. */
function quiet(
  object: DigitalHumanProvider,
  type: string,
  outcome: Outcome,
  verdict: Verdict,
): Verdict | undefined {
  const isKnown = seenIn(outcome) !== undefined || conditionOf(object.status, type) === undefined;
  return isKnown ? verdict : undefined;
}

function drifted({ outcome, object }: ConditionInput): Verdict | undefined {
  if (outcome.kind === "ensured" && outcome.instance.drift.length > 0) {
    const fields = outcome.instance.drift
      .map(({ field, want, have }) => `${field}: want ${quoted(want)}, found ${quoted(have)}`)
      .join("; ");
    const policy = object.spec.driftPolicy;
    const advice =
      policy === "Observe" ? "; spec.driftPolicy Observe leaves it" : "; correction is under way";
    return { status: "True", reason: policy, message: `${fields}${advice}` };
  }
  return afterPass(object, "Drifted", outcome, {
    status: "False",
    reason: "AsSpecified",
    message: "the vendor shows what spec asks for",
  });
}

function quoted(value: string | undefined): string {
  return value === undefined ? "nothing" : `"${value}"`;
}

function replaceRequired({ outcome, object }: ConditionInput): Verdict | undefined {
  const failure = failureIn(outcome);
  if (failure?.condition === "ReplaceRequired") {
    const advice =
      "; set the field back, or delete the object and apply it again to have it replaced";
    return { status: "True", reason: "ImmutableField", message: `${failure.message}${advice}` };
  }
  return afterPass(object, "ReplaceRequired", outcome, {
    status: "False",
    reason: "NotRequired",
    message: "no field needs a replacement",
  });
}

function cleanupPending(input: ConditionInput): Verdict {
  const former = formerPlacements(input);
  if (former.length === 0) {
    return { status: "False", reason: "Clean", message: "nothing is left at a former place" };
  }
  const places = former
    .map((placement) => {
      const { endpoint, region } = placement;
      const wait = input.removalWaits.get(identity(placement));
      return `${endpoint} (${region})${wait === undefined ? "" : `: ${wait.failure.message}`}`;
    })
    .join("; ");
  return former.some((placement) => placement.state === "Retiring")
    ? {
        status: "True",
        reason: "Retiring",
        message: `an instance may still exist, and be billed, at ${places}`,
      }
    : {
        status: "True",
        reason: "Moving",
        message: `the instance of before serves, and is billed, at ${places} until the new one is ready`,
      };
}

/** Once the wanted place is recorded, what is recorded elsewhere is on its way out. */
function formerPlacements({ object, record, place }: ConditionInput): readonly Placement[] {
  const hasMoved =
    !object.isDeleting &&
    place !== undefined &&
    record.some((placement) => isSamePlace(placement, place));
  return record.filter(
    (placement) => placement.state === "Retiring" || (hasMoved && !isSamePlace(placement, place)),
  );
}

function reconciling({ outcome }: ConditionInput, ready: Verdict): Verdict {
  const isWorking =
    ready.reason === "Provisioning" ||
    (outcome.kind === "removing" && outcome.failure?.needsPerson !== true) ||
    (outcome.kind === "failed" && !outcome.failure.needsPerson && ready.status !== "True");
  return isWorking
    ? { status: "True", reason: ready.reason, message: ready.message }
    : { status: "False", reason: "Idle", message: "no work is under way" };
}

function stalled(input: ConditionInput, ready: Verdict): Verdict {
  const { outcome } = input;
  const atMs = stallsAtMs(input);
  if (atMs !== undefined && input.nowMs >= atMs) {
    return {
      status: "True",
      reason: "ProvisioningTooLong",
      message: `the vendor is still provisioning after ${input.provisioningMs / 1000} s: ask the vendor, or delete the object`,
    };
  }
  const needsPerson =
    outcome.kind === "no-class" ||
    outcome.kind === "refused" ||
    outcome.kind === "owned-by-another" ||
    outcome.kind === "protected" ||
    failureIn(outcome)?.needsPerson === true ||
    (outcome.kind === "ensured" && waitsForPerson(outcome.instance));
  const failure = failureIn(outcome);
  return needsPerson
    ? {
        status: "True",
        reason: ready.status === "True" ? (failure?.readyReason ?? ready.reason) : ready.reason,
        message: failure?.message ?? ready.message,
      }
    : { status: "False", reason: "NotStalled", message: "nothing waits for a person" };
}

function waitsForPerson({ state }: ObservedInstance): boolean {
  return state === "FAILED" || state === "AWAITING_HUMAN";
}
