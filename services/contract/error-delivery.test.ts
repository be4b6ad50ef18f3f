import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code as ConnectCode, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";

import { ErrorInfoSchema } from "../../proto/gen/google/rpc/error_details_pb.ts";
import { MutationOutcomeSchema, Outcome } from "../../proto/gen/dhp/provider/v1/errors_pb.ts";
import { EnsureRequestSchema, ProviderAPI } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { registerSecret } from "../process/redaction.ts";
import { ProviderError, reasons } from "./provider-error.ts";
import type { ProviderErrorFacts } from "./provider-error.ts";
import {
  collectingLog,
  connect,
  describeRequest,
  ensureRequest,
  failureOf,
  inTime,
  serve,
} from "./test-bench.ts";

function connectNodeClient(port: number) {
  return createClient(ProviderAPI, createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }));
}

const factsOf: ProviderErrorFacts = {
  outcome: "PARTIAL",
  providerId: "id-1",
  retryAfterMs: 250,
  realm: "acct:region",
  owner: "cluster-b",
  resource: "fleet/ns/name",
  fields: [{ path: "region", description: "杭州 only" }],
  preconditions: [{ type: "STATE", subject: "s", description: "d" }],
  quota: "q",
  resetsAtMs: Date.UTC(2026, 0, 1),
};

test("each reason arrives whole at a grpc-js client and at a connect-node client", async () => {
  const server = await serve({
    ensure: (request) => {
      const reason = reasons.find((known) => known === request.specHash);
      throw new ProviderError(reason ?? "BUSY", `cannot ensure: ${request.specHash}`, factsOf);
    },
  });
  const grpcJs = connect(server.port);
  const connectNode = connectNodeClient(server.port);
  for (const reason of reasons) {
    const request = create(EnsureRequestSchema, { specHash: reason });
    const failure = await failureOf(grpcJs.ensure(request, inTime));
    const expected = new ProviderError(reason, `cannot ensure: ${reason}`, factsOf);
    assert.equal(failure.reason, reason);
    assert.equal(failure.code, expected.code);
    assert.equal(failure.message, expected.message);
    assert.deepEqual({ ...failure.facts, cause: undefined }, { ...factsOf, cause: undefined });

    const connectError: unknown = await connectNode
      .ensure(request, { timeoutMs: 10_000 })
      .catch((error: unknown) => error);
    assert.ok(connectError instanceof ConnectError);
    assert.equal(
      ConnectCode[connectError.code]?.toUpperCase().length,
      expected.code.replaceAll("_", "").length,
    );
    const [info] = connectError.findDetails(ErrorInfoSchema);
    assert.equal(info?.reason, reason);
    assert.equal(info?.domain, "dhp.example.com");
    assert.equal(info?.metadata["realm"], "acct:region");
    const [outcome] = connectError.findDetails(MutationOutcomeSchema);
    assert.deepEqual([outcome?.outcome, outcome?.providerId], [Outcome.PARTIAL, "id-1"]);
  }
});

test("a bug answers INTERNAL without a word of itself, is logged with its stack, and is UNKNOWN", async () => {
  const sentinel = "sentinel-bug-77aa01";
  registerSecret(sentinel);
  const { log, lines } = collectingLog();
  const server = await serve(
    {
      ensure: () => Promise.reject(new TypeError(`inner words ${sentinel}`)),
      describe: () => {
        throw new Error(`inner words ${sentinel}`);
      },
      release: () => {
        // oxlint-disable-next-line no-throw-literal -- what a handler throws is not ours to choose
        throw "inner words";
      },
    },
    { log },
  );
  const client = connect(server.port, { log });
  const failure = await failureOf(client.ensure(ensureRequest, inTime));
  assert.deepEqual(
    [failure.code, failure.reason, failure.outcome],
    ["INTERNAL", undefined, "UNKNOWN"],
  );
  assert.ok(failure.facts.outcome === "UNKNOWN", "the outcome travelled");
  const read = await failureOf(client.describe(describeRequest, inTime));
  for (const told of [failure.message, read.message]) {
    assert.ok(!told.includes("inner") && !told.includes("sentinel"), told);
  }
  const logged = lines.join("");
  assert.ok(logged.includes("error-delivery.test.ts"), "stack is logged");
  assert.ok(!logged.includes(sentinel));
});

test("a sentinel secret in an adapter's error reaches neither the caller nor the log", async () => {
  const sentinel = "sentinel-err-90cd1e";
  registerSecret(sentinel);
  const { log, lines } = collectingLog();
  const server = await serve(
    {
      ensure: () => {
        throw new ProviderError("BAD_CREDENTIAL", `401 for key ${sentinel}`, {
          fields: [{ path: "p", description: sentinel }],
          cause: new Error(sentinel),
        });
      },
    },
    { log },
  );
  const failure = await failureOf(connect(server.port, { log }).ensure(ensureRequest, inTime));
  assert.equal(failure.reason, "BAD_CREDENTIAL");
  const seen = JSON.stringify([failure.message, failure.facts.fields, failure.stack, lines]);
  assert.ok(!seen.includes(sentinel));
});
