import assert from "node:assert/strict";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { FakeClock } from "../../services/process/fake-clock.ts";
import { isApiError } from "./api-error.ts";
import type { ApiError, ApiErrorKind } from "./api-error.ts";
import type { ApiRequest } from "./connection.ts";
import { CountingConnection } from "./counting-connection.ts";
import { FakeApiServer, statusBody } from "./fake-api-server.ts";
import type { FakeWatch } from "./fake-api-server.ts";

const get: ApiRequest = { method: "GET", path: "/thing", timeoutMs: 5_000 };

describe("connection", () => {
  let server: FakeApiServer;
  let connection: CountingConnection;

  beforeEach(async () => {
    server = await FakeApiServer.start();
    server.handler = (call) => call.answer(200, { ok: true });
    connection = new CountingConnection(server.kubeconfig, { pingIntervalMs: 200 });
  });

  afterEach(async () => {
    await connection.close();
    await server.stop();
  });

  test("1,000 calls cost one handshake", async () => {
    for (let batch = 0; batch < 20; batch += 1) {
      await Promise.all(Array.from({ length: 50 }, () => connection.request(get)));
    }
    assert.equal(server.calls.length, 1_000);
    assert.equal(connection.counts.handshakes, 1);
    assert.equal(server.sessionCount, 1);
    assert.equal(connection.counts.codes.filter((code) => code === "200").length, 1_000);
  });

  test("1,000 calls with the authority replaced in between cost one handshake an authority", async () => {
    connection = new CountingConnection(server.kubeconfig, { accessRefreshMs: 0 });
    for (let count = 0; count < 500; count += 1) await connection.request(get);
    await server.rotateAuthority();
    for (let count = 0; count < 500; count += 1) await connection.request(get);
    assert.equal(connection.counts.handshakes, 2);
  });

  test("method, path, query, body and headers arrive as given", async () => {
    await connection.request({
      method: "PATCH",
      path: "/a/b",
      query: { dryRun: "All", limit: 5, none: undefined },
      body: { name: "杭州" },
      contentType: "application/merge-patch+json",
      timeoutMs: 5_000,
    });
    const [call] = server.calls;
    assert.equal(call?.method, "PATCH");
    assert.equal(call?.path, "/a/b");
    assert.equal(call?.query.toString(), "dryRun=All&limit=5");
    assert.deepEqual(call?.body, { name: "杭州" });
    assert.equal(call?.headers["content-type"], "application/merge-patch+json");
    assert.equal(call?.headers["user-agent"], "test");
  });

  test("an answer is parsed JSON with every field it came with", async () => {
    const answer = { kind: "X", spec: { unknown: [1, { deep: null }] } };
    server.handler = (call) => call.answer(200, answer);
    assert.deepEqual(await connection.request(get), answer);
  });

  const failures: readonly (readonly [number, string, ApiErrorKind])[] = [
    [400, "BadRequest", "invalid"],
    [403, "Forbidden", "forbidden"],
    [404, "NotFound", "not-found"],
    [409, "Conflict", "conflict"],
    [409, "AlreadyExists", "already-exists"],
    [410, "Expired", "gone"],
    [422, "Invalid", "invalid"],
    [429, "TooManyRequests", "throttled"],
    [500, "InternalError", "server"],
    [504, "Timeout", "timeout"],
    [302, "", "unreadable"],
  ];
  for (const [status, reason, kind] of failures) {
    test(`an answer ${status} ${reason} is an ApiError of kind "${kind}"`, async () => {
      server.handler = (call) => call.answer(status, statusBody(status, reason));
      const error = await failure(connection.request(get));
      assert.deepEqual([error.kind, error.status, error.reason], [kind, status, reason]);
    });
  }

  test("a failure whose body is no JSON keeps its status", async () => {
    server.handler = (call) => call.answer(503, "<html>no</html>");
    assert.deepEqual((await failure(connection.request(get))).kind, "server");
  });

  test("a success whose body is no JSON is unreadable", async () => {
    server.handler = (call) => call.answer(200, "<html>captive portal</html>");
    assert.equal((await failure(connection.request(get))).kind, "unreadable");
  });

  test("Retry-After is read from the header in seconds and from the status", async () => {
    server.handler = (call) => call.answer(429, {}, { "retry-after": "7" });
    assert.equal((await failure(connection.request(get))).retryAfterMs, 7_000);
    const details = { retryAfterSeconds: 3 };
    server.handler = (call) => call.answer(500, statusBody(500, "ServerTimeout", details));
    assert.equal((await failure(connection.request(get))).retryAfterMs, 3_000);
  });

  test("an answer longer than the limit is unreadable, and the connection goes on", async () => {
    connection = new CountingConnection(server.kubeconfig, { responseBytesMax: 1_000 });
    server.handler = (call) => call.answer(200, { text: "x".repeat(200_000) });
    assert.equal((await failure(connection.request(get))).kind, "unreadable");
    server.handler = (call) => call.answer(200, { ok: true });
    assert.deepEqual(await connection.request(get), { ok: true });
    assert.equal(connection.counts.handshakes, 1);
  });

  test("a call that is never answered ends at its deadline", async () => {
    server.handler = () => undefined;
    const error = await failure(connection.request({ ...get, timeoutMs: 50 }));
    assert.deepEqual([error.kind, error.status], ["timeout", 0]);
    assert.deepEqual(connection.counts.codes, ["<error>"]);
  });

  test("a call ends when its caller aborts", async () => {
    const controller = new AbortController();
    server.handler = () => controller.abort();
    const error = await failure(connection.request({ ...get, signal: controller.signal }));
    assert.equal(error.kind, "aborted");
  });

  test("a reset stream is a network error and the next call works", async () => {
    server.handler = (call) => call.reset();
    assert.equal((await failure(connection.request(get))).kind, "network");
    server.handler = (call) => call.answer(200, { ok: true });
    assert.deepEqual(await connection.request(get), { ok: true });
  });

  test("after every connection broke, the next calls share one new connection", async () => {
    await connection.request(get);
    server.cutConnections();
    await eventually(async () => void (await connection.request(get)));
    await Promise.all(Array.from({ length: 20 }, () => connection.request(get)));
    assert.equal(connection.counts.handshakes, 2);
  });

  test("a black hole is found by ping and the next call works", async () => {
    await connection.request(get);
    server.blackHole();
    assert.equal((await failure(connection.request(get))).kind, "network");
    assert.deepEqual(await connection.request(get), { ok: true });
  });

  test("a refused token is read again once, and the call answered with the new one", async () => {
    await connection.request(get);
    await server.rotateToken("token-2");
    assert.deepEqual(await connection.request(get), { ok: true });
    assert.deepEqual(connection.counts.codes, ["200", "401", "200"]);
  });

  test("a token that stays refused costs two calls and answers unauthorized", async () => {
    await server.rotateToken("token-2", false);
    assert.equal((await failure(connection.request(get))).kind, "unauthorized");
    assert.deepEqual(connection.counts.codes, ["401", "401"]);
  });

  test("calls refused together all succeed with the token read again", async () => {
    await connection.request(get);
    await server.rotateToken("token-2");
    await Promise.all(Array.from({ length: 30 }, () => connection.request(get)));
  });

  test("a server that does not listen is a network error until it does", async () => {
    server.stopListening();
    assert.equal((await failure(connection.request(get))).kind, "network");
    assert.equal(connection.counts.handshakes, 0);
    await server.listenAgain();
    assert.deepEqual(await connection.request(get), { ok: true });
  });

  test("a server certificate of another authority is a network error", async () => {
    const outdated = join(server.folder, "outdated-kubeconfig");
    await copyFile(server.kubeconfig, outdated);
    await server.rotateAuthority();
    const distrusting = new CountingConnection(outdated);
    assert.equal((await failure(distrusting.request(get))).kind, "network");
    assert.equal(distrusting.counts.handshakes, 0);
    assert.equal(server.calls.length, 0);
    await distrusting.close();
  });

  test("a closed connection refuses calls", async () => {
    await connection.close();
    assert.equal((await failure(connection.request(get))).kind, "network");
  });
});

