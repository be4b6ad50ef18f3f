import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import type { Any } from "@bufbuild/protobuf/wkt";

import {
  MutationOutcomeSchema,
  Outcome,
  PreconditionType,
  ErrorReason,
} from "../../proto/gen/dhp/provider/v1/errors_pb.ts";
import { Code } from "../../proto/gen/google/rpc/code_pb.ts";
import { ErrorInfoSchema } from "../../proto/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../proto/gen/google/rpc/status_pb.ts";
import { registerSecret } from "../process/redaction.ts";
import { codeOfNumber, fromWireStatus } from "./error-from-status.ts";
import { codeOfReason, ProviderError, reasons } from "./provider-error.ts";
import type { ProviderErrorFacts, Reason } from "./provider-error.ts";
import { toWireStatus } from "./status-from-error.ts";

const mutation = { isMutation: true };
const read = { isMutation: false };

const fullFacts: ProviderErrorFacts = {
  outcome: "PARTIAL",
  providerId: "RM_abc",
  retryAfterMs: 1_500,
  resetsAtMs: Date.UTC(2026, 4, 1, 0, 0, 0, 250),
  quota: "每日调用次数",
  fields: [{ path: "parameters.maxParticipants", description: "must be at most 10" }],
  preconditions: [{ type: "STATE", subject: "DELETING", description: "wait" }],
  owner: "cluster-b",
  realm: "livekit:host:key",
  resource: "fleet/ns/name",
};

for (const reason of reasons) {
  test(`${reason} keeps code, message and all facts on the way through the wire`, () => {
    const sent = new ProviderError(reason, `cannot ensure: ${reason}`, fullFacts);
    const received = fromWireStatus(toWireStatus(sent, mutation));
    assert.equal(received.reason, reason);
    assert.equal(received.code, codeOfReason[reason]);
    assert.equal(received.message, sent.message);
    assert.deepEqual(received.facts, fullFacts);
  });
}

test("the closed lists are those of errors.proto", () => {
  const namesOf = (list: object) => Object.keys(list).filter((name) => name !== "UNSPECIFIED");
  assert.deepEqual(namesOf(ErrorReason), [...reasons]);
  assert.deepEqual(namesOf(Outcome), ["NOT_APPLIED", "APPLIED", "PARTIAL", "UNKNOWN"]);
  assert.deepEqual(namesOf(PreconditionType), ["BILLING", "IMMUTABLE", "REALM", "STATE"]);
});

test("UNSUPPORTED may travel as FAILED_PRECONDITION and keeps its reason", () => {
  const sent = new ProviderError("UNSUPPORTED", "cannot delete", { code: "FAILED_PRECONDITION" });
  const received = fromWireStatus(toWireStatus(sent, mutation));
  assert.deepEqual([received.reason, received.code], ["UNSUPPORTED", "FAILED_PRECONDITION"]);
});

test("a mutation's error that does not say its outcome says UNKNOWN; a read's says nothing", () => {
  const error = new ProviderError("VENDOR_ERROR", "boom");
  assert.equal(fromWireStatus(toWireStatus(error, mutation)).facts.outcome, "UNKNOWN");
  assert.equal(fromWireStatus(toWireStatus(error, read)).facts.outcome, undefined);
});

const implied: readonly { reason: Reason; facts: ProviderErrorFacts; violation: object }[] = [
  {
    reason: "IMMUTABLE_FIELD",
    facts: { fields: [{ path: "region", description: "fixed" }] },
    violation: { type: "IMMUTABLE", subject: "region", description: "fixed" },
  },
  {
    reason: "WRONG_REALM",
    facts: { realm: "acct-2" },
    violation: { type: "REALM", subject: "acct-2", description: "m" },
  },
  {
    reason: "BILLING_STOPPED",
    facts: {},
    violation: { type: "BILLING", subject: "", description: "m" },
  },
];
for (const { reason, facts, violation } of implied) {
  test(`${reason} carries the PreconditionFailure that the contract asks for`, () => {
    const received = fromWireStatus(toWireStatus(new ProviderError(reason, "m", facts), mutation));
    assert.deepEqual(received.facts.preconditions, [violation]);
  });
}

test("a throttled call names a quota even when the vendor named none", () => {
  const received = fromWireStatus(toWireStatus(new ProviderError("THROTTLED", "m"), read));
  assert.equal(received.facts.quota, "call rate");
});

test("words are redacted on the way out; ids and realms are left whole", () => {
  registerSecret("sentinel-wire-4b1d");
  const wire = toWireStatus(
    new ProviderError("INVALID_FIELD", "bad key sentinel-wire-4b1d", {
      quota: "q sentinel-wire-4b1d",
      fields: [{ path: "p", description: "was sentinel-wire-4b1d" }],
      preconditions: [{ type: "STATE", subject: "sentinel-wire-4b1d", description: "x" }],
      realm: "acct:region",
      cause: new Error("sentinel-wire-4b1d"),
    }),
    mutation,
  );
  assert.ok(!wire.message.includes("4b1d"));
  assert.ok(!Buffer.from(wire.details).includes("4b1d"));
  assert.equal(fromWireStatus(wire).facts.realm, "acct:region");
});

