import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { systemClock } from "../../services/process/clock.ts";
import { FakeClock } from "../../services/process/fake-clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { statusBody } from "./fake-api-server.ts";
import type { FakeCall } from "./fake-api-server.ts";
import { Watch } from "./watch.ts";
import { isPlainWatch, isStreamingList, WatchFixture } from "./watch-fixture.ts";
import type { WatchLimits } from "./watch-options.ts";

describe("watch under faults", () => {
  let fixture: WatchFixture;

  beforeEach(async () => {
    fixture = await WatchFixture.create();
  });

  afterEach(async () => {
    await fixture.stop();
  });

  async function recreate(limits: Partial<WatchLimits>): Promise<void> {
    await fixture.stop();
    fixture = await WatchFixture.create({ limits });
  }

  async function untilTold(...told: readonly string[]): Promise<void> {
    await eventually(async () => assert.deepEqual(fixture.told, told));
  }

  for (const how of ["as HTTP status", "as ERROR event"]) {
    test(`410 ${how} lists again, and what changed meanwhile is told`, async () => {
      fixture.collection.put("changed", { spec: 1 });
      fixture.collection.put("deleted");
      fixture.collection.put("same");
      await fixture.sync();
      fixture.collection.isDelivering = false;
      fixture.collection.put("changed", { spec: 2 });
      fixture.collection.delete("deleted");
      fixture.collection.put("new");
      fixture.collection.compact();
      fixture.collection.isDelivering = true;
      const gone = statusBody(410, "Expired");
      if (how === "as ERROR event") fixture.collection.watches[0]?.send("ERROR", gone);
      else fixture.server.cutConnections();
      await eventually(async () =>
        assert.deepEqual(fixture.told.slice(3).toSorted(), [
          "added default/new",
          "deleted default/deleted",
          "modified default/changed",
        ]),
      );
      assert.deepEqual(fixture.lists, ["stream", "stream"]);
    });
  }

  test("an object deleted and made again during a gap is a delete and an add", async () => {
    fixture.collection.put("a", { spec: 1 });
    await fixture.sync();
    fixture.collection.isDelivering = false;
    fixture.collection.delete("a");
    fixture.collection.put("a", { spec: 2 });
    fixture.collection.compact();
    fixture.server.cutConnections();
    await untilTold("added default/a", "deleted default/a", "added default/a");
    assert.equal(fixture.watch.get("default/a")?.["spec"], 2);
  });

  test("an identical relist tells nothing", async () => {
    for (let count = 0; count < 50; count += 1) fixture.collection.put(`object-${count}`);
    await fixture.sync();
    fixture.told.length = 0;
    fixture.collection.compact();
    fixture.collection.watches[0]?.send("ERROR", statusBody(410, "Expired"));
    await eventually(async () => assert.deepEqual(fixture.lists, ["stream", "stream"]));
    fixture.collection.put("after");
    await untilTold("added default/after");
  });

  const failures = [401, 403, 429, 500, 503, 504];
  for (const status of failures) {
    test(`${status} when listing is retried until it succeeds`, async () => {
      fixture.failNext(3, (call) => call.answer(status, statusBody(status, "")));
      fixture.collection.put("a");
      await fixture.sync();
      assert.deepEqual(fixture.names, ["a"]);
    });

    test(`${status} when watching is retried, and nothing is missed`, async () => {
      await fixture.sync();
      fixture.failNext(3, (call) => call.answer(status, statusBody(status, "")), isPlainWatch);
      fixture.server.cutConnections();
      fixture.collection.put("a");
      await untilTold("added default/a");
      assert.deepEqual(fixture.lists, ["stream"]);
    });
  }

  test("a watch that goes on failing at one version lists again", async () => {
    await fixture.sync();
    fixture.collection.fault = (call) => {
      if (!isPlainWatch(call)) return false;
      call.answer(500, statusBody(500, "InternalError"));
      return true;
    };
    fixture.collection.isDelivering = false;
    fixture.server.cutConnections();
    fixture.collection.put("a");
    await untilTold("added default/a");
    assert.deepEqual(fixture.lists, ["stream", "stream"]);
  });

  for (const isList of [true, false]) {
    test(`Retry-After is obeyed by ${isList ? "list" : "watch"}`, async () => {
      const waits: number[] = [];
      const clock = {
        ...systemClock,
        sleep: async (delayMs: number) => void waits.push(delayMs),
      };
      await fixture.stop();
      fixture = await WatchFixture.create({ clock });
      const throttled = (call: FakeCall): void =>
        call.answer(429, statusBody(429, "TooManyRequests"), { "retry-after": "3" });
      if (isList) {
        fixture.failNext(1, throttled);
        await fixture.sync();
      } else {
        await fixture.sync();
        fixture.failNext(1, throttled, isPlainWatch);
        fixture.server.cutConnections();
        await eventually(async () => assert.equal(fixture.collection.watches.length, 1));
      }
      const longest = Math.max(...waits);
      assert.ok(longest >= 3_000 && longest <= 3_300, `waited ${longest} ms`);
    });
  }

  test("an unknown resource is a state of its own, left when the resource appears", async () => {
    fixture.collection.put("a");
    let isKnown = false;
    fixture.collection.fault = (call) => {
      if (isKnown) return false;
      call.answer(404, "404 page not found");
      return true;
    };
    fixture.run();
    await eventually(async () => assert.equal(fixture.watch.state, "waiting-for-crd"));
    await eventually(async () => assert.ok(fixture.server.calls.length > 2));
    assert.equal(fixture.watch.state, "waiting-for-crd");
    assert.equal(fixture.watch.hasSynced, false);
    assert.equal(fixture.watch.lastError?.kind, "not-found");
    isKnown = true;
    await eventually(async () => assert.equal(fixture.watch.state, "watching"));
    assert.deepEqual(fixture.names, ["a"]);
    assert.equal(fixture.watch.lastError, undefined);
  });

  test("a line cut inside a character loses nothing", async () => {
    await fixture.sync();
    fixture.collection.isDelivering = false;
    const object = fixture.collection.put("a", { spec: "杭州" });
    const line = Buffer.from(JSON.stringify({ type: "ADDED", object }));
    const [watch] = fixture.collection.watches;
    watch?.sendBytes(line.subarray(0, line.length - 4));
    watch?.end();
    await untilTold("added default/a");
    assert.equal(fixture.watch.get("default/a")?.["spec"], "杭州");
  });

  test("a line that is no event is retried from the last version", async () => {
    await fixture.sync();
    fixture.collection.watches[0]?.sendBytes(Buffer.from("<html>\n"));
    await eventually(async () => assert.deepEqual(fixture.ends, ["unreadable"]));
    fixture.collection.put("a");
    await untilTold("added default/a");
    assert.deepEqual(fixture.lists, ["stream"]);
  });

  test("an older object after a newer one is ignored, as object and as deletion", async () => {
    await fixture.sync();
    const older = fixture.collection.put("a", { spec: "older" });
    fixture.collection.put("a", { spec: "newer" });
    await untilTold("added default/a", "modified default/a");
    const [watch] = fixture.collection.watches;
    watch?.send("MODIFIED", older);
    watch?.send("DELETED", older);
    fixture.collection.delete("a");
    await untilTold("added default/a", "modified default/a", "deleted default/a");
    watch?.send("ADDED", older);
    fixture.collection.put("b");
    await eventually(async () => assert.deepEqual(fixture.names, ["b"]));
  });

  test("events sent again after a reconnect tell nothing", async () => {
    await fixture.sync();
    const object = fixture.collection.put("a");
    await untilTold("added default/a");
    fixture.collection.watches[0]?.send("ADDED", object);
    fixture.collection.watches[0]?.send("MODIFIED", object);
    fixture.collection.put("b");
    await untilTold("added default/a", "added default/b");
  });

  test("a watch silent for 75 s after a bookmark is opened again", async () => {
    const clock = new FakeClock();
    await fixture.stop();
    fixture = await WatchFixture.create({ clock });
    await fixture.sync();
    fixture.collection.resourceVersion = 2_000;
    fixture.collection.bookmark();
    await eventually(async () => assert.equal(fixture.watch.resourceVersion, "2000"));
    fixture.collection.isDelivering = false;
    fixture.collection.put("missed");
    await clock.advance(74_000);
    assert.equal(fixture.server.calls.length, 1);
    await clock.advance(1_000);
    await eventually(async () => {
      await clock.advance(10);
      assert.deepEqual(fixture.told, ["added default/missed"]);
    });
    assert.deepEqual(fixture.ends, ["timeout"]);
    assert.deepEqual(fixture.lists, ["stream"]);
  });

  test("a watch opened again is quiet until its own first bookmark", async () => {
    const clock = new FakeClock();
    await fixture.stop();
    fixture = await WatchFixture.create({ clock });
    await fixture.sync();
    fixture.collection.resourceVersion = 2_000;
    fixture.collection.bookmark();
    await eventually(async () => assert.equal(fixture.watch.resourceVersion, "2000"));
    await clock.advance(1_000);
    fixture.collection.watches[0]?.end();
    await eventually(async () => assert.equal(fixture.server.calls.length, 2));
    await clock.advance(290_000);
    fixture.collection.put("a");
    await untilTold("added default/a");
    assert.equal(fixture.server.calls.length, 2);
  });

  test("a quiet watch of a server that sends no bookmarks is left alone", async () => {
    const clock = new FakeClock();
    await fixture.stop();
    fixture = await WatchFixture.create({ clock });
    await fixture.sync();
    await clock.advance(300_000);
    fixture.collection.put("a");
    await untilTold("added default/a");
    assert.equal(fixture.server.calls.length, 1);
  });

  test("a black hole is found by ping and nothing is missed", async () => {
    await fixture.sync();
    fixture.server.blackHole();
    fixture.collection.put("a");
    await eventually(async () => assert.deepEqual(fixture.told, ["added default/a"]), 15_000);
    assert.equal(fixture.connection.counts.handshakes, 2);
  });

  test("versions set back by a restored backup are believed after some lists", async () => {
    await recreate({ staleListsMax: 3 });
    fixture.collection.resourceVersion = 9_000;
    fixture.collection.put("kept");
    fixture.collection.put("lost");
    await fixture.sync();
    const { epoch } = fixture.watch;
    fixture.collection.delete("lost");
    await eventually(async () => assert.deepEqual(fixture.names, ["kept"]));
    fixture.collection.resourceVersion = 500;
    fixture.collection.put("kept", { spec: "older" });
    fixture.collection.put("restored");
    const tooLarge = statusBody(504, "Timeout", {
      causes: [{ reason: "ResourceVersionTooLarge" }],
    });
    fixture.failNext(99, (call) => call.answer(504, tooLarge), isPlainWatch);
    fixture.server.cutConnections();
    await eventually(async () => assert.deepEqual(fixture.names, ["kept", "restored"]));
    assert.equal(fixture.watch.resourceVersion, "502");
    assert.deepEqual(fixture.ends, ["network", "timeout", "server", "server"]);
    assert.equal(fixture.watch.epoch, epoch + 1);
    assert.equal(fixture.watch.get("default/kept")?.["spec"], "older");
    fixture.collection.put("later");
    await eventually(async () => assert.ok(fixture.names.includes("later")));
  });

  test("one lagging answer does not set the cache back", async () => {
    fixture.collection.put("a", { spec: "new" });
    await fixture.sync();
    const stale = (call: FakeCall): void => {
      const watch = call.openWatch();
      const annotations = { "k8s.io/initial-events-end": "true" };
      watch.send("BOOKMARK", { metadata: { resourceVersion: "900", annotations } });
    };
    fixture.failNext(1, stale, isStreamingList);
    fixture.collection.watches[0]?.send("ERROR", statusBody(410, "Expired"));
    await eventually(async () => assert.equal(fixture.lists.length, 3));
    assert.deepEqual(fixture.told, ["added default/a"]);
  });

  test("a watch that ends at once each time is opened again after a pause only", async () => {
    const clock = new FakeClock();
    await fixture.stop();
    fixture = await WatchFixture.create({ clock, limits: { retryMsMin: 200, retryMsMax: 200 } });
    fixture.collection.fault = (call) => {
      if (!isPlainWatch(call)) return false;
      call.openWatch().end();
      return true;
    };
    await fixture.sync();
    fixture.server.cutConnections();
    for (let opened = 1; opened < 5; opened += 1) {
      await eventually(async () => assert.equal(fixture.ends.length, opened));
      assert.equal(fixture.server.calls.length, opened);
      await clock.advance(200);
    }
  });

  test("a failing watch leaves the pace of others on the same connection alone", async () => {
    fixture.collection.put("a");
    const failing = new Watch({
      connection: fixture.connection,
      path: "/apis/example.com/v1/broken",
      parse: (raw) => raw,
      onEvent: () => undefined,
      clock: systemClock,
      random: Math.random,
      log: silentLog,
      limits: { retryMsMin: 1, retryMsMax: 1 },
    });
    const stopping = new AbortController();
    fixture.collection.fault = (call) => {
      if (!call.path.endsWith("/broken")) return false;
      call.answer(500, statusBody(500, "InternalError"));
      return true;
    };
    const run = failing.run(stopping.signal);
    await fixture.sync();
    for (let count = 0; count < 20; count += 1) {
      const startMs = performance.now();
      fixture.collection.put("a", { spec: count });
      await eventually(async () => assert.equal(fixture.watch.get("default/a")?.["spec"], count));
      assert.ok(performance.now() - startMs < 1_000);
    }
    assert.equal(fixture.collection.watches.length, 1);
    assert.equal(failing.hasSynced, false);
    stopping.abort();
    await run;
  });
});
