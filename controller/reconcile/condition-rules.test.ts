import assert from "node:assert/strict";
import { test } from "node:test";

import { endpointA, endpointB } from "../resource/object-fixture.ts";
import {
  atA,
  condition,
  earlier,
  failed,
  failureBy,
  find,
  inputOf,
  nowMs,
  retiringB,
  wasMaking,
  wasReady,
} from "./condition-case.ts";
import type { Case } from "./condition-case.ts";
import { conditionsOf, observedGenerationOf, stallsAtMs } from "./conditions.ts";
import type { Outcome } from "./conditions.ts";
import { identity } from "./decide.ts";
import { ensuredAs } from "./outcome-fixture.ts";

const ready = ensuredAs("READY");
const drift = [{ field: "displayName", want: "a", have: "b" }];

test("every condition is there from the first pass on", () => {
  const types = conditionsOf(inputOf({ outcome: { kind: "suspended" } })).map(({ type }) => type);
  assert.deepEqual(types, [
    "Ready",
    "Available",
    "RateLimited",
    "BillingOverdue",
    "QuotaExceeded",
    "ScaleOutAdvised",
    "Drifted",
    "ReplaceRequired",
    "CleanupPending",
    "Reconciling",
    "Stalled",
  ]);
});

test("what only the vendor can take back stands until the vendor has answered", () => {
  const before = [condition("RateLimited", "True", "Throttled")];
  const limitedAfter = (outcome: Outcome): string =>
    find(conditionsOf(inputOf({ outcome, before })), "RateLimited").status;
  assert.equal(limitedAfter(failed("VENDOR_TIMEOUT")), "True");
  assert.equal(limitedAfter({ kind: "suspended" }), "True");
  assert.equal(limitedAfter(ready), "False");
});

test("lastTransitionTime moves with the status, in whole seconds, and with nothing else", () => {
  const at = (outcome: Outcome): string =>
    find(conditionsOf({ ...inputOf({ outcome, before: wasReady }), nowMs: nowMs + 1 }), "Ready")
      .lastTransitionTime;
  assert.equal(at(ready), earlier);
  assert.equal(at(ensuredAs("READY", { message: "other words" })), earlier);
  assert.equal(at(failed("VENDOR_TIMEOUT")), "2026-01-01T12:00:00Z");
});

test("conditions of others stay as they are", () => {
  const foreign = condition("example.com/Checked", "True", "ByHand");
  const conditions = conditionsOf(inputOf({ outcome: ready, before: [foreign] }));
  assert.deepEqual(conditions.at(-1), foreign);
});

test("conditions of others never crowd out ours", () => {
  const before = Array.from({ length: 32 }, (_, index) => condition(`T${index}`, "True", "ByHand"));
  const conditions = conditionsOf(inputOf({ outcome: ready, before }));
  assert.equal(conditions.length, 32);
  assert.equal(find(conditions, "Ready").status, "True");
});

test("a suspended object speaks for no generation but the one that was earned", () => {
  const outcome: Outcome = { kind: "suspended" };
  const refused = inputOf({ outcome, before: wasReady, generation: 3, observedGeneration: 2 });
  assert.equal(find(conditionsOf(refused), "Ready").observedGeneration, 1);
  assert.equal(observedGenerationOf(refused), 2);
  const edited = inputOf({ outcome, generation: 1, observedGeneration: 50 });
  assert.equal(observedGenerationOf(edited), 1);
});

test("the same outcome gives the same conditions later on", () => {
  const outcome: Outcome = { kind: "failed", failure: failureBy("THROTTLED", { retryAfterMs: 9 }) };
  const first = conditionsOf(inputOf({ outcome }));
  const before = first.map((one) => ({ ...one }));
  const later = { ...inputOf({ outcome, before }), nowMs: nowMs + 5_500 };
  assert.deepEqual(conditionsOf(later), first);
});

test("a message says what, where, until when, and what a person can do", () => {
  const message = (given: Case, type = "Ready"): string =>
    find(conditionsOf(inputOf(given)), type).message;
  const until = "2026-01-01T12:00:09Z";
  const action = { text: "confirm the mail", url: "https://vendor.example.com/confirm" };
  const rows: readonly (readonly [string, RegExp])[] = [
    [
      message({ outcome: { kind: "in-doubt", untilMs: nowMs + 9_000, endpoint: endpointA } }),
      RegExp(`${endpointA}.*${until}`),
    ],
    [message({ outcome: { kind: "removing", untilMs: nowMs + 9_000 } }), RegExp(until)],
    [message({ outcome: { kind: "protected" } }), /set it to false/],
    [
      message({ outcome: ensuredAs("AWAITING_HUMAN", { action }) }),
      /confirm the mail: https:\/\/vendor/,
    ],
    [
      message({ outcome: ensuredAs("READY", { drift }) }, "Drifted"),
      /displayName: want "a", found "b"/,
    ],
    [
      message({ outcome: failed("IMMUTABLE_FIELD") }, "ReplaceRequired"),
      /set the field back, or delete/,
    ],
    [
      message({ outcome: ready, placements: [atA, retiringB] }, "CleanupPending"),
      RegExp(endpointB),
    ],
    [
      message({ outcome: { kind: "owned-by-another", owner: "cluster-2", endpoint: endpointA } }),
      /cluster-2.*takeOverFrom/,
    ],
  ];
  for (const [said, expected] of rows) assert.match(said, expected);
});

test("why a former place is not gone stands beside its name", () => {
  const input = inputOf({ outcome: ready, placements: [atA, retiringB] });
  const failure = failureBy("BAD_CREDENTIAL");
  const wait = { failure, failures: 1, dueMs: 0, holdUntilMs: 0 };
  const ids = input.record.map(identity);
  const removalWaits = new Map(ids.map((id) => [id, wait] as const));
  const { message } = find(conditionsOf({ ...input, removalWaits }), "CleanupPending");
  assert.match(message, /b\.example\.com.*\(r\): cannot ask: no/);
});

test("a vendor's long words are cut to what a condition can hold", () => {
  const message = "words ".repeat(2_000);
  const conditions = conditionsOf(inputOf({ outcome: ensuredAs("READY", { message }) }));
  assert.ok(find(conditions, "Available").message.length <= 2_048);
});

test("provisioning stalls a while after it began, and nothing else does", () => {
  const making = ensuredAs("PROVISIONING");
  const begun = Date.parse(earlier);
  assert.equal(stallsAtMs(inputOf({ outcome: making, provisioningMs: 5 })), nowMs + 5);
  const later = inputOf({ outcome: making, before: wasMaking, provisioningMs: 5 });
  assert.equal(stallsAtMs(later), begun + 5);
  assert.equal(stallsAtMs(inputOf({ outcome: ready })), undefined);
});
