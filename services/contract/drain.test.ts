import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";

import {
  DescribeResponseSchema,
  EnsureResponseSchema,
  WatchHealthRequestSchema,
  WatchHealthResponseSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import {
  connect,
  describeRequest,
  ensureRequest,
  eventually,
  failureOf,
  inTime,
  serve,
} from "./test-bench.ts";

/** A server with one Ensure in flight that ends when `open` is called. */
async function serveSlowly() {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<AbortSignal>();
  const server = await serve({
    ensure: async (_request, { signal }) => {
      begin(signal);
      await gate;
      return create(EnsureResponseSchema, { instance: { providerId: "done" } });
    },
    describe: () => Promise.resolve(create(DescribeResponseSchema)),
  });
  return { server, open, begun };
}

test("a draining server finishes what is in flight and refuses what is new with its details", async () => {
  const { server, open, begun } = await serveSlowly();
  const client = connect(server.port);
  const inFlight = client.ensure(ensureRequest, inTime);
  await begun;
  const drained = server.drain(10_000);
  for (const newcomer of [client, connect(server.port)]) {
    const refused = await failureOf(newcomer.ensure(ensureRequest, inTime));
    assert.deepEqual(
      [refused.code, refused.reason, refused.outcome],
      ["UNAVAILABLE", "SHUTTING_DOWN", "NOT_APPLIED"],
    );
    assert.equal(
      (await failureOf(newcomer.describe(describeRequest, inTime))).reason,
      "SHUTTING_DOWN",
    );
  }
  open();
  assert.equal((await inFlight).instance?.providerId, "done");
  assert.deepEqual(await drained, { unfinished: 0 });
});

test("an answer that takes its time to leave is not cut off by the end of the drain", async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  // Larger than what a connection takes at once: it leaves as the caller reads.
  const message = "x".repeat(3 << 20);
  const server = await serve({
    ensure: async () => {
      begin();
      await gate;
      return create(EnsureResponseSchema, {
        instance: { providerId: "done", instanceKey: message },
      });
    },
  });
  const inFlight = connect(server.port).ensure(ensureRequest, inTime);
  await begun;
  const drained = server.drain(10_000);
  open();
  await drained;
  const closed = server.close();
  // As on a machine that is too busy to run the process for a while.
  const stalledUntilMs = performance.now() + 1_000;
  while (performance.now() < stalledUntilMs);
  await closed;
  assert.equal((await inFlight).instance?.providerId, "done");
});

test("what does not end within the limit has its signal aborted and is counted", async () => {
  const { server, open, begun } = await serveSlowly();
  const call = connect(server.port).ensure(ensureRequest, inTime);
  const signal = await begun;
  assert.deepEqual(await server.drain(50), { unfinished: 1 });
  assert.equal(signal.aborted, true);
  open();
  await call;
});

test("draining an idle server takes no time", async () => {
  const { server } = await serveSlowly();
  assert.deepEqual(await server.drain(60_000), { unfinished: 0 });
});

test("health streams end at once when the server drains", async () => {
  const server = await serve({
    watchHealth: async function* (_request, { signal }) {
      yield create(WatchHealthResponseSchema);
      await new Promise((end) => signal.addEventListener("abort", end));
    },
  });
  const stream = connect(server.port).watchHealth(
    create(WatchHealthRequestSchema),
    new AbortController().signal,
  );
  const reader = stream[Symbol.asyncIterator]();
  await reader.next();
  const broken = failureOf(reader.next());
  await server.drain(10_000);
  assert.equal((await broken).reason, "SHUTTING_DOWN");
});

test("a spare replica takes over within two seconds of the first one's drain and end", async () => {
  const first = await serve({
    describe: () =>
      Promise.resolve(create(DescribeResponseSchema, { instance: { providerId: "1" } })),
  });
  const spare = await serve({
    describe: () =>
      Promise.resolve(create(DescribeResponseSchema, { instance: { providerId: "2" } })),
  });
  const client = connect(0, { address: `ipv4:127.0.0.1:${first.port},127.0.0.1:${spare.port}` });
  const answeredBy = async () =>
    (await client.describe(describeRequest, inTime)).instance?.providerId;
  assert.equal(await answeredBy(), "1");
  await first.drain(1_000);
  await first.close();
  const startMs = performance.now();
  assert.equal(await answeredBy(), "2");
  assert.ok(performance.now() - startMs < 2_000);
});

test("closing twice is one close, and the port is free afterwards", async () => {
  const { server } = await serveSlowly();
  await server.close();
  await server.close();
  const again = await serve({}, { port: server.port });
  assert.equal(again.port, server.port);
});

test("without a connection a mutation fails at once and was never sent", async () => {
  const server = await serve({});
  await server.close();
  const client = connect(server.port);
  const failure = await failureOf(client.ensure(ensureRequest, inTime));
  assert.deepEqual(
    [failure.code, failure.reason, failure.outcome],
    ["UNAVAILABLE", undefined, "NOT_APPLIED"],
  );
  const read = await failureOf(client.describe(describeRequest, inTime));
  assert.equal(read.code, "UNAVAILABLE");
  assert.match(read.message, /ECONNREFUSED/u);
});

test("a connection that breaks after a mutation was sent leaves its outcome unknown", async () => {
  const { server, begun } = await serveSlowly();
  const call = failureOf(connect(server.port).ensure(ensureRequest, inTime));
  await begun;
  const startMs = performance.now();
  await server.close();
  const failure = await call;
  assert.deepEqual([failure.code, failure.reason], ["UNAVAILABLE", undefined]);
  assert.equal(failure.outcome, "UNKNOWN");
  assert.ok(performance.now() - startMs < 2_000, "the break is noticed, not the deadline");
});

test("the client tells its states and comes back by itself within its longest back-off", async () => {
  const handlers = { describe: () => Promise.resolve(create(DescribeResponseSchema)) };
  const server = await serve(handlers);
  const client = connect(server.port);
  const states: string[] = [];
  client.onStateChange((state) => states.push(state));
  await client.describe(describeRequest, inTime);
  assert.equal(client.state(), "READY");
  await server.close();
  await eventually(() => client.state() === "TRANSIENT_FAILURE");
  await serve(handlers, { port: server.port });
  await eventually(() => client.state() === "READY", 3_000);
  client.close();
  assert.equal(client.state(), "SHUTDOWN");
  assert.deepEqual(states.filter((state) => state === "READY").length, 2);
  assert.ok(states.includes("TRANSIENT_FAILURE"));
  const late = await failureOf(client.ensure(ensureRequest, inTime));
  assert.deepEqual([late.code, late.outcome], ["UNAVAILABLE", "NOT_APPLIED"]);
});

test("a read is repeated by the transport while the adapter restarts", async () => {
  let calls = 0;
  const server = await serve({
    describe: () => {
      calls += 1;
      return Promise.resolve(create(DescribeResponseSchema));
    },
  });
  const client = connect(server.port, {
    limits: {
      readAttemptsMax: 5,
      readBackoffMsMin: 300,
      readBackoffMsMax: 300,
      reconnectMsMax: 200,
    },
  });
  await client.describe(describeRequest, inTime);
  await server.close();
  await eventually(() => client.state() === "TRANSIENT_FAILURE");
  const read = client.describe(describeRequest, inTime);
  await serve(
    {
      describe: () => {
        calls += 10;
        return Promise.resolve(create(DescribeResponseSchema));
      },
    },
    { port: server.port },
  );
  await read;
  assert.equal(calls, 11);
});
