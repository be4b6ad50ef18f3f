import assert from "node:assert/strict";
import { test } from "node:test";
import { allCases } from "./cases/all.ts";
import { rules } from "./core/rules.ts";

test("every rule of the contract is checked by a case", () => {
  const checked = new Set<string>(allCases.flatMap(({ checks }) => checks));
  const unchecked = Object.keys(rules).filter((id) => !checked.has(id));
  assert.deepEqual(unchecked, []);
});

test("every case has a name of its own, made of group and promise", () => {
  const names = allCases.map(({ name }) => name);
  const twice = names.filter((name, at) => names.indexOf(name) !== at);
  assert.deepEqual(twice, []);
  const wrong = names.filter((name) => !/^[a-z0-9-]+\/[a-z0-9-]+$/.test(name));
  assert.deepEqual(wrong, []);
});

test("every case says what it promises, which rules it checks and what to do when it fails", () => {
  const mute = allCases.filter(
    ({ promise, checks, fix }) => promise === "" || fix === "" || checks.length === 0,
  );
  assert.deepEqual(
    mute.map(({ name }) => name),
    [],
  );
});
