/** What the health stream makes of conditions: the truth table's part on watched instances. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  brief,
  condition,
  failed,
  nowMs,
  seenAs,
  stale,
  unreachable,
  wasMaking,
  wasReady,
} from "./condition-case.ts";
import type { Rows } from "./condition-case.ts";
import type { Outcome } from "./conditions.ts";
import type { ObservedUsage } from "./observed-instance.ts";
import { ensuredAs } from "./outcome-fixture.ts";

const ready = ensuredAs("READY");
const drift = [{ field: "displayName", want: "a", have: "b" }];
const observes = { driftPolicy: "Observe" };
const limited = { isRateLimited: true };
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

describe("conditions of a watched instance:", () => {
  for (const [rule, given, expected] of watched) {
    test(rule, () => assert.equal(brief(given), expected));
  }
});
