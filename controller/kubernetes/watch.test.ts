import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { WatchFixture } from "./watch-fixture.ts";

describe("watch", () => {
  let fixture: WatchFixture;

  beforeEach(async () => {
    fixture = await WatchFixture.create();
  });

  afterEach(async () => {
    await fixture.stop();
  });

  async function untilTold(...told: readonly string[]): Promise<void> {
    await eventually(async () => assert.deepEqual(fixture.told, told));
  }

  test("lists and watches by one stream", async () => {
    fixture.collection.put("a");
    fixture.collection.put("b");
    await fixture.sync();
    assert.deepEqual(fixture.told, ["added default/a", "added default/b"]);
    assert.deepEqual(fixture.lists, ["stream"]);
    fixture.collection.put("c");
    await untilTold("added default/a", "added default/b", "added default/c");
    assert.equal(fixture.server.calls.length, 1);
    assert.equal(fixture.watch.state, "watching");
    assert.equal(fixture.watch.resourceVersion, String(fixture.collection.resourceVersion));
  });

  test("what was there at the start is told as initial, what comes later is not", async () => {
    fixture.collection.put("old");
    await fixture.sync();
    fixture.collection.put("new");
    await untilTold("added default/old", "added default/new");
    const initial = fixture.events.map((event) => event.kind === "added" && event.isInitial);
    assert.deepEqual(initial, [true, false]);
  });

  test("changes and deletions are told in order, with what was before", async () => {
    await fixture.sync();
    fixture.collection.put("a", { spec: 1 });
    fixture.collection.put("a", { spec: 2 });
    fixture.collection.delete("a");
    await untilTold("added default/a", "modified default/a", "deleted default/a");
    const before = fixture.events.map((event) => event.kind !== "added" && event.before["spec"]);
    assert.deepEqual(before, [false, 1, 2]);
    assert.equal(fixture.watch.get("default/a"), undefined);
  });

  test("the cache answers by key and as a list, in objects nobody can change", async () => {
    fixture.collection.put("a", { spec: { list: [1] } });
    await fixture.sync();
    const object = fixture.watch.get("default/a");
    assert.deepEqual(object?.["spec"], { list: [1] });
    assert.deepEqual(fixture.watch.list(), [object]);
    assert.deepEqual(fixture.watch.keys(), ["default/a"]);
    const spec = object?.["spec"];
    assert.throws(() => Object.assign(spec ?? {}, { list: [] }), TypeError);
  });

  test("managedFields are not kept, unknown fields are", async () => {
    fixture.collection.put("a", { unknown: { deep: [{ x: 1 }] } });
    fixture.collection.fault = (call) => {
      const watch = call.openWatch();
      const metadata = { name: "a", namespace: "default", uid: "u", resourceVersion: "7" };
      const managedFields = [{ manager: "kubectl" }];
      watch.send("ADDED", { metadata: { ...metadata, managedFields }, unknown: 1 });
      const annotations = { "k8s.io/initial-events-end": "true" };
      watch.send("BOOKMARK", { metadata: { resourceVersion: "7", annotations } });
      return true;
    };
    await fixture.sync();
    const metadata = { name: "a", namespace: "default", uid: "u", resourceVersion: "7" };
    assert.deepEqual(fixture.watch.get("default/a"), { metadata, unknown: 1 });
  });

  test("a planned end goes on from the last version, without a list and without a gap", async () => {
    fixture.collection.put("a");
    await fixture.sync();
    for (const watch of fixture.collection.watches) watch.end();
    fixture.collection.put("b");
    await untilTold("added default/a", "added default/b");
    await eventually(async () => assert.equal(fixture.collection.watches.length, 1));
    assert.deepEqual(fixture.lists, ["stream"]);
    assert.equal(fixture.queries[1]?.get("resourceVersion"), "1001");
    assert.equal(fixture.queries[1]?.get("allowWatchBookmarks"), "true");
  });

  test("a bookmark moves the version on", async () => {
    await fixture.sync();
    fixture.collection.resourceVersion = 5_000;
    fixture.collection.bookmark();
    await eventually(async () => assert.equal(fixture.watch.resourceVersion, "5000"));
    assert.deepEqual(fixture.told, []);
  });

  test("watches are asked to end at different times", async () => {
    await fixture.sync();
    for (let count = 0; count < 8; count += 1) {
      fixture.server.cutConnections();
      await eventually(async () => {
        assert.equal(fixture.queries.length, count + 2);
        assert.equal(fixture.collection.watches.length, 1);
      });
    }
    const seconds = fixture.queries.map((query) => Number(query.get("timeoutSeconds")));
    assert.ok(seconds.every((value) => value >= 300 && value <= 600));
    assert.ok(new Set(seconds).size > 3, `all the same: ${seconds.join(" ")}`);
  });

  test("a handler that throws loses no later event", async () => {
    await fixture.stop();
    const told: string[] = [];
    fixture = await WatchFixture.create({
      onEvent: ({ key }) => {
        told.push(key);
        if (told.length === 1) throw new Error("first handler");
      },
    });
    fixture.collection.put("a");
    await fixture.sync();
    fixture.collection.put("b");
    await eventually(async () => assert.deepEqual(told, ["default/a", "default/b"]));
    assert.deepEqual(fixture.defects, ["handler"]);
    assert.equal(fixture.server.calls.length, 1);
  });

  test("an object that cannot be read keeps its last readable version, and others go on", async () => {
    await fixture.stop();
    fixture = await WatchFixture.create({
      parse: (raw) => {
        if (raw["spec"] === "bad") throw new Error("bad spec");
        return raw;
      },
    });
    fixture.collection.put("a", { spec: "good" });
    fixture.collection.put("never", { spec: "bad" });
    await fixture.sync();
    fixture.collection.put("a", { spec: "bad" });
    fixture.collection.put("b");
    await untilTold("added default/a", "added default/b");
    assert.equal(fixture.watch.get("default/a")?.["spec"], "good");
    assert.equal(fixture.watch.get("default/never"), undefined);
    assert.equal(fixture.watch.versionOf("default/a"), "1003");
    fixture.collection.put("never", { spec: "good" });
    await untilTold("added default/a", "added default/b", "added default/never");
  });

  test("stopping closes the watch at the server and ends the run", async () => {
    await fixture.sync();
    const [watch] = fixture.collection.watches;
    await fixture.stop();
    assert.equal(fixture.watch.state, "stopped");
    assert.equal(watch?.isOpen, false);
  });

  test("waiting for the first list ends with the caller's signal", async () => {
    fixture.collection.fault = () => true;
    fixture.run();
    await assert.rejects(fixture.watch.whenSynced(AbortSignal.timeout(20)), {
      name: "TimeoutError",
    });
    assert.equal(fixture.watch.hasSynced, false);
  });

  test("a refresh brings in what the running watch has not received", async () => {
    fixture.collection.put("changed", { spec: 1 });
    fixture.collection.put("deleted");
    await fixture.sync();
    fixture.collection.isDelivering = false;
    fixture.collection.put("changed", { spec: 2 });
    fixture.collection.delete("deleted");
    fixture.collection.put("new");
    await fixture.watch.refresh(AbortSignal.timeout(5_000));
    assert.deepEqual(fixture.names, ["changed", "new"]);
    assert.equal(fixture.watch.get("default/changed")?.["spec"], 2);
    assert.deepEqual(fixture.told.slice(2), [
      "deleted default/deleted",
      "modified default/changed",
      "added default/new",
    ]);
    fixture.collection.isDelivering = true;
    fixture.collection.put("later");
    await eventually(async () => assert.deepEqual(fixture.names, ["changed", "later", "new"]));
    assert.equal(fixture.collection.watches.length, 1);
  });
});
