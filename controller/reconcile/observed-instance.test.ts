import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import {
  Availability,
  Billing,
  InstanceSchema,
  State,
} from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { observeInstance } from "./observed-instance.ts";
import type { ObservedInstance } from "./observed-instance.ts";

const atMs = Date.UTC(2026, 0, 1);

function observed(fields: MessageInitShape<typeof InstanceSchema>): ObservedInstance {
  return observeInstance(create(InstanceSchema, fields));
}

test("states, availability and billing have the contract's names", () => {
  const states = [
    [State.PROVISIONING, "PROVISIONING"],
    [State.READY, "READY"],
    [State.AWAITING_HUMAN, "AWAITING_HUMAN"],
    [State.FAILED, "FAILED"],
    [State.DELETING, "DELETING"],
    [State.UNSPECIFIED, "UNKNOWN"],
  ] as const;
  for (const [state, name] of states) assert.equal(observed({ state }).state, name);
  const availabilities = [
    [Availability.AVAILABLE, "AVAILABLE"],
    [Availability.DEGRADED, "DEGRADED"],
    [Availability.UNAVAILABLE, "UNAVAILABLE"],
    [Availability.UNKNOWN, "UNKNOWN"],
    [Availability.UNSPECIFIED, "UNKNOWN"],
  ] as const;
  for (const [availability, name] of availabilities) {
    assert.equal(observed({ health: { availability } }).availability, name);
  }
  const billings = [
    [Billing.CURRENT, "CURRENT"],
    [Billing.OVERDUE, "OVERDUE"],
    [Billing.EXHAUSTED, "EXHAUSTED"],
    [Billing.UNSPECIFIED, "UNKNOWN"],
  ] as const;
  for (const [billing, name] of billings) {
    assert.equal(observed({ health: { billing } }).billing, name);
  }
});

test("an instance that says nothing is unknown, limited by nothing, and drifts in nothing", () => {
  assert.deepEqual(observed({ providerId: "i-1", realm: "realm-1" }), {
    providerID: "i-1",
    realm: "realm-1",
    state: "UNKNOWN",
    availability: "UNKNOWN",
    billing: "UNKNOWN",
    isRateLimited: false,
    message: "",
    drift: [],
    usage: {},
  });
});

test("a limit counts with an end or without", () => {
  const open = observed({ health: { rateLimited: {} } });
  assert.equal(open.isRateLimited, true);
  assert.equal("rateLimitedUntilMs" in open, false);
  const until = observed({ health: { rateLimited: { until: timestampFromMs(atMs) } } });
  assert.equal(until.rateLimitedUntilMs, atMs);
});

test("absent is not zero in usage and drift", () => {
  const { usage, drift } = observed({
    usage: {
      calls: { used: 0n, resetsAt: timestampFromMs(atMs) },
      concurrency: { limit: 4n },
      credits: { remaining: 7n, expiresAt: timestampFromMs(atMs) },
    },
    drift: [
      { field: "displayName", want: "" },
      { field: "parameters.voice", have: "mei" },
    ],
  });
  assert.deepEqual(usage, {
    calls: { used: 0, resetsAt: "2026-01-01T00:00:00.000Z" },
    concurrency: { limit: 4 },
    credits: { remaining: 7, expiresAt: "2026-01-01T00:00:00.000Z" },
  });
  assert.deepEqual(drift, [
    { field: "displayName", want: "" },
    { field: "parameters.voice", have: "mei" },
  ]);
});

test("what a person has to do is kept", () => {
  const action = { text: "confirm", url: "https://vendor.example.com" };
  assert.deepEqual(observed({ action }).action, action);
});
