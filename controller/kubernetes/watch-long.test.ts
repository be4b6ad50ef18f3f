/** What shows in minutes, with a clock that makes seconds of them; `npm run soak` takes the minutes. */
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { FakeClock } from "../../services/process/fake-clock.ts";
import { WatchFixture } from "./watch-fixture.ts";

const minuteMs = 60_000;
const stepMs = 5_000;

describe("over ten minutes", () => {
  const fixtures: WatchFixture[] = [];
  after(async () => {
    for (const fixture of fixtures) await fixture.stop();
  });

  async function synced(clock: FakeClock): Promise<WatchFixture> {
    const fixture = await WatchFixture.create({ clock });
    fixtures.push(fixture);
    await fixture.sync();
    return fixture;
  }

  /** As kube-apiserver does: a bookmark each minute, and an end when the client asked for it. */
  class Server {
    readonly #fixture: WatchFixture;
    #openedAtMs = 0;
    #calls = 1;

    constructor(fixture: WatchFixture) {
      this.#fixture = fixture;
    }

    /** True when it ended the watch as it was asked to. */
    async step(nowMs: number): Promise<boolean> {
      const { collection, server, watch } = this.#fixture;
      if (server.calls.length > this.#calls) {
        this.#calls = server.calls.length;
        this.#openedAtMs = nowMs;
      }
      if (nowMs % minuteMs === 0) {
        collection.resourceVersion += 1;
        collection.bookmark();
      }
      // The clock runs faster than what is sent.
      const sent = String(collection.resourceVersion);
      await eventually(async () => assert.equal(watch.resourceVersion, sent));
      const [open] = collection.watches;
      const askedMs = Number(open?.query.get("timeoutSeconds")) * 1_000;
      if (open === undefined || nowMs - this.#openedAtMs < askedMs) return false;
      open.end();
      return true;
    }
  }

  test("busy and quiet watches end as planned and never otherwise, and miss nothing", async () => {
    const clock = new FakeClock();
    const [busy, quiet] = [await synced(clock), await synced(clock)];
    const servers = [new Server(busy), new Server(quiet)];
    let planned = 0;
    for (let nowMs = stepMs; nowMs <= 10 * minuteMs; nowMs += stepMs) {
      busy.collection.put(`map-${nowMs % 7}`, { nowMs });
      await clock.advance(stepMs);
      // A pause after a planned end is the clock's as well.
      for (const server of servers) planned += (await server.step(nowMs)) ? 1 : 0;
      await eventually(async () => {
        await clock.advance(1);
        assert.equal(busy.collection.watches.length + quiet.collection.watches.length, 2);
      });
    }
    assert.deepEqual([...busy.ends, ...quiet.ends], Array<string>(planned).fill("end"));
    assert.ok(planned >= 2 && planned <= 4, `${planned} planned ends`);
    assert.deepEqual([...busy.lists, ...quiet.lists], ["stream", "stream"]);
    assert.equal(busy.told.length, 10 * (minuteMs / stepMs));
  });

  test("an idle watch that is dropped after 240 s without a word is found, opened again, and misses nothing", async () => {
    const clock = new FakeClock();
    const fixture = await synced(clock);
    for (let minute = 0; minute < 4; minute += 1) {
      fixture.collection.resourceVersion += 1;
      fixture.collection.bookmark();
      const { resourceVersion } = fixture.collection;
      await eventually(async () => {
        assert.equal(fixture.watch.resourceVersion, String(resourceVersion));
      });
      if (minute < 3) await clock.advance(minuteMs);
    }
    // What stands between goes on answering pings, and lets nothing else through.
    fixture.collection.isDelivering = false;
    fixture.collection.put("missed");
    await clock.advance(75_000);
    await eventually(async () => {
      await clock.advance(10);
      assert.deepEqual(fixture.told, ["added default/missed"]);
    });
    assert.deepEqual(fixture.ends, ["timeout"]);
    assert.deepEqual(fixture.lists, ["stream"]);
  });
});
