import assert from "node:assert/strict";
import { test } from "node:test";

import { compareResourceVersions, isOlder } from "./resource-version.ts";

test("versions are compared as numbers, beyond what a double holds", () => {
  assert.equal(compareResourceVersions("7", "7"), 0);
  assert.ok(isOlder("9", "10"));
  assert.ok(!isOlder("10", "9"));
  assert.ok(isOlder("9007199254740993", "9007199254740994"));
  assert.ok(isOlder("0", "1"));
});

test("versions that are no numbers have no order", () => {
  for (const odd of ["", "abc", "-1", "1.5", "007"]) {
    assert.equal(compareResourceVersions(odd, "5"), undefined);
    assert.ok(!isOlder(odd, "5"));
    assert.ok(!isOlder("5", odd));
  }
});
