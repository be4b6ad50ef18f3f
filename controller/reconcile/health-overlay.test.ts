import assert from "node:assert/strict";
import { test } from "node:test";

import { looksEdited, untilBelievedMs, withHealth } from "./health-overlay.ts";
import type { ObservedInstance, ObservedSpec } from "./observed-instance.ts";
import { ensuredAs } from "./outcome-fixture.ts";

const spec: ObservedSpec = {
  displayName: "a",
  parameters: { voice: "v", speed: "1" },
  quota: { dailyCalls: 5 },
};
const shown = (change?: Partial<ObservedSpec>): ObservedInstance => {
  const own = change === undefined ? {} : { observedSpec: { ...spec, ...change } };
  return ensuredAs("READY", own).instance;
};

test("an instance looks edited when a field that both looks show differs", () => {
  const rows: readonly (readonly [string, boolean, Partial<ObservedSpec>])[] = [
    ["the same", false, {}],
    ["another name", true, { displayName: "b" }],
    ["another value", true, { parameters: { voice: "w", speed: "1" } }],
    ["another quota", true, { quota: { dailyCalls: 6 } }],
    ["a list that carries less", false, { parameters: {}, quota: {} }],
    [
      "a field that the first look lacked",
      false,
      { parameters: { ...spec.parameters, more: "1" } },
    ],
  ];
  for (const [name, isEdited, change] of rows) {
    assert.equal(looksEdited(shown({}), shown(change)), isEdited, name);
  }
});

test("a look that shows no spec proves no edit", () => {
  assert.equal(looksEdited(shown(), shown({})), false);
  assert.equal(looksEdited(shown({}), shown()), false);
});

test("what the stream tells while it is not believed yet is looked at again when it is", () => {
  const outcome = { ...ensuredAs("READY"), trustHealthAfterMs: 10_000 };
  const seen = ensuredAs("READY", { billing: "OVERDUE" }).instance;
  const health = (readAtMs: number) => ({ kind: "seen", instance: seen, readAtMs }) as const;
  assert.equal(withHealth(outcome, health(4_000)), outcome);
  assert.equal(untilBelievedMs(outcome, health(4_000)), 6_000);
  assert.equal(untilBelievedMs(outcome, health(10_000)), 1_000);
  assert.notEqual(withHealth(outcome, health(10_001)), outcome);
  assert.equal(untilBelievedMs(outcome, health(10_001)), undefined);
  assert.equal(untilBelievedMs(outcome, { kind: "pending" }), undefined);
  const other = ensuredAs("READY", { providerID: "i-2" }).instance;
  assert.equal(untilBelievedMs(outcome, { ...health(4_000), instance: other }), undefined);
});

test("what the vendor states of the account is believed at once, whatever lists still show", () => {
  const made = ensuredAs("READY", { observedAtMs: 5_000 });
  const outcome = { ...made, trustHealthAfterMs: 15_000 };
  const limited = { isRateLimited: true, rateLimitedUntilMs: 60_000, billing: "OVERDUE" } as const;
  const usage = { credits: { remaining: 0, limit: 5 } };
  const facts = { ...limited, usage, availability: "UNAVAILABLE" } as const;
  const { instance } = ensuredAs("READY", facts);
  const overlaid = withHealth(outcome, { kind: "seen", instance, readAtMs: 6_000 });
  assert.ok(overlaid.kind === "ensured");
  const { isRateLimited, rateLimitedUntilMs, billing, availability } = overlaid.instance;
  assert.deepEqual({ isRateLimited, rateLimitedUntilMs, billing }, limited);
  assert.deepEqual(overlaid.instance.usage, usage);
  assert.equal(availability, made.instance.availability, "which lists may be late with");
  const early = withHealth(outcome, { kind: "seen", instance, readAtMs: 5_000 });
  assert.ok(early.kind === "ensured" && early.instance.isRateLimited);
  assert.equal(early.instance.billing, made.instance.billing, "as the pass has seen it since");
  const quiet = { ...instance, isRateLimited: false };
  assert.equal(withHealth(outcome, { kind: "seen", instance: quiet, readAtMs: 5_000 }), outcome);
  const other = { ...instance, providerID: "i-2" };
  assert.equal(withHealth(outcome, { kind: "seen", instance: other, readAtMs: 6_000 }), outcome);
});
