import assert from "node:assert/strict";
import { test } from "node:test";

import { DoubtLedger } from "./doubt.ts";
import { InheritedDoubt } from "./inherited-doubt.ts";

const times = { mutationDeadlineMs: 1_000, visibilityLagMs: 200, clockSkewMs: 30 };
const settlingMs = 1_230;

test("doubt lasts until not_after and all that can follow it have passed", () => {
  const doubts = new DoubtLedger();
  doubts.begin("media/one", "realm-1", 5_000, times);
  const endMs = 5_000 + settlingMs;
  assert.equal(doubts.untilMs("media/one", "realm-1", 0), endMs);
  assert.equal(doubts.untilMs("media/one", "realm-1", endMs - 1), endMs);
  assert.equal(doubts.untilMs("media/one", "realm-1", endMs), 0);
  assert.equal(doubts.size, 0);
});

test("doubt belongs to one key in one realm", () => {
  const doubts = new DoubtLedger();
  doubts.begin("media/one", "realm-1", 5_000, times);
  assert.equal(doubts.untilMs("media/one", "realm-2", 0), 0);
  assert.equal(doubts.untilMs("media/two", "realm-1", 0), 0);
});

test("a later doubt prolongs, and an earlier one shortens nothing", () => {
  const doubts = new DoubtLedger();
  doubts.begin("media/one", "realm-1", 5_000, times);
  doubts.begin("media/one", "realm-1", 9_000, times);
  doubts.begin("media/one", "realm-1", 1_000, times);
  assert.equal(doubts.untilMs("media/one", "realm-1", 0), 9_000 + settlingMs);
});

test("what is over is forgotten, and nothing else", () => {
  const doubts = new DoubtLedger();
  doubts.begin("media/one", "realm-1", 1_000, times);
  doubts.begin("media/two", "realm-1", 9_000, times);
  doubts.prune(1_000 + settlingMs);
  assert.equal(doubts.size, 1);
  assert.notEqual(doubts.untilMs("media/two", "realm-1", 0), 0);
});

test("inherited doubt has no end until the adapter has said its times", () => {
  const doubts = new DoubtLedger();
  const inherited = new InheritedDoubt(doubts);
  inherited.takeOver([{ key: "media/one", realm: "realm-1" }], 5_000);
  assert.equal(inherited.has("media/one", "realm-1"), true);
  assert.equal(inherited.has("media/one", "realm-2"), false);
  assert.equal(inherited.has("media/two", "realm-1"), false);

  inherited.resolve("media/one", "realm-1", times);
  assert.equal(inherited.has("media/one", "realm-1"), false);
  assert.equal(doubts.untilMs("media/one", "realm-1", 0), 5_000 + settlingMs);
});

test("inherited doubt ends once, however often the adapter says its times", () => {
  const doubts = new DoubtLedger();
  const inherited = new InheritedDoubt(doubts);
  inherited.takeOver(
    [
      { key: "media/one", realm: "realm-1" },
      { key: "media/one", realm: "realm-2" },
    ],
    5_000,
  );
  inherited.resolve("media/one", "realm-1", times);
  inherited.resolve("media/one", "realm-1", { ...times, visibilityLagMs: 99_999 });
  inherited.resolve("media/two", "realm-1", times);
  assert.equal(doubts.untilMs("media/one", "realm-1", 0), 5_000 + settlingMs);
  assert.equal(doubts.size, 1);
  assert.equal(inherited.has("media/one", "realm-2"), true, "each realm has its own");
});

test("a second take-over doubts anew what the first one left open", () => {
  const doubts = new DoubtLedger();
  const inherited = new InheritedDoubt(doubts);
  inherited.takeOver([{ key: "media/one", realm: "realm-1" }], 5_000);
  inherited.takeOver([{ key: "media/two", realm: "realm-1" }], 8_000);
  inherited.resolve("media/one", "realm-1", times);
  assert.equal(doubts.untilMs("media/one", "realm-1", 0), 8_000 + settlingMs);
});
