import assert from "node:assert/strict";
import { test } from "node:test";

import { groupPath, groupsAround, Shares } from "./shares.ts";

/** Begins as many runs of the group as it has room for. */
function fill(shares: Shares, ...groups: readonly string[]): number {
  let count = 0;
  for (; shares.hasRoom(groups); count += 1) shares.begin(groups);
  return count;
}

test("a group lies within those that begin its path, and names cannot forge one", () => {
  assert.deepEqual(groupsAround(groupPath("adapter", "account", "host")), [
    "adapter",
    "adapter|account",
    "adapter|account|host",
  ]);
  assert.equal(groupsAround(groupPath("ad|apter", "account")).length, 2);
});

test("adapters that hang leave the next one as much as each of them would leave to one more", () => {
  const shares = new Shares(64);
  assert.deepEqual(
    ["a", "b", "c"].map((adapter) => fill(shares, groupPath(adapter))),
    [32, 16, 8],
  );
});

test("accounts and hosts that hang leave the account beside them near what it has alone", () => {
  const alone = fill(new Shares(64), groupPath("adapter", "quick", "host"));
  const shares = new Shares(64);
  assert.equal(fill(shares, groupPath("adapter", "stuck", "host")), alone);
  const beside = fill(shares, groupPath("adapter", "quick", "host"));
  assert.ok(beside >= alone / 2, `${beside} beside, ${alone} alone`);
  assert.ok(fill(shares, groupPath("another", "", "")) >= 8);
});

test("however many groups hang, the next one still gets a worker until none is left", () => {
  const shares = new Shares(16);
  for (let adapter = 0; adapter < 3; adapter += 1) {
    for (let account = 0; account < 3; account += 1) {
      assert.ok(fill(shares, groupPath(`adapter-${adapter}`, `account-${account}`, "host")) >= 0);
    }
    assert.ok(shares.hasRoom([groupPath("another", "account", "host")]), `after ${adapter}`);
  }
});

test("a run of two groups counts in both, and once where they share one", () => {
  const shares = new Shares(64);
  shares.limit("a", 3);
  shares.begin([groupPath("a", "x"), groupPath("a", "y")]);
  assert.equal(fill(shares, groupPath("a", "x")), 2);
  assert.ok(!shares.hasRoom([groupPath("a", "z")]));
  shares.end([groupPath("a", "x"), groupPath("a", "y")]);
  assert.ok(shares.hasRoom([groupPath("a", "z")]));
});

test("a limit takes the place of the usual share of an account, downwards and upwards", () => {
  const group = groupPath("adapter", "account", "host");
  const filled = (runningMax: number | undefined): number => {
    const shares = new Shares(64);
    shares.limit(groupPath("adapter", "account"), runningMax);
    return fill(shares, group);
  };
  const usual = filled(undefined);
  assert.equal(filled(2), 2);
  assert.ok(filled(1_000) > usual, `usually ${usual}`);
  assert.ok(filled(1_000) <= 32, "the adapter's share stays");
});
