import assert from "node:assert/strict";
import { test } from "node:test";

import { retryAfterHeaderMs, retryAfterMsMax, retryAfterSecondsMs } from "./retry-after.ts";

const nowMs = Date.UTC(2026, 0, 1, 12, 0, 0);

test("Retry-After is read as seconds or as a date", () => {
  assert.equal(retryAfterHeaderMs("5", nowMs), 5_000);
  assert.equal(retryAfterHeaderMs(" 0 ", nowMs), 0);
  assert.equal(retryAfterHeaderMs("Thu, 01 Jan 2026 12:00:30 GMT", nowMs), 30_000);
  assert.equal(retryAfterHeaderMs("Thu, 01 Jan 2026 11:00:00 GMT", nowMs), 0);
});

test("an unreadable Retry-After is none, an absurd one is cut", () => {
  assert.equal(retryAfterHeaderMs(undefined, nowMs), undefined);
  assert.equal(retryAfterHeaderMs("soon", nowMs), undefined);
  assert.equal(retryAfterHeaderMs("99999999999", nowMs), retryAfterMsMax);
});

test("a status's retryAfterSeconds counts where it is positive", () => {
  assert.equal(retryAfterSecondsMs(2), 2_000);
  for (const nothing of [0, -1, Number.NaN, "2", undefined]) {
    assert.equal(retryAfterSecondsMs(nothing), undefined);
  }
});