describe("stream of a connection", () => {
  let server: FakeApiServer;
  let connection: CountingConnection;
  let watch: FakeWatch;
  let controller: AbortController;

  beforeEach(async () => {
    server = await FakeApiServer.start();
    connection = new CountingConnection(server.kubeconfig, { lineBytesMax: 4_096 });
    controller = new AbortController();
  });

  afterEach(async () => {
    controller.abort();
    await connection.close();
    await server.stop();
  });

  async function open(streamTimeoutMs = 10_000): Promise<AsyncGenerator> {
    const opened = Promise.withResolvers<FakeWatch>();
    server.handler = (call) => opened.resolve(call.openWatch());
    const { signal } = controller;
    const request = { path: "/things", openTimeoutMs: 5_000, streamTimeoutMs, signal };
    const lines = await connection.stream(request);
    watch = await opened.promise;
    return lines;
  }

  test("each line is one value, however the bytes are cut", async () => {
    const lines = await open();
    const bytes = Buffer.from('{"name":"杭州文字转语音"}\n\n{"n":2}\n');
    for (const byte of bytes) watch.sendBytes(Uint8Array.of(byte));
    watch.end();
    const received: unknown[] = [];
    for await (const line of lines) received.push(line);
    assert.deepEqual(received, [{ name: "杭州文字转语音" }, { n: 2 }]);
  });

  test("a line that was cut off by the end counts as never received", async () => {
    const lines = await open();
    watch.sendBytes(Buffer.from('{"n":1}\n{"n":'));
    watch.end();
    assert.deepEqual((await lines.next()).value, { n: 1 });
    assert.equal((await lines.next()).done, true);
  });

  test("a line longer than the limit is unreadable", async () => {
    const lines = await open();
    watch.sendBytes(Buffer.from("x".repeat(5_000)));
    assert.equal((await failure(lines.next())).kind, "unreadable");
    await eventually(async () => assert.equal(watch.isOpen, false));
  });

  test("a line that is no JSON is unreadable", async () => {
    const lines = await open();
    watch.sendBytes(Buffer.from("hello\n"));
    assert.equal((await failure(lines.next())).kind, "unreadable");
  });

  test("the stream ends at its own deadline, lively or not", async () => {
    const lines = await open(60);
    assert.equal((await failure(lines.next())).kind, "timeout");
  });

  test("the caller's signal ends the stream on both sides", async () => {
    const lines = await open();
    const next = failure(lines.next());
    controller.abort();
    assert.equal((await next).kind, "aborted");
    await eventually(async () => assert.equal(watch.isOpen, false));
  });

  test("a stream that nobody reads is closed by its signal", async () => {
    await open();
    controller.abort();
    await eventually(async () => assert.equal(watch.isOpen, false));
  });

  test("an open stream ends some time after its certificates were replaced", async () => {
    const options = { accessRefreshMs: 0, retireMs: 100 };
    connection = new CountingConnection(server.kubeconfig, options);
    const lines = await open();
    server.handler = (call) => call.answer(200, { ok: true });
    await server.rotateAuthority();
    assert.deepEqual(await connection.request(get), { ok: true });
    watch.send("ADDED", {});
    assert.equal((await lines.next()).done, false);
    assert.equal((await failure(lines.next())).kind, "network");
    assert.equal(connection.counts.handshakes, 2);
  });

  test("a refused watch is an ApiError with its Retry-After", async () => {
    server.handler = (call) => call.answer(429, {}, { "retry-after": "2" });
    const { signal } = controller;
    const request = { path: "/things", openTimeoutMs: 5_000, streamTimeoutMs: 1_000, signal };
    const error = await failure(connection.stream(request));
    assert.deepEqual([error.kind, error.retryAfterMs], ["throttled", 2_000]);
  });

  test("calls go on beside an open stream, on the same connection", async () => {
    await open();
    server.handler = (call) => call.answer(200, { ok: true });
    await Promise.all(Array.from({ length: 50 }, () => connection.request(get)));
    assert.equal(connection.counts.handshakes, 1);
  });
});

test("an idle connection leaves no timer behind once closed", async () => {
  const server = await FakeApiServer.start();
  server.handler = (call) => call.answer(200, {});
  const clock = new FakeClock();
  const connection = new CountingConnection(server.kubeconfig, { clock });
  await connection.request(get);
  await connection.close();
  assert.equal(clock.pendingTimerCount, 0);
  await server.stop();
});

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  try {
    await promise;
  } catch (error) {
    if (isApiError(error)) return error;
    throw error;
  }
  throw new Error("no failure");
}
