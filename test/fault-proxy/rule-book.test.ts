import assert from "node:assert/strict";
import { test } from "node:test";

import type { Fault, FaultRule } from "./fault-rule.ts";
import { RuleBook } from "./rule-book.ts";
import type { RuledRequest } from "./rule-book.ts";

const drop: Fault = { kind: "drop" };
const get: RuledRequest = {
  method: "GET",
  path: "/api/v1/shows",
  query: "limit=5",
  isWatch: false,
};

function befallen(rule: FaultRule, requests: readonly RuledRequest[]): readonly boolean[] {
  const book = new RuleBook();
  book.set([rule]);
  return requests.map((request) => book.befall(request).length === 1);
}

test("methods, path, query and watch have all to match", () => {
  const rule = {
    match: { methods: ["GET"], path: "/shows$", query: "limit=", isWatch: false },
    fault: drop,
  };
  const others = [
    { ...get, method: "PUT" },
    { ...get, path: "/api/v1/shows/a" },
    { ...get, query: "" },
    { ...get, isWatch: true },
  ];
  assert.deepEqual(befallen(rule, [get, ...others]), [true, false, false, false, false]);
});

test("nth is one request, from is all later ones, of those that match", () => {
  const stream = [get, { ...get, method: "PUT" }, get, get];
  assert.deepEqual(befallen({ match: { methods: ["GET"], nth: 2 }, fault: drop }, stream), [
    false,
    false,
    true,
    false,
  ]);
  assert.deepEqual(befallen({ match: { methods: ["GET"], from: 2 }, fault: drop }, stream), [
    false,
    false,
    true,
    true,
  ]);
});

test("times is the end of a rule, and new rules count anew", () => {
  const book = new RuleBook();
  const rules: readonly FaultRule[] = [{ match: {}, fault: drop, times: 2 }];
  const counted = (): readonly number[] => [1, 2, 3].map(() => book.befall(get).length);
  book.set(rules);
  assert.deepEqual(counted(), [1, 1, 0]);
  assert.deepEqual(book.befallenCounts, [2]);
  book.set(rules);
  assert.deepEqual(counted(), [1, 1, 0]);
});

test("several rules befall one request, in their order", () => {
  const book = new RuleBook();
  book.set([
    { match: {}, fault: { kind: "delay", ms: 1 } },
    { match: { methods: ["PUT"] }, fault: drop },
    { match: {}, fault: { kind: "split" } },
  ]);
  assert.deepEqual(
    book.befall(get).map(({ kind }) => kind),
    ["delay", "split"],
  );
});

test("rules survive JSON", () => {
  const rules: readonly FaultRule[] = [
    { match: { path: "/shows$", nth: 1 }, fault: drop, times: 1 },
  ];
  const book = new RuleBook();
  book.set(JSON.parse(JSON.stringify(rules)));
  assert.equal(book.befall(get).length, 1);
});
