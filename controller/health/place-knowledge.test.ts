import assert from "node:assert/strict";
import { test } from "node:test";

import { PlaceKnowledge } from "./place-knowledge.ts";

const place = {
  adapter: "adapter-1",
  address: "adapter.example:50051",
  endpoint: "https://tts.example.com",
  region: "eu",
  account: "",
};
const boundMs = 10_000;
const look = (observedAtMs: number | undefined, message = "") => ({
  realm: "realm-1",
  observedAtMs,
  message,
});

test("nothing is known before the first look, and that is old after a while", () => {
  const knowledge = new PlaceKnowledge(place, 0);
  knowledge.heard(look(undefined), 100);
  assert.equal(knowledge.freshness(100, boundMs).kind, "pending");
  assert.equal(knowledge.freshness(9_000, boundMs).kind, "stale");
});

test("knowledge is fresh from each newer look on, whatever the adapter's clock says", () => {
  const knowledge = new PlaceKnowledge(place, 0);
  knowledge.heard(look(5_000_000), 1_000);
  assert.equal(knowledge.freshness(8_000, boundMs).kind, "fresh");
  knowledge.heard(look(4_000_000), 8_000);
  assert.equal(knowledge.freshness(15_000, boundMs).kind, "fresh");
});

test("heartbeats without a newer look keep nothing fresh, and the adapter's reason is told", () => {
  const knowledge = new PlaceKnowledge(place, 0);
  for (let atMs = 0; atMs < 9_000; atMs += 1_000) {
    knowledge.heard(look(1_000, "VENDOR_TIMEOUT: no answer"), atMs);
  }
  const freshness = knowledge.freshness(9_000, boundMs);
  assert.ok(freshness.kind === "stale" && freshness.reason === "HealthStale");
  assert.match(freshness.message, /tts.example.com \(eu\).*VENDOR_TIMEOUT: no answer/);
});

test("old is said early enough to be read within the bound", () => {
  const knowledge = new PlaceKnowledge(place, 0);
  knowledge.heard(look(1), 0);
  assert.equal(knowledge.freshness(boundMs - 1_500, boundMs).kind, "stale");
});

test("a lost stream is given time to come back, then the adapter is unreachable", () => {
  const knowledge = new PlaceKnowledge(place, 0);
  knowledge.heard(look(1), 0);
  knowledge.streamLost(1_000);
  knowledge.streamLost(2_500);
  assert.equal(knowledge.freshness(2_900, boundMs).kind, "fresh");
  const freshness = knowledge.freshness(3_000, boundMs);
  assert.ok(freshness.kind === "stale" && freshness.reason === "AdapterUnreachable");
  knowledge.streamOpened(3_000);
  assert.equal(knowledge.freshness(3_100, boundMs).kind, "fresh");
});

test("the same trouble is told in the same words", () => {
  const knowledge = new PlaceKnowledge(place, 0);
  knowledge.heard(look(1), 0);
  assert.deepEqual(knowledge.freshness(9_000, boundMs), knowledge.freshness(99_000, boundMs));
});
