import assert from "node:assert/strict";
import { describe, test } from "node:test";

import type { Condition } from "../resource/digital-human-provider.ts";
import { endpointA } from "../resource/object-fixture.ts";
import {
  atA,
  atB,
  condition,
  failed,
  failureBy,
  find,
  inputOf,
  nowMs,
  retiringB,
  seenAs,
  stale,
  unreachable,
  wasMaking,
  wasReady,
  wasUnknown,
} from "./condition-case.ts";
import type { Case } from "./condition-case.ts";
import { conditionsOf } from "./conditions.ts";
import type { Outcome } from "./conditions.ts";
import type { ObservedUsage } from "./observed-instance.ts";
import { ensuredAs } from "./outcome-fixture.ts";

/** "Ready, Available, then what else is True": each "status reason", generation only if older. */
function brief(given: Case): string {
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

const drift = [{ field: "displayName", want: "a", have: "b" }];
const observes = { driftPolicy: "Observe" };
const limited = { isRateLimited: true };

type Rows = readonly (readonly [rule: string, given: Case, expected: string])[];

const instances: Rows = [
  ["works", { outcome: ensuredAs("READY") }, "True ProviderReady | True Available | -"],
  [
    "works with losses",
    { outcome: ensuredAs("READY", { availability: "DEGRADED" }) },
    "True ProviderReady | True Degraded | -",
  ],
  [
    "does not work",
    { outcome: ensuredAs("READY", { availability: "UNAVAILABLE" }) },
    "False Unavailable | False Unavailable | -",
  ],
  [
    "does not say whether it works",
    { outcome: ensuredAs("READY", { availability: "UNKNOWN" }) },
    "Unknown HealthStale | Unknown NotReported | -",
  ],
  [
    "is limited",
    { outcome: ensuredAs("READY", limited) },
    "True ProviderReady | True Available | RateLimited Throttled",
  ],
  [
    "is overdue",
    { outcome: ensuredAs("READY", { billing: "OVERDUE" }) },
    "True ProviderReady | True Available | BillingOverdue Overdue",
  ],
  [
    "has no credits, and serves still",
    { outcome: ensuredAs("READY", { billing: "EXHAUSTED" }) },
    "True ProviderReady | True Available | BillingOverdue Exhausted",
  ],
  [
    "has no credits, and serves no more",
    { outcome: ensuredAs("READY", { billing: "EXHAUSTED", availability: "UNAVAILABLE" }) },
    "False BillingStopped | False Unavailable | BillingOverdue Exhausted",
  ],
  [
    "drifts, and is being corrected",
    { outcome: ensuredAs("READY", { drift }) },
    "False Provisioning | True Available | Drifted Correct, Reconciling Provisioning",
  ],
  [
    "drifts, and is left alone",
    { outcome: ensuredAs("READY", { drift }), spec: observes },
    "True ProviderReady | True Available | Drifted Observe",
  ],
  [
    "is being made",
    { outcome: ensuredAs("PROVISIONING") },
    "False Provisioning | False NotReady | Reconciling Provisioning",
  ],
  [
    "is being made for too long",
    { outcome: ensuredAs("PROVISIONING"), before: wasMaking, provisioningMs: 1_800_000 },
    "False Provisioning | False NotReady | Reconciling Provisioning, Stalled ProvisioningTooLong",
  ],
  [
    "waits for a person",
    { outcome: ensuredAs("AWAITING_HUMAN") },
    "False AwaitingHuman | False NotReady | Stalled AwaitingHuman",
  ],
  [
    "was given up",
    { outcome: ensuredAs("FAILED") },
    "False EnsureFailed | False NotReady | Stalled EnsureFailed",
  ],
  [
    "is being removed",
    { outcome: ensuredAs("DELETING") },
    "False Provisioning | False NotReady | Reconciling Provisioning",
  ],
  [
    "is in a state of a newer adapter",
    { outcome: ensuredAs("UNKNOWN") },
    "False Provisioning | False NotReady | Reconciling Provisioning",
  ],
];

const failures: Rows = [
  [
    "that says nothing of the instance leaves Ready True",
    { outcome: failed("BUSY"), before: wasReady },
    "True ProviderReady | True Available | -",
  ],
  [
    "that says nothing of the instance leaves Ready Unknown",
    { outcome: failed("BUSY"), before: wasUnknown },
    "Unknown EnsureFailed | Unknown EnsureFailed | Reconciling EnsureFailed",
  ],
  [
    "that says nothing of the instance does not make a new generation True",
    { outcome: failed("BUSY"), before: wasReady, generation: 2 },
    "False EnsureFailed | True Available of 1 | Reconciling EnsureFailed",
  ],
  [
    "that loses sight of the instance makes Ready Unknown",
    { outcome: failed("VENDOR_TIMEOUT"), before: wasReady },
    "Unknown EnsureFailed | Unknown EnsureFailed | Reconciling EnsureFailed",
  ],
  [
    "that loses sight makes a new generation False",
    { outcome: failed("VENDOR_TIMEOUT"), before: wasReady, generation: 2 },
    "False EnsureFailed | Unknown EnsureFailed | Reconciling EnsureFailed",
  ],
  [
    "before anything was made is False",
    { outcome: failed("VENDOR_TIMEOUT") },
    "False EnsureFailed | Unknown EnsureFailed | Reconciling EnsureFailed",
  ],
  [
    "of the spec is for a person",
    { outcome: failed("INVALID_FIELD"), before: wasReady },
    "False InvalidSpec | Unknown InvalidSpec | Stalled InvalidSpec",
  ],
  [
    "of the credential is for a person, and says nothing of the instance",
    { outcome: failed("BAD_CREDENTIAL"), before: wasReady },
    "False EnsureFailed | Unknown EnsureFailed | Stalled EnsureFailed",
  ],
  [
    "of throttling is a condition of its own",
    { outcome: failed("THROTTLED"), before: wasReady },
    "True ProviderReady | True Available | RateLimited Throttled",
  ],
  [
    "of quota is a condition of its own",
    { outcome: failed("QUOTA_EXHAUSTED"), before: wasReady },
    "True ProviderReady | True Available | QuotaExceeded Exhausted",
  ],
  [
    "of billing takes the instance out of service",
    { outcome: failed("BILLING_STOPPED"), before: wasReady },
    "False BillingStopped | False BillingStopped | BillingOverdue Stopped, Stalled BillingStopped",
  ],
  [
    "of an immutable field keeps the old truth for its generation",
    { outcome: failed("IMMUTABLE_FIELD"), before: wasReady, generation: 2 },
    "True ProviderReady of 1 | True Available of 1 | ReplaceRequired ImmutableField, Stalled InvalidSpec",
  ],
  [
    "of an open circuit loses sight",
    { outcome: failed("CIRCUIT_OPEN"), before: wasReady },
    "Unknown CircuitOpen | Unknown CircuitOpen | Reconciling CircuitOpen",
  ],
  [
    "of a contract version is for a person",
    { outcome: failed("CONTRACT_VERSION"), before: wasReady },
    "Unknown AdapterIncompatible | Unknown AdapterIncompatible | Stalled AdapterIncompatible",
  ],
  [
    "of another owner is for a person",
    { outcome: failed("OWNED_BY_ANOTHER") },
    "False OwnedByAnother | Unknown OwnedByAnother | Stalled OwnedByAnother",
  ],
];

const others: Rows = [
  [
    "doubt",
    { outcome: { kind: "in-doubt", untilMs: nowMs + 9_000, endpoint: endpointA } },
    "False Provisioning | Unknown Provisioning | Reconciling Provisioning",
  ],
  [
    "no class",
    { outcome: { kind: "no-class", reason: "AmbiguousClass", message: "two" } },
    "False AmbiguousClass | Unknown AmbiguousClass | Stalled AmbiguousClass",
  ],
  [
    "a refusal",
    { outcome: { kind: "refused", message: "no" } },
    "False InvalidSpec | Unknown InvalidSpec | Stalled InvalidSpec",
  ],
  [
    "another owner",
    { outcome: { kind: "owned-by-another", owner: "cluster-2", endpoint: endpointA } },
    "False OwnedByAnother | Unknown OwnedByAnother | Stalled OwnedByAnother",
  ],
  [
    "suspended before anything was made",
    { outcome: { kind: "suspended" } },
    "False Suspended | Unknown Suspended | -",
  ],
  [
    "suspended while it serves, for the generation that was asked for",
    { outcome: { kind: "suspended" }, before: wasReady, generation: 2, observedGeneration: 1 },
    "True Suspended of 1 | True Available of 1 | -",
  ],
  [
    "a place that retires first",
    { outcome: { kind: "retiring" } },
    "False Provisioning | Unknown Provisioning | Reconciling Provisioning",
  ],
  [
    "a protected deletion",
    { outcome: { kind: "protected" }, before: wasReady },
    "False DeleteBlocked | Unknown DeleteBlocked | Stalled DeleteBlocked",
  ],
  [
    "a deletion",
    { outcome: { kind: "removing" }, before: wasReady, isDeleting: true },
    "False Deleting | Unknown Deleting | Reconciling Deleting",
  ],
  [
    "a deletion in doubt",
    { outcome: { kind: "removing", untilMs: nowMs + 9_000 }, isDeleting: true },
    "False Deleting | Unknown Deleting | Reconciling Deleting",
  ],
  [
    "a deletion that failed",
    { outcome: { kind: "removing", failure: failureBy("VENDOR_ERROR") }, isDeleting: true },
    "False DeleteFailed | Unknown DeleteFailed | Reconciling DeleteFailed",
  ],
  [
    "a deletion that a person has to help",
    { outcome: { kind: "removing", failure: failureBy("WRONG_REALM") }, isDeleting: true },
    "False DeleteBlocked | Unknown DeleteBlocked | Stalled DeleteBlocked",
  ],
];

const ready = ensuredAs("READY");
const cleanups: Rows = [
  [
    "nothing elsewhere is clean",
    { outcome: ready, placements: [atA] },
    "True ProviderReady | True Available | -",
  ],
  [
    "a place that retires may be billed",
    { outcome: ready, placements: [atA, retiringB] },
    "True ProviderReady | True Available | CleanupPending Retiring",
  ],
  [
    "a place that still serves is on its way out once the new one is recorded",
    { outcome: ensuredAs("PROVISIONING"), placements: [atB, atA] },
    "False Provisioning | False NotReady | CleanupPending Moving, Reconciling Provisioning",
  ],
  [
    "a place that serves is no former one while the new one has never answered",
    { outcome: failed("VENDOR_TIMEOUT"), placements: [atB] },
    "False EnsureFailed | Unknown EnsureFailed | Reconciling EnsureFailed",
  ],
  [
    "without a class nothing is a former place but what retires",
    { outcome: { kind: "suspended" }, placements: [atA, atB], hasNoPlace: true },
    "False Suspended | Unknown Suspended | -",
  ],
  [
    "in a deletion every place goes",
    { outcome: { kind: "removing" }, placements: [atA, atB], isDeleting: true },
    "False Deleting | Unknown Deleting | Reconciling Deleting",
  ],
];

const calls = (used: number): ObservedUsage => ({ calls: { used, limit: 100 } });
const wasStale = [
  condition("Ready", "Unknown", "HealthStale"),
  condition("Available", "Unknown", "HealthStale"),
];
const suspended: Outcome = { kind: "suspended" };
const watched: Rows = [
  [
    "it works",
    { outcome: ready, health: seenAs(), before: wasStale },
    "True ProviderReady | True Available | -",
  ],
  [
    "it works no more",
    { outcome: ready, health: seenAs({ availability: "UNAVAILABLE" }), before: wasReady },
    "False Unavailable | False Unavailable | -",
  ],
  [
    "it works with losses",
    { outcome: ready, health: seenAs({ availability: "DEGRADED" }) },
    "True ProviderReady | True Degraded | -",
  ],
  [
    "it is limited",
    { outcome: ready, health: seenAs(limited) },
    "True ProviderReady | True Available | RateLimited Throttled",
  ],
  [
    "it is overdue",
    { outcome: ready, health: seenAs({ billing: "OVERDUE" }) },
    "True ProviderReady | True Available | BillingOverdue Overdue",
  ],
  [
    "credits are gone, and it serves no more",
    { outcome: ready, health: seenAs({ billing: "EXHAUSTED", availability: "UNAVAILABLE" }) },
    "False BillingStopped | False Unavailable | BillingOverdue Exhausted",
  ],
  [
    "the vendor's quota is used up",
    { outcome: ready, health: seenAs({ usage: calls(100) }) },
    "True ProviderReady | True Available | QuotaExceeded UsedUp",
  ],
  [
    "spec's own quota is used up",
    {
      outcome: ready,
      health: seenAs({ usage: calls(50) }),
      spec: { quota: { dailyCalls: 50 } },
    },
    "True ProviderReady | True Available | QuotaExceeded UsedUp",
  ],
  [
    "use nears its limit",
    { outcome: ready, health: seenAs({ usage: calls(80) }), scaleOutAtPercent: 80 },
    "True ProviderReady | True Available | ScaleOutAdvised NearLimit",
  ],
  [
    "use nears its limit, and the class wants no advice",
    { outcome: ready, health: seenAs({ usage: calls(80) }) },
    "True ProviderReady | True Available | -",
  ],
  [
    "it waits for a person",
    { outcome: ready, health: seenAs({ state: "AWAITING_HUMAN" }), before: wasReady },
    "False AwaitingHuman | False NotReady | Stalled AwaitingHuman",
  ],
  [
    "it is ready now",
    { outcome: ensuredAs("PROVISIONING"), health: seenAs(), before: wasMaking },
    "True ProviderReady | True Available | -",
  ],
  [
    "knowledge is old",
    { outcome: ready, health: stale, before: wasReady },
    "Unknown HealthStale | Unknown HealthStale | -",
  ],
  [
    "the adapter is gone",
    { outcome: ready, health: unreachable, before: wasReady },
    "Unknown AdapterUnreachable | Unknown AdapterUnreachable | -",
  ],
  [
    "old knowledge takes nothing from an instance that was never ready",
    { outcome: ensuredAs("PROVISIONING"), health: stale },
    "False Provisioning | False NotReady | Reconciling Provisioning",
  ],
  [
    "nothing was heard yet",
    { outcome: ready, health: { kind: "pending" }, before: wasReady },
    "True ProviderReady | True Available | -",
  ],
  [
    "another instance than the recorded one was seen",
    { outcome: ready, health: seenAs({ providerID: "i-2", availability: "UNAVAILABLE" }) },
    "True ProviderReady | True Available | -",
  ],
  [
    "the pass looked later",
    {
      outcome: { ...ready, trustHealthAfterMs: nowMs },
      health: seenAs({ availability: "UNAVAILABLE" }),
    },
    "True ProviderReady | True Available | -",
  ],
  [
    "drift is the pass's own finding",
    { outcome: ensuredAs("READY", { drift }), health: seenAs(), spec: observes },
    "True ProviderReady | True Available | Drifted Observe",
  ],
  [
    "a suspended one works no more",
    {
      outcome: suspended,
      health: seenAs({ availability: "UNAVAILABLE" }),
      before: wasReady,
      generation: 2,
      observedGeneration: 1,
    },
    "False Unavailable of 1 | False Unavailable of 1 | -",
  ],
  [
    "a suspended one works again, for the generation it was earned by",
    {
      outcome: suspended,
      health: seenAs(),
      before: wasStale,
      generation: 2,
      observedGeneration: 1,
    },
    "True Suspended of 1 | True Available of 1 | -",
  ],
  [
    "a suspended one is limited and overdue",
    { outcome: suspended, health: seenAs({ ...limited, billing: "OVERDUE" }), before: wasReady },
    "True Suspended | True Available | RateLimited Throttled, BillingOverdue Overdue",
  ],
  [
    "a suspended one is not seen any more",
    { outcome: suspended, health: unreachable, before: wasReady },
    "Unknown AdapterUnreachable | Unknown AdapterUnreachable | -",
  ],
  [
    "a suspended one that was never made has no health",
    { outcome: suspended, health: stale },
    "False Suspended | Unknown Suspended | -",
  ],
  [
    "a throttled pass leaves what the stream sees",
    {
      outcome: failed("THROTTLED"),
      health: seenAs({ availability: "UNAVAILABLE" }),
      before: wasReady,
    },
    "False Unavailable | False Unavailable | RateLimited Throttled, Reconciling Unavailable",
  ],
  [
    "a throttled pass keeps nothing green that is old",
    { outcome: failed("THROTTLED"), health: stale, before: wasReady },
    "Unknown HealthStale | Unknown HealthStale | RateLimited Throttled, Reconciling HealthStale",
  ],
  [
    "a throttled pass lets green come back",
    { outcome: failed("THROTTLED"), health: seenAs(), before: wasStale },
    "True ProviderReady | True Available | RateLimited Throttled",
  ],
  [
    "a new generation whose pass is throttled is not ready",
    { outcome: failed("THROTTLED"), health: seenAs(), before: wasReady, generation: 2 },
    "False EnsureFailed | True Available | RateLimited Throttled, Reconciling EnsureFailed",
  ],
  [
    "a refused spec stays refused",
    { outcome: failed("INVALID_FIELD"), health: seenAs(), before: wasReady },
    "False InvalidSpec | Unknown InvalidSpec | Stalled InvalidSpec",
  ],
];

for (const [name, rows] of [
  ["a watched instance:", watched],
  ["an instance that", instances],
  ["a failure", failures],
  ["an outcome:", others],
  ["former places:", cleanups],
] as const) {
  describe(`conditions of ${name}`, () => {
    for (const [rule, given, expected] of rows) {
      test(rule, () => assert.equal(brief(given), expected));
    }
  });
}
