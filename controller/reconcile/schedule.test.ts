import assert from "node:assert/strict";
import { test } from "node:test";

import { ProviderError } from "../../services/contract/provider-error.ts";
import type { Reason } from "../../services/contract/provider-error.ts";
import type { Outcome } from "./conditions.ts";
import { failureOf } from "./failure.ts";
import { ensuredAs } from "./outcome-fixture.ts";
import { dueAfterFailure, nextDue } from "./schedule.ts";
import type { ScheduleInput } from "./schedule.ts";

const nowMs = Date.UTC(2026, 0, 1);
const minute = 60_000;
const options = {
  resyncMs: 10 * minute,
  reprobeMs: 5 * minute,
  backOffMsMin: 1_000,
  backOffMsMax: 64_000,
  pollMs: 2_000,
};
/** In the middle: no spread. */
const pace = { options, random: () => 0.5 };

/** When the next look is due and until when nothing is asked, both from now. */
function due(outcome: Outcome, change: Partial<ScheduleInput> = {}): readonly [number, number] {
  const input: ScheduleInput = {
    outcome,
    failures: 1,
    nowMs,
    pollAfterMs: undefined,
    removalPollMs: undefined,
    stallsAtMs: undefined,
    cleanupAtMs: undefined,
    ...change,
  };
  const { dueMs, holdUntilMs } = nextDue(input, pace);
  return [Math.round(dueMs - nowMs), holdUntilMs === 0 ? 0 : Math.round(holdUntilMs - nowMs)];
}

function failed(
  reason: Reason,
  facts: ConstructorParameters<typeof ProviderError>[2] = {},
): Outcome {
  const failure = failureOf(new ProviderError(reason, "no", facts), "ask", nowMs);
  return { kind: "failed", failure };
}

test("a ready instance is read again slowly, and one that drifts or provisions soon", () => {
  assert.deepEqual(due(ensuredAs("READY")), [options.resyncMs, 0]);
  const drift = [{ field: "displayName", want: "a", have: "b" }];
  assert.deepEqual(due(ensuredAs("READY", { drift })), [options.pollMs, 0]);
  assert.deepEqual(due(ensuredAs("PROVISIONING")), [options.pollMs, 0]);
  assert.deepEqual(due(ensuredAs("AWAITING_HUMAN")), [options.pollMs, 0]);
  assert.deepEqual(due(ensuredAs("DELETING")), [options.pollMs, 0]);
  assert.deepEqual(due(ensuredAs("FAILED")), [options.reprobeMs, 0]);
});

test("the vendor's own wait is kept, within what we would wait at most", () => {
  assert.deepEqual(due(ensuredAs("PROVISIONING"), { pollAfterMs: 7_000 }), [7_000, 0]);
  assert.deepEqual(due(ensuredAs("PROVISIONING"), { pollAfterMs: 60 * minute }), [
    options.reprobeMs,
    0,
  ]);
  assert.deepEqual(due({ kind: "removing" }, { removalPollMs: 7_000 }), [7_000, 0]);
  assert.deepEqual(due({ kind: "removing" }), [options.pollMs, 0]);
});

test("provisioning is looked at when it becomes too long", () => {
  const stallsAtMs = nowMs + 500;
  assert.deepEqual(due(ensuredAs("PROVISIONING"), { stallsAtMs }), [500, 0]);
});

test("doubt is waited for to its end", () => {
  const outcome: Outcome = { kind: "in-doubt", untilMs: nowMs + 9_000, endpoint: "https://a" };
  assert.deepEqual(due(outcome), [9_000, 0]);
});

test("what a person has to mend is probed slowly", () => {
  assert.deepEqual(due({ kind: "protected" }), [options.reprobeMs, 0]);
  assert.deepEqual(due({ kind: "refused", message: "no" }), [options.reprobeMs, 0]);
  assert.deepEqual(due(failed("BAD_CREDENTIAL")), [options.reprobeMs, 0]);
});

test("failures in a row back off to a limit, and not before a hint", () => {
  const waits = [1, 2, 3, 7, 8, 99].map((failures) => due(failed("VENDOR_ERROR"), { failures })[0]);
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 64_000, 64_000, 64_000]);
  assert.deepEqual(due(failed("BUSY", { retryAfterMs: 9_000 })), [9_000, 0]);
});

test("a hold lasts as long as the vendor says, and an hour at most", () => {
  assert.deepEqual(due(failed("THROTTLED", { retryAfterMs: 9_000 })), [9_000, 9_000]);
  assert.deepEqual(due(failed("CIRCUIT_OPEN", { retryAfterMs: 9_000 })), [9_000, 9_000]);
  const day = 24 * 60 * minute;
  assert.deepEqual(due(failed("THROTTLED", { retryAfterMs: day })), [60 * minute, 60 * minute]);
  assert.deepEqual(due(failed("THROTTLED")), [1_000, 1_000]);
});

test("a vendor that goes on refusing is asked ever less often, though its wait alone holds a change", () => {
  for (const reason of ["THROTTLED", "CIRCUIT_OPEN"] as const) {
    const held = failed(reason, { retryAfterMs: 5_000 });
    const waits = [1, 3, 4, 5, 99].map((failures) => due(held, { failures }));
    assert.deepEqual(
      waits.map(([dueMs]) => dueMs),
      [5_000, 5_000, 8_000, 16_000, 64_000],
    );
    assert.ok(waits.every(([, holdMs]) => holdMs === 5_000));
  }
});

test("a quota without a hint is asked for when it is filled again, or probed slowly", () => {
  const soon = failed("QUOTA_EXHAUSTED", { resetsAtMs: nowMs + 30_000 });
  assert.deepEqual(due(soon), [30_000, 30_000]);
  const late = failed("QUOTA_EXHAUSTED", { resetsAtMs: nowMs + 600 * minute });
  assert.deepEqual(due(late), [options.reprobeMs, options.reprobeMs]);
});

test("a former place is cleaned up in its own time", () => {
  const ready = ensuredAs("READY");
  assert.deepEqual(due(ready, { cleanupAtMs: nowMs }), [0, 0]);
  assert.deepEqual(due(ready, { cleanupAtMs: nowMs - 5_000 }), [0, 0]);
  assert.deepEqual(due(ready, { cleanupAtMs: nowMs + 7_000 }), [7_000, 0]);
  assert.deepEqual(due({ kind: "retiring" }, { cleanupAtMs: nowMs + 7_000 }), [7_000, 0]);
});

test("a former place neither shortens a hold nor wakes a suspended object", () => {
  const held = failed("THROTTLED", { retryAfterMs: 9_000 });
  assert.deepEqual(due(held, { cleanupAtMs: nowMs }), [9_000, 9_000]);
  assert.deepEqual(due({ kind: "suspended" }, { cleanupAtMs: nowMs }), [options.reprobeMs, 0]);
});

test("waits are spread by a tenth, so that many do not come at once", () => {
  const failure = failureOf(new ProviderError("VENDOR_ERROR", "no"), "ask", nowMs);
  const at = (chance: number): number =>
    dueAfterFailure(failure, 1, nowMs, { options, random: () => chance }).dueMs - nowMs;
  assert.equal(Math.round(at(0)), 900);
  assert.equal(Math.round(at(1)), 1_100);
});
