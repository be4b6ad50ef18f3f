import assert from "node:assert/strict";
import { test } from "node:test";

import { objectWith } from "../resource/object-fixture.ts";
import type { ObservedUsage } from "./observed-instance.ts";
import { crossesBound, quotaVerdict, roundedUsage, scaleOutVerdict } from "./usage.ts";

const resetsAt = "2026-01-02T00:00:00.000Z";
const calls = (used: number, limit = 1_000): ObservedUsage => ({
  calls: { used, limit, resetsAt },
});

test("counters are rounded down to two digits, limits and times are not", () => {
  const rows: readonly (readonly [number, number])[] = [
    [0, 0],
    [87, 87],
    [100, 100],
    [1_234, 1_200],
    [99_999, 99_000],
  ];
  for (const [used, expected] of rows) {
    assert.deepEqual(roundedUsage(calls(used, 12_345)), calls(expected, 12_345));
  }
  const credits = { remaining: 1_299, limit: 5_678 };
  assert.deepEqual(roundedUsage({ credits }), { credits: { remaining: 1_200, limit: 5_678 } });
});

test("a quota is used up at its limit, be it the vendor's or spec's, whichever is tighter", () => {
  const status = (usage: ObservedUsage, dailyCalls?: number): string | undefined =>
    quotaVerdict(usage, dailyCalls === undefined ? {} : { dailyCalls })?.status;
  assert.equal(status(calls(999)), "False");
  assert.equal(status(calls(1_000)), "True");
  assert.equal(status(calls(500), 500), "True");
  assert.equal(status(calls(1_000), 2_000), "True");
  assert.equal(status({ calls: { used: 500 } }, 500), "True");
});

test("absent is not zero: without a limit or a count nothing is said", () => {
  assert.equal(quotaVerdict({}, { dailyCalls: 0 }), undefined);
  assert.equal(quotaVerdict({ calls: { used: 5 } }, {}), undefined);
  assert.equal(quotaVerdict({ calls: { limit: 5 } }, {}), undefined);
});

test("a quota of nothing is used up from the start", () => {
  assert.equal(quotaVerdict(calls(0), { dailyCalls: 0 })?.status, "True");
});

test("the message says of what, how much, and until when", () => {
  const message = quotaVerdict(calls(1_000), {})?.message ?? "";
  assert.match(message, /1000 of 1000 calls used, counted anew from 2026-01-02/);
});

test("credits that are left count against what was bought and against spec", () => {
  const usage: ObservedUsage = { credits: { remaining: 100, limit: 500 } };
  assert.equal(quotaVerdict(usage, {})?.status, "False");
  assert.equal(quotaVerdict(usage, { monthlyCredits: 400 })?.status, "True");
});

test("advice begins at the class's share of the limit and says what a person would do", () => {
  const advice = (used: number, percent?: number): string =>
    scaleOutVerdict(calls(used), {}, percent).reason;
  assert.equal(advice(799, 80), "BelowThreshold");
  assert.equal(advice(800, 80), "NearLimit");
  assert.equal(advice(1_000), "NoThreshold");
  const { message } = scaleOutVerdict(calls(900), {}, 80);
  assert.match(message, /900 of 1000 calls.*apply a further.*nothing is created by itself/);
});

test("use that crosses a bound makes another condition, use that counts on within its bounds does not", () => {
  const crosses = (used: number, conditions: Readonly<Record<string, string>>): boolean => {
    const listed = Object.entries(conditions).map(([type, status]) => ({ type, status }));
    return crossesBound(calls(used, 100), objectWith({ status: { conditions: listed } }), 80);
  };
  const within = { QuotaExceeded: "False", ScaleOutAdvised: "False" };
  const near = { ...within, ScaleOutAdvised: "True" };
  const over = { QuotaExceeded: "True", ScaleOutAdvised: "True" };
  assert.ok(!crosses(50, within) && !crosses(79, within));
  assert.ok(crosses(80, within) && !crosses(81, near));
  assert.ok(crosses(100, near) && !crosses(120, over));
  assert.ok(crosses(10, near) && crosses(10, over));
});
