import assert from "node:assert/strict";
import { test } from "node:test";

import { classWith, objectWith } from "./object-fixture.ts";
import { deletionPolicyOf, wantedSpec } from "./wanted.ts";

const plain = classWith("a", []);
const withDefaults = classWith("a", [], { spec: { parameters: { voice: "mei", speed: "1" } } });

function hashOf(spec: Readonly<Record<string, unknown>>, chosen = plain): string {
  return wantedSpec(objectWith({ spec }).spec, chosen).hash;
}

test("spec's parameters go before the class's defaults", () => {
  const { spec } = objectWith({ spec: { parameters: { voice: "lee" } } });
  assert.deepEqual(wantedSpec(spec, withDefaults).parameters, { voice: "lee", speed: "1" });
});

test("equal wishes hash equal, in whatever order they stand", () => {
  const left = hashOf({ parameters: { a: "1", b: "2" } });
  assert.equal(left, hashOf({ parameters: { b: "2", a: "1" } }));
  assert.equal(
    left,
    hashOf({ parameters: { b: "2" } }, classWith("a", [], { spec: { parameters: { a: "1" } } })),
  );
  assert.match(left, /^[0-9a-f]{32}$/);
});

test("each wish counts, and zero or empty is not absent", () => {
  const hashes = [
    {},
    { displayName: "" },
    { displayName: "one" },
    { parameters: { a: "1" } },
    { parameters: { a: "" } },
    { quota: { maxConcurrency: 0 } },
    { quota: { dailyCalls: 0 } },
    { quota: { monthlyCredits: 0 } },
  ].map((spec) => hashOf(spec));
  assert.equal(new Set(hashes).size, hashes.length);
});

test("where it is asked is no part of what is asked for", () => {
  assert.equal(hashOf({}), hashOf({ endpoint: "https://b.example.com", suspend: true }));
});

test("spec's deletionPolicy goes before the class's, and without either it is Delete", () => {
  const retaining = classWith("a", [], { spec: { deletionPolicy: "Retain" } });
  const { spec } = objectWith({});
  const deleting = objectWith({ spec: { deletionPolicy: "Delete" } }).spec;
  assert.equal(deletionPolicyOf(spec, plain), "Delete");
  assert.equal(deletionPolicyOf(spec, retaining), "Retain");
  assert.equal(deletionPolicyOf(deleting, retaining), "Delete");
});
