import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code as ConnectCode, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";

import { ErrorInfoSchema } from "../../proto/gen/google/rpc/error_details_pb.ts";
import {
  DescribeResponseSchema,
  EnsureRequestSchema,
  EnsureResponseSchema,
  GetProviderInfoRequestSchema,
  GetProviderInfoResponseSchema,
  ListRequestSchema,
  ListResponseSchema,
  ProviderAPI,
  WatchHealthRequestSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { ObservedCall } from "./grpc-service.ts";
import { ProviderError } from "./provider-error.ts";
import type { Reason } from "./provider-error.ts";
import type { CallContext } from "./provider-handlers.ts";
import { connect, describeRequest, ensureRequest, failureOf, inTime, serve } from "./test-bench.ts";

function connectNodeClient(port: number) {
  return createClient(ProviderAPI, createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }));
}

test("answers pass in both directions with their fields, known or not", async () => {
  const server = await serve({
    getProviderInfo: () =>
      Promise.resolve(create(GetProviderInfoResponseSchema, { name: "v", regions: ["杭州"] })),
    ensure: (request) => {
      const answer = create(EnsureResponseSchema, {
        instance: { instanceKey: request.instanceKey },
      });
      return Promise.resolve({ ...answer, $unknown: request.$unknown ?? [] });
    },
  });
  const client = connect(server.port);
  const info = await client.getProviderInfo(create(GetProviderInfoRequestSchema), inTime);
  assert.deepEqual([info.name, info.regions], ["v", ["杭州"]]);
  const newer = {
    ...ensureRequest,
    $unknown: [{ no: 999, wireType: 2, data: Uint8Array.of(1, 65) }],
  };
  const answer = await client.ensure(newer, inTime);
  assert.equal(answer.instance?.instanceKey, "fleet/ns/name");
  assert.equal(answer.$unknown?.[0]?.no, 999);
});

test("a missing handler answers UNIMPLEMENTED, UNSUPPORTED, NOT_APPLIED", async () => {
  const server = await serve({});
  const client = connect(server.port);
  const failure = await failureOf(client.ensure(ensureRequest, inTime));
  assert.deepEqual(
    [failure.code, failure.reason, failure.outcome, failure.facts.resource],
    ["UNIMPLEMENTED", "UNSUPPORTED", "NOT_APPLIED", "Ensure"],
  );
  const watch = client.watchHealth(create(WatchHealthRequestSchema), new AbortController().signal);
  const broken = await failureOf(watch[Symbol.asyncIterator]().next());
  assert.deepEqual([broken.code, broken.reason], ["UNIMPLEMENTED", "UNSUPPORTED"]);
});

test("a call to a vendor without a deadline is refused before its handler; info answers", async () => {
  let calls = 0;
  const server = await serve({
    getProviderInfo: () => Promise.resolve(create(GetProviderInfoResponseSchema, { name: "v" })),
    describe: () => {
      calls += 1;
      return Promise.resolve(create(DescribeResponseSchema));
    },
  });
  const client = connectNodeClient(server.port);
  const error: unknown = await client.describe(describeRequest).catch((error: unknown) => error);
  assert.ok(error instanceof ConnectError);
  assert.equal(error.code, ConnectCode.InvalidArgument);
  assert.equal(error.findDetails(ErrorInfoSchema)[0]?.reason, "INVALID_FIELD");
  assert.equal(calls, 0);
  assert.equal((await client.getProviderInfo({})).name, "v");
});

test("a caller's deadline ends its call and aborts the handler's signal", async () => {
  const { promise: aborted, resolve } = Promise.withResolvers<CallContext>();
  const server = await serve({
    ensure: (_request, context) =>
      new Promise((_resolve, reject) => {
        context.signal.addEventListener("abort", () => {
          resolve(context);
          reject(context.signal.reason);
        });
      }),
  });
  const startMs = Date.now();
  const failure = await failureOf(connect(server.port).ensure(ensureRequest, { deadlineMs: 300 }));
  assert.deepEqual([failure.code, failure.outcome], ["DEADLINE_EXCEEDED", "UNKNOWN"]);
  assert.equal(failure.reason, undefined);
  const context = await aborted;
  assert.ok(
    Math.abs(context.deadlineAtMs - startMs - 300) < 250,
    String(context.deadlineAtMs - startMs),
  );
});

test("a cancelled call ends at once and aborts the handler's signal", async () => {
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const server = await serve({
    ensure: (_request, { signal }) =>
      new Promise((_resolve, reject) => {
        begin();
        signal.addEventListener("abort", () => {
          resolve();
          reject(signal.reason);
        });
      }),
  });
  const controller = new AbortController();
  const call = connect(server.port).ensure(ensureRequest, { ...inTime, signal: controller.signal });
  const failed = failureOf(call);
  await begun;
  controller.abort();
  const failure = await failed;
  assert.deepEqual([failure.code, failure.outcome], ["CANCELLED", "UNKNOWN"]);
  await aborted;
});

