import assert from "node:assert/strict";
import { test } from "node:test";

import { ProviderError } from "../../services/contract/provider-error.ts";
import { mergePatch } from "../kubernetes/merge-patch.ts";
import { chooseClass } from "../resource/class-choice.ts";
import type { JsonObject } from "../resource/json-door.ts";
import {
  classWith,
  endpointA,
  endpointB,
  objectWith,
  placementJson,
} from "../resource/object-fixture.ts";
import type { Outcome } from "./conditions.ts";
import { failureOf } from "./failure.ts";
import { ensuredAs } from "./outcome-fixture.ts";
import { nextStatus, statusWithRecord } from "./status-patch.ts";

const nowMs = Date.UTC(2026, 0, 1, 12);
const classA = classWith("a", ["a.example.com", "b.example.com"], { spec: { account: "eu" } });
const atA = placementJson(endpointA, "realm-1", { account: "eu", providerID: "i-1" });
const atB = placementJson(endpointB, "realm-2", { account: "eu", providerID: "i-2" });

interface Given {
  readonly outcome: Outcome;
  readonly status?: JsonObject;
  readonly spec?: JsonObject;
  readonly nowMs?: number;
  readonly hasNoClass?: boolean;
}

function statusAfter(given: Given): JsonObject {
  const object = objectWith({
    ...(given.spec === undefined ? {} : { spec: given.spec }),
    status: given.status ?? {},
  });
  const choice = chooseClass(object, given.hasNoClass === true ? [] : [classA]);
  const input = {
    object,
    record: object.record,
    outcome: given.outcome,
    place: choice.kind === "chosen" ? choice.place : undefined,
    removalWaits: new Map(),
    provisioningMs: 600_000,
    nowMs: given.nowMs ?? nowMs,
  };
  return nextStatus(input, choice);
}

function throttled(retryAfterMs?: number): Outcome {
  const facts = retryAfterMs === undefined ? {} : { retryAfterMs };
  const error = new ProviderError("THROTTLED", "slow down", facts);
  return { kind: "failed", failure: failureOf(error, "ask", nowMs) };
}

const ready = ensuredAs("READY");

test("a status that already says it differs in nothing", () => {
  const first = statusAfter({ outcome: ready, status: { placements: [atA] } });
  const later = statusAfter({ outcome: ready, status: first, nowMs: nowMs + 3_600_000 });
  assert.equal(mergePatch(first, later), undefined);
});

test("a failure that is told again later differs in nothing", () => {
  const outcome = throttled(30_000);
  const first = statusAfter({ outcome, status: { placements: [atA] } });
  const later = statusAfter({ outcome, status: first, nowMs: nowMs + 29_500 });
  assert.equal(mergePatch(first, later), undefined);
});

test("the pinned class and its account stand beside what was chosen", () => {
  const { className, account } = statusAfter({ outcome: ready });
  assert.deepEqual({ className, account }, { className: "a", account: "eu" });
});

test("without a choice nothing is pinned", () => {
  const status = { className: "a", account: "eu", placements: [atA] };
  const outcome: Outcome = { kind: "no-class", reason: "NoClass", message: "none" };
  const after = statusAfter({ outcome, status, hasNoClass: true });
  assert.equal(after["className"], undefined);
  assert.equal(after["account"], undefined);
  assert.deepEqual(after["placements"], [atA]);
});

test("providerID is of the wanted place, else of the one that still serves", () => {
  const both = { placements: [atA, atB] };
  assert.equal(statusAfter({ outcome: ready, status: both })["providerID"], "i-1");
  const moved = { outcome: ready, spec: { endpoint: endpointB } };
  assert.equal(statusAfter({ ...moved, status: both })["providerID"], "i-2");
  const notYet = { placements: [atA, { ...atB, providerID: undefined }] };
  assert.equal(statusAfter({ ...moved, status: notYet })["providerID"], "i-1");
  assert.equal("providerID" in statusAfter({ outcome: ready }), false);
});

test("fields and placements' fields of a newer version survive", () => {
  const newer = { ...atA, shard: 3 };
  const after = statusAfter({ outcome: ready, status: { placements: [newer], later: { a: 1 } } });
  assert.deepEqual(after["later"], { a: 1 });
  assert.deepEqual(after["placements"], [newer]);
});

test("rateLimitedUntil is the instant the vendor named, never a moment early", () => {
  assert.equal(
    statusAfter({ outcome: throttled(30_001) })["rateLimitedUntil"],
    "2026-01-01T12:00:31Z",
  );
  const status = { rateLimitedUntil: "2026-01-01T11:00:00Z" };
  assert.equal("rateLimitedUntil" in statusAfter({ outcome: throttled(), status }), false);
  assert.equal("rateLimitedUntil" in statusAfter({ outcome: ready, status }), false);
  const suspended: Outcome = { kind: "suspended" };
  assert.equal(
    statusAfter({ outcome: suspended, status })["rateLimitedUntil"],
    status.rateLimitedUntil,
  );
  const limited = { isRateLimited: true, rateLimitedUntilMs: nowMs + 5_000 };
  assert.equal(
    statusAfter({ outcome: ensuredAs("READY", limited) })["rateLimitedUntil"],
    "2026-01-01T12:00:05Z",
  );
});

test("usage is what the vendor said last", () => {
  const usage = { calls: { used: 0, limit: 100 } };
  const after = statusAfter({ outcome: ensuredAs("READY", { usage }) });
  assert.deepEqual(after["usage"], usage);
  assert.deepEqual(statusAfter({ outcome: throttled(), status: after })["usage"], usage);
  assert.equal("usage" in statusAfter({ outcome: ready, status: after }), false);
});

test("a record is written with nothing else changed", () => {
  const object = objectWith({ status: { placements: [atA], later: 1, providerID: "i-1" } });
  assert.deepEqual(statusWithRecord(object, object.record), object.rawStatus);
  assert.deepEqual(statusWithRecord(object, []), { later: 1, providerID: "i-1" });
});