function statusWith(code: number, ...details: Any[]) {
  const message = "m";
  return {
    code,
    message,
    details: toBinary(StatusSchema, create(StatusSchema, { code, message, details })),
  };
}
const outcomeDetail = anyPack(
  MutationOutcomeSchema,
  create(MutationOutcomeSchema, { outcome: Outcome.APPLIED, providerId: "x" }),
);
const info = (reason: string, domain = "dhp.example.com") =>
  anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason, domain }));

test("a reason of a newer peer reads as none, and its outcome is kept", () => {
  const received = fromWireStatus(statusWith(Code.ABORTED, info("MOON_PHASE"), outcomeDetail));
  assert.equal(received.reason, undefined);
  assert.equal(received.code, "ABORTED");
  assert.equal(received.outcome, "APPLIED");
  assert.equal(received.facts.providerId, "x");
});

test("an error without our details has a code and an unknown outcome", () => {
  for (const details of [undefined, new Uint8Array([255, 255, 255])]) {
    const received = fromWireStatus({ code: Code.UNIMPLEMENTED, message: "HTTP 404", details });
    assert.equal(received.reason, undefined);
    assert.equal(received.code, "UNIMPLEMENTED");
    assert.equal(received.outcome, "UNKNOWN");
  }
});

test("NOT_FOUND is believed only under its own code and our domain", () => {
  const foreignDomain = fromWireStatus(statusWith(Code.NOT_FOUND, info("NOT_FOUND", "other.com")));
  assert.equal(foreignDomain.reason, undefined);
  const wrongCode = fromWireStatus(statusWith(Code.UNAVAILABLE, info("NOT_FOUND")));
  assert.equal(wrongCode.reason, undefined);
  const changedOnTheWay = fromWireStatus({
    ...statusWith(Code.NOT_FOUND, info("NOT_FOUND")),
    code: 14,
  });
  assert.equal(changedOnTheWay.reason, undefined);
  assert.equal(changedOnTheWay.code, "UNAVAILABLE");
});

test("one unreadable detail does not spoil the others", () => {
  const broken = { ...outcomeDetail, value: new Uint8Array([8]) };
  const received = fromWireStatus(statusWith(Code.ABORTED, broken, info("BUSY")));
  assert.equal(received.reason, "BUSY");
});

test("status numbers outside the protocol read as UNKNOWN", () => {
  for (const number of [0, -1, 17, 99, Number.NaN]) assert.equal(codeOfNumber(number), "UNKNOWN");
});

test("an error of any size fits into 8 KiB of trailers, reason and outcome always in it", () => {
  const long = "长".repeat(5_000);
  const many = Array.from({ length: 100 }, () => ({ path: long, description: long }));
  const wire = toWireStatus(
    new ProviderError("INVALID_FIELD", long, {
      outcome: "NOT_APPLIED",
      fields: many,
      preconditions: many.map((one) => ({ type: "STATE", subject: one.path, description: long })),
      quota: long,
      realm: long,
      providerId: long,
    }),
    mutation,
  );
  const trailerBytes =
    Buffer.from(wire.details).toString("base64").length + encodeURIComponent(wire.message).length;
  assert.ok(trailerBytes < 8_000, String(trailerBytes));
  const received = fromWireStatus(wire);
  assert.deepEqual([received.reason, received.outcome], ["INVALID_FIELD", "NOT_APPLIED"]);
  assert.equal(received.facts.realm, undefined, "half a realm would be another realm");
});

test("waits and instants out of range are clamped or dropped", () => {
  const facts = { retryAfterMs: Number.POSITIVE_INFINITY, resetsAtMs: Number.NaN };
  const received = fromWireStatus(toWireStatus(new ProviderError("THROTTLED", "m", facts), read));
  assert.equal(received.facts.retryAfterMs, 0);
  assert.equal(received.facts.resetsAtMs, undefined);
  const far = new ProviderError("THROTTLED", "m", { retryAfterMs: 1e15 });
  assert.equal(fromWireStatus(toWireStatus(far, read)).facts.retryAfterMs, 24 * 3_600_000);
});

test("an error of unknown reason can be given the outcome that its receiver knows", () => {
  const error = ProviderError.foreign("UNAVAILABLE", "m").withOutcome("NOT_APPLIED");
  assert.deepEqual(
    [error.reason, error.code, error.outcome],
    [undefined, "UNAVAILABLE", "NOT_APPLIED"],
  );
});