test("a call that was cancelled before it began was never sent", async () => {
  let calls = 0;
  const server = await serve({
    ensure: () => {
      calls += 1;
      return Promise.resolve(create(EnsureResponseSchema));
    },
  });
  const client = connect(server.port);
  for (const [options, code] of [
    [{ ...inTime, signal: AbortSignal.abort() }, "CANCELLED"],
    [{ deadlineMs: 0 }, "DEADLINE_EXCEEDED"],
    [{ deadlineMs: Number.NaN }, "INVALID_ARGUMENT"],
    [{ deadlineMs: Number.POSITIVE_INFINITY }, "INVALID_ARGUMENT"],
  ] as const) {
    const failure = await failureOf(client.ensure(ensureRequest, options));
    assert.deepEqual([failure.code, failure.outcome], [code, "NOT_APPLIED"]);
  }
  assert.equal(calls, 0);
});

test("the signal of an answered call stays quiet: work that outlives the call is not told to stop", async () => {
  let signal: AbortSignal | undefined;
  const server = await serve({
    ensure: (_request, context) => {
      signal = context.signal;
      return Promise.resolve(create(EnsureResponseSchema));
    },
  });
  const client = connect(server.port);
  await client.ensure(ensureRequest, inTime);
  await client.ensure(ensureRequest, inTime);
  assert.equal(signal?.aborted, false);
});

test("messages pass up to the limit; larger ones fail with a code", async () => {
  const messageBytesMax = 100_000;
  const server = await serve(
    {
      list: (request) =>
        Promise.resolve(
          create(ListResponseSchema, { nextPageToken: "x".repeat(Number(request.pageToken)) }),
        ),
      ensure: (request) =>
        Promise.resolve(create(EnsureResponseSchema, { instance: { specHash: request.specHash } })),
    },
    { limits: { messageBytesMax } },
  );
  const client = connect(server.port);
  const list = (length: number) =>
    client.list(create(ListRequestSchema, { pageToken: String(length) }), inTime);
  assert.equal((await list(99_000)).nextPageToken.length, 99_000);
  assert.equal((await failureOf(list(100_001))).code, "INTERNAL");
  const tooLarge = create(EnsureRequestSchema, { specHash: "x".repeat(100_001) });
  assert.equal((await failureOf(client.ensure(tooLarge, inTime))).code, "RESOURCE_EXHAUSTED");
  const own = connect(server.port, { limits: { messageBytesMax: 1_000 } });
  const unsent = await failureOf(own.ensure(tooLarge, inTime));
  assert.deepEqual([unsent.code, unsent.outcome], ["INVALID_ARGUMENT", "NOT_APPLIED"]);
  assert.equal(
    (await failureOf(own.list(create(ListRequestSchema, { pageToken: "2000" }), inTime))).code,
    "RESOURCE_EXHAUSTED",
  );
});

test("calls beyond the limit in flight are refused with BUSY and nothing applied", async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const server = await serve(
    {
      ensure: async () => {
        begin();
        await gate;
        return create(EnsureResponseSchema);
      },
    },
    { limits: { callsInFlightMax: 1 } },
  );
  const client = connect(server.port);
  const first = client.ensure(ensureRequest, inTime);
  await begun;
  const failure = await failureOf(client.ensure(ensureRequest, inTime));
  assert.deepEqual([failure.reason, failure.outcome], ["BUSY", "NOT_APPLIED"]);
  open();
  await first;
  await client.ensure(ensureRequest, inTime);
});

test("each call is observed once at either end, with its code", async () => {
  const served: ObservedCall[] = [];
  const called: ObservedCall[] = [];
  const server = await serve(
    {
      ensure: () => Promise.resolve(create(EnsureResponseSchema)),
      describe: () => Promise.reject(new ProviderError("THROTTLED", "slow down")),
    },
    { onCall: (call) => served.push(call) },
  );
  const client = connect(server.port, { onCall: (call) => called.push(call) });
  await client.ensure(ensureRequest, inTime);
  await failureOf(client.describe(describeRequest, inTime));
  for (const seen of [served, called]) {
    assert.deepEqual(
      seen.map((call) => [call.method, call.code]),
      [
        ["Ensure", "OK"],
        ["Describe", "RESOURCE_EXHAUSTED"],
      ],
    );
    assert.ok(seen.every((call) => call.durationMs >= 0 && call.durationMs < 10_000));
  }
});

test("the transport repeats neither a mutation nor an answer of the adapter's own", async () => {
  let calls = 0;
  const refuse = (reason: Reason) => () => {
    calls += 1;
    return Promise.reject(new ProviderError(reason, "no"));
  };
  const server = await serve({ ensure: refuse("VENDOR_ERROR"), describe: refuse("CIRCUIT_OPEN") });
  const client = connect(server.port);
  await failureOf(client.ensure(ensureRequest, inTime));
  assert.equal(calls, 1);
  await failureOf(client.describe(describeRequest, inTime));
  assert.equal(calls, 2);
});
