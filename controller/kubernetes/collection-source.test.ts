import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { statusBody } from "./fake-api-server.ts";
import type { FakeCall } from "./fake-api-server.ts";
import { isStreamingList, WatchFixture } from "./watch-fixture.ts";
import type { WatchLimits } from "./watch-options.ts";

describe("list of a watch", () => {
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

  test("a streaming list without end bookmark falls back to pages", async () => {
    await recreate({ initialSilenceMs: 40, pageSize: 2 });
    fixture.collection.isEndBookmarkSent = false;
    for (const name of ["a", "b", "c", "d", "e"]) fixture.collection.put(name);
    await fixture.sync();
    assert.deepEqual(fixture.names, ["a", "b", "c", "d", "e"]);
    assert.deepEqual(fixture.lists, ["pages"]);
    const pages = fixture.queries.filter((query) => !query.has("watch"));
    assert.deepEqual(
      pages.map((query) => [query.get("limit"), query.get("continue")]),
      [
        ["2", null],
        ["2", "2"],
        ["2", "4"],
      ],
    );
    fixture.collection.put("f");
    await eventually(async () => assert.equal(fixture.names.length, 6));
    assert.equal(fixture.watch.get("default/a")?.["kind"], "Widget");
  });

  test("a streaming list that trickles on without end falls back to pages", async () => {
    await recreate({ initialSilenceMs: 5_000, initialTotalMs: 50 });
    fixture.collection.isEndBookmarkSent = false;
    fixture.run();
    let count = 0;
    await eventually(async () => {
      count += 1;
      fixture.collection.put(`object-${count}`);
      assert.deepEqual(fixture.lists, ["pages"]);
    });
  });

  test("a server that refuses streaming lists is listed in pages", async () => {
    fixture.failNext(1, (call) => call.answer(422, statusBody(422, "Invalid")), isStreamingList);
    fixture.collection.put("a");
    await fixture.sync();
    assert.deepEqual(fixture.lists, ["pages"]);
    assert.deepEqual(fixture.names, ["a"]);
  });

  test("a snapshot compacted between two pages is listed again without pages", async () => {
    await recreate({ initialSilenceMs: 40, pageSize: 1 });
    fixture.collection.isEndBookmarkSent = false;
    for (const name of ["a", "b", "c"]) fixture.collection.put(name);
    const expired = (call: FakeCall): void => call.answer(410, statusBody(410, "Expired"));
    fixture.failNext(1, expired, ({ query }) => query.has("continue"));
    await fixture.sync();
    assert.deepEqual(fixture.names, ["a", "b", "c"]);
    const lists = fixture.queries.filter((query) => !query.has("watch"));
    assert.deepEqual(
      lists.map((query) => query.get("limit")),
      ["1", "1", null],
    );
  });
});
