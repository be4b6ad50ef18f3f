import assert from "node:assert/strict";
import { test } from "node:test";

import { isEqualJson, mergePatch } from "./merge-patch.ts";
import { isRawObject } from "./raw-object.ts";

interface Case {
  readonly rule: string;
  readonly before: object;
  readonly after: object;
  readonly patch: object | undefined;
}

const cases: readonly Case[] = [
  {
    rule: "nothing differs",
    before: { a: { b: [1] } },
    after: { a: { b: [1] } },
    patch: undefined,
  },
  {
    rule: "field order counts for nothing",
    before: { a: 1, b: 2 },
    after: { b: 2, a: 1 },
    patch: undefined,
  },
  {
    rule: "a changed value is sent alone",
    before: { a: 1, b: 2 },
    after: { a: 1, b: 3 },
    patch: { b: 3 },
  },
  {
    rule: "an absent field is removed",
    before: { a: 1, b: 2 },
    after: { a: 1 },
    patch: { b: null },
  },
  {
    rule: "undefined and null count as absent",
    before: { a: 1, b: 2 },
    after: { a: undefined, b: null },
    patch: { a: null, b: null },
  },
  {
    rule: "absent on both sides is no difference",
    before: {},
    after: { a: undefined, b: null },
    patch: undefined,
  },
  {
    rule: "nested objects are compared inside",
    before: { s: { x: 1, y: 2 } },
    after: { s: { x: 1, y: 3 } },
    patch: { s: { y: 3 } },
  },
  {
    rule: "an array is replaced whole",
    before: { a: [1, 2] },
    after: { a: [1, 3] },
    patch: { a: [1, 3] },
  },
  {
    rule: "an emptied object loses its fields",
    before: { a: { x: 1 } },
    after: { a: {} },
    patch: { a: { x: null } },
  },
  { rule: "a new empty object is sent", before: {}, after: { a: {} }, patch: { a: {} } },
  {
    rule: "a scalar becomes an object",
    before: { a: 1 },
    after: { a: { x: 1 } },
    patch: { a: { x: 1 } },
  },
  {
    rule: "an object becomes an array",
    before: { a: { x: 1 } },
    after: { a: [1] },
    patch: { a: [1] },
  },
  {
    rule: "nulls in a new object are left out",
    before: {},
    after: { a: { x: null, y: { z: undefined } } },
    patch: { a: { y: {} } },
  },
  {
    rule: "0, false and an empty text are values",
    before: {},
    after: { a: 0, b: false, c: "" },
    patch: { a: 0, b: false, c: "" },
  },
];

for (const { rule, before, after, patch } of cases) {
  test(`merge patch: ${rule}`, () => {
    assert.deepEqual(mergePatch(before, after), patch);
  });
}

test("merge patch: a field named __proto__ is data", () => {
  const patch = mergePatch({}, JSON.parse('{"__proto__": {"polluted": true}}'));
  assert.deepEqual(Object.keys(patch ?? {}), ["__proto__"]);
  assert.equal("polluted" in {}, false);
});

test("merge patch: applied to before it makes after, for random pairs", () => {
  const random = seededRandom(42);
  for (let count = 0; count < 2_000; count += 1) {
    const before = randomObject(random, 3);
    const after = count % 3 === 0 ? mutated(before, random) : randomObject(random, 3);
    const patch = mergePatch(before, after);
    const applied = patch === undefined ? before : applyMergePatch(before, patch);
    assert.ok(isEqualJson(applied, after), JSON.stringify({ before, after, patch, applied }));
    assert.equal(patch === undefined, isEqualJson(before, after));
  }
});

/** RFC 7386 section 2, word for word. */
function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isRawObject(patch)) return patch;
  const result = new Map(Object.entries(isRawObject(target) ? target : {}));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) result.delete(name);
    else result.set(name, applyMergePatch(result.get(name), value));
  }
  return Object.fromEntries(result);
}

function randomObject(random: () => number, depth: number): object {
  const names = ["a", "b", "c", "d"].filter(() => random() < 0.6);
  return Object.fromEntries(names.map((name) => [name, randomValue(random, depth)]));
}

function randomValue(random: () => number, depth: number): unknown {
  const draw = random();
  if (draw < 0.4 && depth > 0) return randomObject(random, depth - 1);
  if (draw < 0.6) return [Math.floor(random() * 3), { x: Math.floor(random() * 2) }];
  return draw < 0.8 ? Math.floor(random() * 3) : "text";
}

function mutated(object: object, random: () => number): object {
  const copy = Object.entries(structuredClone(object));
  return Object.fromEntries(copy.filter(() => random() < 0.8));
}

function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}
