import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import { Availability, State } from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { WatchHealthResponseSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { FakeClock } from "../../services/process/fake-clock.ts";
import type { Placement } from "../resource/placement.ts";
import { HealthBook } from "./health-book.ts";
import type { News, WatchedPlacement } from "./health-book.ts";
import type { HealthSession, WatchedPlace } from "./place-knowledge.ts";

const place: WatchedPlace = {
  adapter: "adapter-1",
  address: "adapter.example:50051",
  endpoint: "https://tts.example.com",
  region: "eu",
  account: "",
};
const target = { endpoint: place.endpoint, region: place.region, account: place.account };
const boundMs = 10_000;
const session = (): HealthSession => ({ places: [place] });

function placed(providerID: string): WatchedPlacement {
  const placement: Placement = {
    class: "a",
    ...target,
    realm: "realm-1",
    providerID,
    state: "Recorded",
    unknown: {},
  };
  return { place, placement, boundMs };
}

type Event = NonNullable<MessageInitShape<typeof WatchHealthResponseSchema>["event"]>;
const instance = (providerId: string, availability: Availability = Availability.AVAILABLE) => ({
  providerId,
  realm: "realm-1",
  state: State.READY,
  health: { availability },
});
const snapshot = (...ids: readonly string[]): Event => ({
  case: "snapshot",
  value: { instances: ids.map((id) => instance(id)), isLast: true },
});
const heartbeat = (atMs: number): Event => ({
  case: "heartbeat",
  value: { targets: [{ target, realm: "realm-1", observedAt: timestampFromMs(atMs) }] },
});

class Bench {
  readonly clock = new FakeClock();
  placesCount = 0;
  readonly news: [key: string, news: News][] = [];
  readonly book = new HealthBook({
    clock: this.clock,
    onNews: (key, news) => void this.news.push([key, news]),
    onPlaces: () => void (this.placesCount += 1),
  });

  tell(from: HealthSession, ...events: readonly Event[]): void {
    for (const event of events) this.book.apply(from, create(WatchHealthResponseSchema, { event }));
  }
}

test("what a look has shown is seen, with the time of the latest look", () => {
  const bench = new Bench();
  const { book } = bench;
  book.watch("ns/a", [placed("i-1")]);
  assert.equal(book.view(placed("i-1")).kind, "pending");
  bench.tell(session(), snapshot("i-1"), heartbeat(5_000));
  const view = book.view(placed("i-1"));
  assert.ok(view.kind === "seen" && view.instance.availability === "AVAILABLE");
  assert.equal(view.readAtMs, 5_000);
  assert.equal(book.view(placed("i-2")).kind, "unseen");
});

test("a change is news to the objects that record the instance, and to no others", () => {
  const bench = new Bench();
  const stream = session();
  bench.book.watch("ns/a", [placed("i-1")]);
  bench.book.watch("ns/b", [placed("i-2")]);
  bench.tell(stream, snapshot("i-1", "i-2"), heartbeat(1));
  bench.news.length = 0;
  const changed = [instance("i-2", Availability.UNAVAILABLE), instance("i-3")];
  bench.tell(stream, { case: "change", value: { changed } });
  assert.deepEqual(bench.news, [["ns/b", "health"]]);
});

test("an instance that carries another object's key is to be looked at by those who record it", () => {
  const bench = new Bench();
  const stream = session();
  for (const key of ["ns/a", "ns/b"]) bench.book.watch(key, [placed("i-1")]);
  bench.tell(stream, snapshot("i-1"), heartbeat(1));
  bench.news.length = 0;
  const changed = { ...instance("i-1"), instanceKey: "fleet/ns/b" };
  bench.tell(stream, { case: "change", value: { changed: [changed] } });
  assert.deepEqual(bench.news, [
    ["ns/a", "look"],
    ["ns/b", "health"],
  ]);
});

test("what is gone is to be looked for", () => {
  const bench = new Bench();
  const stream = session();
  bench.book.watch("ns/a", [placed("i-1")]);
  bench.tell(stream, snapshot("i-1"), heartbeat(1));
  bench.news.length = 0;
  bench.tell(stream, { case: "change", value: { gone: [instance("i-1")] } });
  assert.deepEqual(bench.news, [["ns/a", "look"]]);
  assert.equal(bench.book.view(placed("i-1")).kind, "unseen");
});

test("a snapshot that came before the first whole look makes nothing gone; the whole look does", () => {
  const bench = new Bench();
  bench.book.watch("ns/a", [placed("i-1")]);
  bench.book.watch("ns/b", [placed("i-2")]);
  bench.tell(session(), snapshot("i-1", "i-2"), heartbeat(1));
  bench.news.length = 0;
  const second = session();
  bench.tell(second, snapshot());
  assert.deepEqual(bench.news, []);
  bench.tell(second, { case: "change", value: { changed: [instance("i-1")] } }, heartbeat(2));
  assert.deepEqual(bench.news, [
    ["ns/a", "health"],
    ["ns/b", "look"],
  ]);
});

test("growing old is news once, and becoming fresh again too", async () => {
  const bench = new Bench();
  const stream = session();
  bench.book.watch("ns/a", [placed("i-1")]);
  bench.tell(stream, snapshot("i-1"), heartbeat(1));
  bench.book.tick();
  bench.news.length = 0;
  const { placesCount } = bench;
  await bench.clock.advance(9_000);
  bench.book.tick();
  bench.book.tick();
  assert.equal(bench.placesCount, placesCount + 1);
  assert.deepEqual(bench.news, [["ns/a", "health"]]);
  assert.equal(bench.book.view(placed("i-1")).kind, "stale");
  bench.tell(stream, heartbeat(2));
  bench.book.tick();
  assert.equal(bench.news.length, 2);
  assert.equal(bench.book.view(placed("i-1")).kind, "seen");
});

test("a lost stream makes its places unreachable after a moment", async () => {
  const bench = new Bench();
  const stream = session();
  bench.book.watch("ns/a", [placed("i-1")]);
  bench.tell(stream, snapshot("i-1"), heartbeat(1));
  bench.book.lost(stream);
  await bench.clock.advance(2_500);
  const view = bench.book.view(placed("i-1"));
  assert.ok(view.kind === "stale" && view.reason === "AdapterUnreachable");
});

test("usage alone is news of its own, and health news at a bounded rate", async () => {
  const bench = new Bench();
  const stream = session();
  bench.book.watch("ns/a", [placed("i-1")]);
  bench.tell(stream, snapshot("i-1"), heartbeat(1));
  bench.news.length = 0;
  for (let used = 1n; used <= 5n; used += 1n) {
    const changed = { ...instance("i-1"), usage: { calls: { used } } };
    bench.tell(stream, { case: "change", value: { changed: [changed] } });
    bench.book.tick();
  }
  assert.equal(bench.news.length, 5);
  for (const news of bench.news) assert.deepEqual(news, ["ns/a", "usage"]);
  await bench.clock.advance(30_000);
  bench.tell(stream, heartbeat(2));
  bench.book.tick();
  assert.deepEqual(bench.news.at(-1), ["ns/a", "health"]);
  const view = bench.book.view(placed("i-1"));
  assert.ok(view.kind === "seen" && view.instance.usage.calls?.["used"] === 5);
});

test("places that no object is recorded at are forgotten", () => {
  const { book } = new Bench();
  book.watch("ns/a", [placed("i-1")]);
  assert.deepEqual([...book.placesInUse()], [["adapter-1", [place]]]);
  book.watch("ns/a", []);
  assert.deepEqual([...book.placesInUse()], []);
  assert.equal(book.view(placed("i-1")).kind, "unwatched");
});

test("an adapter without WatchHealth leaves its places unwatched", () => {
  const { book } = new Bench();
  book.watch("ns/a", [placed("i-1")]);
  book.unsupported(session());
  assert.equal(book.view(placed("i-1")).kind, "unwatched");
});
