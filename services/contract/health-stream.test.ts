import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";

import {
  GetProviderInfoRequestSchema,
  WatchHealthRequestSchema,
  WatchHealthResponseSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { ObservedCall } from "./grpc-service.ts";
import { ProviderError } from "./provider-error.ts";
import { connect, failureOf, inTime, serve } from "./test-bench.ts";

test("a health stream gives each message, then ends with its caller's signal", async () => {
  const { promise: left, resolve } = Promise.withResolvers<void>();
  const server = await serve({
    watchHealth: async function* (_request, { signal, deadlineAtMs }) {
      assert.equal(deadlineAtMs, Number.POSITIVE_INFINITY);
      yield create(WatchHealthResponseSchema, {
        event: { case: "snapshot", value: { isLast: true } },
      });
      yield create(WatchHealthResponseSchema, { event: { case: "heartbeat", value: {} } });
      await new Promise<void>((end) => signal.addEventListener("abort", () => end()));
      resolve();
    },
  });
  const controller = new AbortController();
  const seen: (string | undefined)[] = [];
  const client = connect(server.port);
  for await (const message of client.watchHealth(
    create(WatchHealthRequestSchema),
    controller.signal,
  )) {
    seen.push(message.event.case);
    if (seen.length === 2) controller.abort();
  }
  assert.deepEqual(seen, ["snapshot", "heartbeat"]);
  await left;
});

test("a reader that stops reading leaves the stream, even of a handler that ignores its signal", async () => {
  const observed = Promise.withResolvers<ObservedCall>();
  const server = await serve(
    {
      watchHealth: async function* () {
        yield create(WatchHealthResponseSchema);
        await new Promise(() => undefined);
      },
    },
    { onCall: observed.resolve },
  );
  const controller = new AbortController();
  const stream = connect(server.port).watchHealth(
    create(WatchHealthRequestSchema),
    controller.signal,
  );
  for await (const message of stream) {
    assert.equal(message.event.case, undefined);
    break;
  }
  assert.equal((await observed.promise).code, "CANCELLED");
});

test("a slow reader slows the handler: what waits in between is bounded", async () => {
  let produced = 0;
  const server = await serve({
    watchHealth: async function* () {
      const message = create(WatchHealthResponseSchema, {
        event: { case: "heartbeat", value: { targets: [{ message: "x".repeat(50_000) }] } },
      });
      for (; produced < 100_000; produced += 1) yield message;
    },
  });
  const controller = new AbortController();
  const client = connect(server.port);
  const stream = client.watchHealth(create(WatchHealthRequestSchema), controller.signal);
  const reader = stream[Symbol.asyncIterator]();
  await reader.next();
  let before = -1;
  while (before !== produced) {
    before = produced;
    await client
      .getProviderInfo(create(GetProviderInfoRequestSchema), inTime)
      .catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(produced < 1_000, `${produced} messages of 50 kB wait for a reader that took one`);
  controller.abort();
  await reader.next();
});

test("a stream that fails or ends on the adapter's side rejects with ProviderError", async () => {
  const server = await serve({
    watchHealth: async function* (request) {
      yield create(WatchHealthResponseSchema);
      if (request.ownerCluster === "fail") throw new ProviderError("BAD_CREDENTIAL", "401");
    },
  });
  const client = connect(server.port);
  for (const [ownerCluster, code, reason] of [
    ["fail", "UNAUTHENTICATED", "BAD_CREDENTIAL"],
    ["end", "UNAVAILABLE", undefined],
  ] as const) {
    const stream = client.watchHealth(
      create(WatchHealthRequestSchema, { ownerCluster }),
      new AbortController().signal,
    );
    const reader = stream[Symbol.asyncIterator]();
    assert.equal((await reader.next()).done, false);
    const failure = await failureOf(reader.next());
    assert.deepEqual([failure.code, failure.reason], [code, reason]);
  }
});
