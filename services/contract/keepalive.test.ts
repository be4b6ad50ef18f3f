import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect as connectSocket, createServer } from "node:net";
import type { Socket } from "node:net";
import { test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { create } from "@bufbuild/protobuf";

import {
  DescribeResponseSchema,
  EnsureResponseSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import {
  closeAtEnd,
  connect,
  describeRequest,
  ensureRequest,
  eventually,
  failureOf,
  inTime,
  serve,
} from "./test-bench.ts";
import { createTestAuthority, testTlsFiles } from "./test-certificates.ts";

/** Passes bytes on until told to swallow them: nobody is told that the line is dead. */
async function startRelay(targetPort: number) {
  const sockets = new Set<Socket>();
  const relay = createServer((inner) => {
    const outer = connectSocket(targetPort, "127.0.0.1");
    for (const socket of [inner, outer]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
    }
    inner.on("data", (bytes) => void (isDead || outer.write(bytes)));
    outer.on("data", (bytes) => void (isDead || inner.write(bytes)));
  });
  let isDead = false;
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  closeAtEnd(() => {
    for (const socket of sockets) socket.destroy();
    relay.close();
  });
  const address = relay.address();
  assert.ok(typeof address === "object" && address !== null);
  return {
    port: address.port,
    swallow: (dead: boolean) => {
      isDead = dead;
    },
  };
}

test("a connection that falls silent is noticed well before the call's deadline, then replaced", async () => {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const server = await serve({
    ensure: async (_request, { signal }) => {
      begin();
      await new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
      return create(EnsureResponseSchema);
    },
    describe: () => Promise.resolve(create(DescribeResponseSchema)),
  });
  const relay = await startRelay(server.port);
  const client = connect(relay.port, { limits: { keepaliveTimeMs: 200, keepaliveTimeoutMs: 200 } });
  const call = failureOf(client.ensure(ensureRequest, { deadlineMs: 60_000 }));
  await begun;
  const startMs = performance.now();
  relay.swallow(true);
  const failure = await call;
  assert.ok(performance.now() - startMs < 5_000);
  assert.deepEqual([failure.code, failure.outcome], ["UNAVAILABLE", "UNKNOWN"]);
  relay.swallow(false);
  await client.describe(describeRequest, inTime);
});

for (const how of ["plaintext", "TLS"]) {
  test(`a ${how} port that never speaks HTTP/2 costs a mutation nothing but its time`, async () => {
    const authority = await createTestAuthority("mute");
    const files = testTlsFiles(await authority.issue(["127.0.0.1"]), authority.pem);
    closeAtEnd(() => files.remove());
    const sockets = { accepted: 0, closed: 0 };
    const keepMute = (socket: Socket): void => {
      sockets.accepted += 1;
      socket.on("error", () => undefined);
      socket.on("close", () => (sockets.closed += 1));
      socket.resume();
    };
    const pem = { cert: readFileSync(files.certFile), key: readFileSync(files.keyFile) };
    const mute =
      how === "TLS"
        ? createTlsServer({ ...pem, ALPNProtocols: ["h2"] }, keepMute)
        : createServer(keepMute);
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
    closeAtEnd(() => mute.close());
    const address = mute.address();
    assert.ok(typeof address === "object" && address !== null);
    const client = connect(address.port, {
      limits: { connectTimeoutMs: 200 },
      ...(how === "TLS" ? { tls: { caFile: files.caFile } } : {}),
    });
    const failure = await failureOf(client.ensure(ensureRequest, inTime));
    assert.deepEqual([failure.code, failure.outcome], ["UNAVAILABLE", "NOT_APPLIED"]);
    assert.equal(client.state(), "TRANSIENT_FAILURE");
    await eventually(() => sockets.accepted >= 3);
    client.close();
    await eventually(() => sockets.closed === sockets.accepted);
  });
}

test("a connection that is made while the line is dead does not keep the client from the next", async () => {
  const server = await serve({ describe: () => Promise.resolve(create(DescribeResponseSchema)) });
  const relay = await startRelay(server.port);
  relay.swallow(true);
  const client = connect(relay.port, { limits: { connectTimeoutMs: 200 } });
  await eventually(() => client.state() === "TRANSIENT_FAILURE");
  relay.swallow(false);
  await eventually(() => client.state() === "READY", 3_000);
  await client.describe(describeRequest, inTime);
});
