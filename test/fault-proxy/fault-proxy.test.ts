/** The proxy before a scripted API server, seen by a client that hides nothing of the wire. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { afterEach, beforeEach, describe, test } from "node:test";

import { FakeApiServer } from "../../controller/kubernetes/fake-api-server.ts";
import type { FakeCall, FakeWatch } from "../../controller/kubernetes/fake-api-server.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { FaultProxy } from "./fault-proxy.ts";
import type { Fault, RequestMatch } from "./fault-rule.ts";
import { RawClient } from "./raw-client.ts";
import type { RawCall } from "./raw-client.ts";

const path = "/apis/example.com/v1/shows";
const watchPath = `${path}?watch=true`;

let server: FakeApiServer;
let proxy: FaultProxy;
let client: RawClient;
let others: RawClient[] = [];
let watches: FakeWatch[] = [];

beforeEach(async () => {
  server = await FakeApiServer.start();
  watches = [];
  server.handler = (call) => {
    if (call.query.get("watch") === "true") watches.push(call.openWatch());
    else call.answer(200, echoOf(call));
  };
  proxy = await FaultProxy.start(server.kubeconfig);
  client = await connected();
});
afterEach(async () => {
  for (const other of others) other.close();
  others = [];
  await proxy.stop();
  await server.stop();
});

async function connected(): Promise<RawClient> {
  const other = await RawClient.connect(proxy.kubeconfig, "token-1");
  others.push(other);
  return other;
}

function echoOf({ method, body }: Pick<FakeCall, "method" | "body">): object {
  return { method, body, city: "杭州" };
}

function rule(fault: Fault, match: RequestMatch = {}): void {
  proxy.setRules([{ match, fault }]);
}

async function openWatch(from: RawClient = client): Promise<{ call: RawCall; watch: FakeWatch }> {
  const before = watches.length;
  const call = from.call(watchPath);
  const watch = await eventually(async () => {
    const opened = watches[before];
    assert.ok(opened);
    return opened;
  });
  return { call, watch };
}

function untilText(call: RawCall, text: string | RegExp): Promise<void> {
  return eventually(async () =>
    typeof text === "string" ? assert.equal(call.text, text) : assert.match(call.text, text),
  );
}

describe("without rules", () => {
  test("a request passes both ways, its token as well, and is seen", async () => {
    const { status, text } = await client.ask(path, "PATCH", { a: "杭州" });
    assert.equal(status, 200);
    assert.deepEqual(JSON.parse(text), { method: "PATCH", body: { a: "杭州" }, city: "杭州" });
    assert.equal(server.calls[0]?.headers.authorization, "Bearer token-1");
    const stranger = await RawClient.connect(proxy.kubeconfig, "wrong");
    others.push(stranger);
    assert.equal((await stranger.ask(path)).status, 401);
    const seen = proxy.seen.list().map(({ method, path, status }) => [method, path, status]);
    assert.deepEqual(seen, [
      ["PATCH", path, 200],
      ["GET", path, 401],
    ]);
    assert.ok(proxy.seen.list().every(({ endedAtMs, atMs }) => (endedAtMs ?? 0) >= atMs));
    assert.deepEqual([proxy.seen.busiestMinute(), proxy.seen.watchesOpened()], [2, 0]);
  });

  test("a watch stays open, and its end reaches the other side from either", async () => {
    const first = await openWatch();
    first.watch.send("ADDED", { city: "杭州" });
    await untilText(first.call, `${JSON.stringify({ type: "ADDED", object: { city: "杭州" } })}\n`);
    const second = await openWatch();
    assert.deepEqual([proxy.seen.watchesOpened(), proxy.seen.watchesOpen], [2, 2]);
    first.watch.end();
    await eventually(async () => assert.equal(first.call.ended, "end"));
    second.call.stream.close();
    await eventually(async () => assert.equal(second.watch.isOpen, false));
    assert.equal(proxy.seen.watchesOpen, 0);
  });

  test("a connection ends with the API server's, and a new one works", async () => {
    await openWatch();
    const closed = once(client.session, "close");
    server.cutConnections();
    await closed;
    assert.equal((await (await connected()).ask(path)).status, 200);
  });
});

describe("answers in the API server's place", () => {
  for (const [status, reason] of [
    [401, "Unauthorized"],
    [409, "Conflict"],
    [410, "Expired"],
    [429, "TooManyRequests"],
    [500, "InternalError"],
    [503, "ServiceUnavailable"],
  ] as const) {
    test(`${status} is a Status, and nothing reaches the API server`, async () => {
      rule({ kind: "status", status, reason, retryAfterSeconds: 3 });
      const answer = await client.ask(path, "POST", {});
      const { code, reason: said, details } = JSON.parse(answer.text);
      assert.deepEqual([answer.status, code, said], [status, status, reason]);
      assert.equal(answer.headers["retry-after"], "3");
      assert.deepEqual(details, { retryAfterSeconds: 3 });
      assert.equal(server.calls.length, 0);
    });
  }

  test("410 as an event ends a watch that was accepted", async () => {
    rule({ kind: "watch-error", status: 410, reason: "Expired" }, { isWatch: true });
    const { status, text, ended } = await client.ask(watchPath);
    const { type, object } = JSON.parse(text);
    assert.deepEqual([status, ended, type, object.code], [200, "end", "ERROR", 410]);
  });

  test("an old list is sent again, whatever there is now", async () => {
    rule({ kind: "record", as: "old" });
    const { text } = await client.ask(path);
    server.handler = (call) => call.answer(200, "new");
    assert.ok(proxy.hasRecord("old"));
    rule({ kind: "replay", of: "old", afterwards: "end" });
    assert.equal((await client.ask(path)).text, text);
    proxy.setRules([]);
    assert.equal((await client.ask(path)).text, "new");
  });

  test("old events are sent again, before silence or before the present", async () => {
    rule({ kind: "record", as: "old" });
    const first = await openWatch();
    first.watch.send("ADDED", { at: 1 });
    await untilText(first.call, /1/);
    const old = first.call.text;
    proxy.setRules([]);
    first.watch.send("ADDED", { at: 3 });
    await untilText(first.call, /3/);
    rule({ kind: "replay", of: "old", afterwards: "hold" });
    const silent = client.call(watchPath);
    await untilText(silent, old);
    assert.equal(silent.ended, "open");
    assert.equal(watches.length, 1);
    rule({ kind: "replay", of: "old", afterwards: "live" });
    const live = await openWatch();
    live.watch.send("ADDED", { at: 2 });
    await untilText(live.call, `${old}${old.replace("1", "2")}`);
  });
});

describe("on the way", () => {
  test("a delay holds up what it is meant for alone", async () => {
    rule({ kind: "delay", ms: 300 }, { methods: ["PATCH"] });
    const startMs = performance.now();
    await client.ask(path);
    const quickMs = performance.now() - startMs;
    await client.ask(path, "PATCH", {});
    assert.ok(performance.now() - startMs >= 300 && quickMs < 300);
  });

  test("a dropped request is neither passed on nor answered, and others are", async () => {
    rule({ kind: "drop" }, { methods: ["PUT"] });
    const dropped = client.call(path, "PUT", {});
    assert.equal((await client.ask(path)).status, 200);
    assert.deepEqual([dropped.ended, dropped.status, server.calls.length], ["open", undefined, 1]);
  });

  test("a stream is reset with the code, after the bytes", async () => {
    rule({ kind: "reset", code: 11, afterBytes: 0 });
    assert.equal((await client.ask(path)).ended, 11);
    rule({ kind: "reset", code: 7, afterBytes: 5 });
    const { ended, text } = await client.ask(path);
    assert.deepEqual([ended, text], [7, '{"met']);
    assert.equal(await client.isAlive(), true);
  });

  test("a connection is cut after the bytes, in the middle of an answer", async () => {
    rule({ kind: "cut", afterBytes: 7 });
    const { ended, text } = await client.ask(path);
    assert.equal(text, '{"metho');
    assert.notEqual(ended, "end");
    await eventually(async () => assert.equal(client.session.destroyed, true));
  });

  test("GOAWAY is said with its code, and the request still served", async () => {
    rule({ kind: "goaway", code: 0 }, { nth: 1 });
    const { status } = await client.ask(path);
    assert.deepEqual([status, client.goaways[0]], [200, 0]);
  });

  test("a half-open connection answers nothing, not even pings; another one works", async () => {
    rule({ kind: "half-open" }, { nth: 1 });
    const lost = client.call(path);
    await eventually(async () => assert.equal(await client.isAlive(), false));
    assert.deepEqual([lost.ended, client.session.destroyed], ["open", false]);
    assert.equal((await (await connected()).ask(path)).status, 200);
  });

  for (const how of ["reset", "cut", "silence"] as const) {
    test(`an answer is lost by ${how} when all is done`, async () => {
      rule({ kind: "lose-answer", how });
      const lost = client.call(path, "POST", {});
      await eventually(async () => assert.equal(server.calls.length, 1));
      if (how === "silence") assert.equal(await client.isAlive(), true);
      else await eventually(async () => assert.notEqual(lost.ended, "open"));
      assert.deepEqual([lost.status, lost.text], [undefined, ""]);
    });
  }

  test("one text stands in for another, in calls and on watches from before", async () => {
    const { call, watch } = await openWatch();
    rule({ kind: "rewrite", text: "PATCH", by: "patched" });
    assert.equal(JSON.parse((await client.ask(path, "PATCH", {})).text).method, "patched");
    watch.send("ADDED", { was: "PATCH", city: "杭州" });
    await untilText(call, /"was":"patched","city":"杭州"/);
  });

  test("chunks end inside characters, and together are what was sent", async () => {
    rule({ kind: "split" });
    const { chunks, text } = await client.ask(path);
    assert.match(text, /杭州/);
    assert.ok(chunks.length > 1);
    assert.ok(chunks[0]?.toString("utf8").endsWith("\ufffd"));
    const { call, watch } = await openWatch();
    watch.send("ADDED", { city: "杭州" });
    await untilText(call, /"杭州"\}\}\n$/);
    assert.ok(call.chunks[0]?.toString("utf8").endsWith("\ufffd"));
  });
});

describe("a watch's lines", () => {
  test("wait while a rule holds them, also on a watch from before, and come in order", async () => {
    const { call, watch } = await openWatch();
    watch.send("ADDED", { at: 1 });
    await untilText(call, /1/);
    rule({ kind: "hold-events" }, { path: "/shows$" });
    watch.send("ADDED", { at: 2 });
    watch.send("BOOKMARK", { at: 3 });
    assert.equal((await client.ask(path)).status, 200);
    assert.doesNotMatch(call.text, /2|3/);
    proxy.setRules([]);
    watch.send("ADDED", { at: 4 });
    await untilText(call, /1.*\n.*2.*\n.*3.*\n.*4.*\n/);
  });

  test("lose bookmarks, the end of a streaming list only where that is told", async () => {
    const { call, watch } = await openWatch();
    const end = { end: true, metadata: { annotations: { "k8s.io/initial-events-end": "true" } } };
    rule({ kind: "drop-bookmarks", which: "later" });
    watch.send("BOOKMARK", { at: 1 });
    watch.send("BOOKMARK", end);
    await untilText(call, /^.*"end":true.*\n$/);
    rule({ kind: "drop-bookmarks", which: "all" });
    watch.send("BOOKMARK", end);
    watch.send("ADDED", { at: 2 });
    await untilText(call, /^.*"end":true.*\n.*"at":2.*\n$/);
  });
});

describe("the whole proxy", () => {
  test("paused it answers nothing and closes nothing; resumed, old and new go on", async () => {
    const { call, watch } = await openWatch();
    proxy.pause();
    watch.send("ADDED", { at: 1 });
    const asked = client.call(path);
    const newcomer = connected();
    assert.equal(await client.isAlive(), false);
    assert.deepEqual([call.text, asked.status], ["", undefined]);
    proxy.resume();
    await untilText(call, /1/);
    await eventually(async () => assert.equal(asked.status, 200));
    assert.equal((await (await newcomer).ask(path)).status, 200);
  });

  test("a pause may end with the loss of old connections", async () => {
    await openWatch();
    proxy.pause();
    const closed = once(client.session, "close");
    proxy.resume({ isLossless: false });
    await closed;
    assert.equal((await (await connected()).ask(path)).status, 200);
  });

  test("cut it closes all connections and lets no new one through", async () => {
    const closed = once(client.session, "close");
    proxy.cut();
    await closed;
    await assert.rejects(connected());
    proxy.resume();
    assert.equal((await (await connected()).ask(path)).status, 200);
    assert.equal(proxy.connectionCount, 3);
  });
});
