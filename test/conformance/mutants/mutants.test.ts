/** The list of mutants is whole: each is caught by a case that there is, and each rule has one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allCases } from "../cases/all.ts";
import { rules } from "../core/rules.ts";
import { nameOf } from "./mutant.ts";
import { mutants } from "./mutants.ts";
import { mutationNames } from "./reference-adapter/mutation-names.ts";

const checksOf = new Map(allCases.map(({ name, checks }) => [name, checks]));

test("each mutant names cases that there are", () => {
  const named = mutants.flatMap(({ caughtBy, before = [] }) => [caughtBy, ...before]);
  assert.deepEqual(
    named.filter((name) => !checksOf.has(name)),
    [],
  );
});

test("each mutant has a name of its own, and each mutation makes one", () => {
  const names = mutants.map(nameOf);
  assert.deepEqual(
    names.filter((name, at) => names.indexOf(name) !== at),
    [],
  );
  const used = new Set(mutants.map(({ mutation }) => mutation));
  assert.deepEqual(
    mutationNames.filter((name) => !used.has(name)),
    [],
  );
});

test("the case that catches a mutant checks a promise that the mutant breaks", () => {
  const apart = mutants.filter(
    ({ breaks, caughtBy }) => !breaks.some((id) => checksOf.get(caughtBy)?.includes(id)),
  );
  assert.deepEqual(apart.map(nameOf), []);
});

test("each row of the table of errors, each rule and each list is broken by a mutant that is caught at it", () => {
  const broken = new Set<string>(
    mutants.flatMap(({ breaks, caughtBy }) =>
      breaks.filter((id) => checksOf.get(caughtBy)?.includes(id)),
    ),
  );
  assert.deepEqual(
    Object.keys(rules).filter((id) => !broken.has(id)),
    [],
  );
});
