import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { endpointA } from "../resource/object-fixture.ts";
import {
  atA,
  atB,
  brief,
  failed,
  failureBy,
  nowMs,
  retiringB,
  wasMaking,
  wasReady,
  wasUnknown,
} from "./condition-case.ts";
import type { Rows } from "./condition-case.ts";
import { ensuredAs } from "./outcome-fixture.ts";

const drift = [{ field: "displayName", want: "a", have: "b" }];
const observes = { driftPolicy: "Observe" };
const limited = { isRateLimited: true };

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

for (const [name, rows] of [
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
