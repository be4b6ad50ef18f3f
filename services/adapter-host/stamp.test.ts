import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";

import type { FoundInstance } from "./adapter.ts";
import { clusterShort, isShortStamp, makeStamp, ownershipOf, readShortStamp } from "./stamp.ts";

const owner = { cluster: "c1", uid: "u1" };
const stamp = makeStamp("fleet/ns/name", owner, "h");

function found(own: FoundInstance["stamp"]): FoundInstance {
  const rest = {
    state: "READY",
    parameters: {},
    availability: "AVAILABLE",
    createdAtMs: 0,
  } as const;
  return own === undefined ? { id: "x", ...rest } : { id: "x", stamp: own, ...rest };
}

describe("the stamp", () => {
  it("is dhp- and the first 80 bits of the key's SHA-256 in base32, then 40 of the cluster's", () => {
    const digits = (text: string, count: number): string => {
      const bits = [...createHash("sha256").update(text).digest()]
        .map((byte) => byte.toString(2).padStart(8, "0"))
        .join("");
      return Array.from({ length: count }, (_, i) => {
        const index = Number.parseInt(bits.slice(5 * i, 5 * i + 5), 2);
        return "abcdefghijklmnopqrstuvwxyz234567"[index];
      }).join("");
    };
    assert.equal(stamp.keyShort, `dhp-${digits("fleet/ns/name", 16)}`);
    assert.equal(stamp.short, `${stamp.keyShort}-${digits("c1", 8)}`);
    assert.equal(clusterShort("c1"), digits("c1", 8));
  });

  it("knows the RFC 4648 alphabet", () => {
    // SHA-256 of the empty text, as base32 by an independent tool.
    assert.equal(makeStamp("", owner, "").keyShort, "dhp-4oymiquy7qobjgx3");
  });

  it("reads its short form back", () => {
    assert.equal(isShortStamp(stamp.short), true);
    assert.equal(readShortStamp(stamp.short)?.keyShort, stamp.keyShort);
    for (const text of ["", stamp.keyShort, `${stamp.short}x`, stamp.short.toUpperCase()]) {
      assert.equal(readShortStamp(text), undefined);
    }
  });
});

describe("whose an instance is", () => {
  const short = readShortStamp(stamp.short);
  const rows: readonly (readonly [string, FoundInstance["stamp"], string])[] = [
    ["ours", stamp, "ours"],
    ["ours, with another hash", { ...stamp, specHash: "other" }, "ours"],
    ["ours by short form", short, "ours"],
    ["an earlier object's", { ...stamp, uid: "u0" }, "predecessor"],
    ["another cluster's", makeStamp("fleet/ns/name", { cluster: "c2", uid: "u1" }, ""), "foreign"],
    ["another key's", makeStamp("fleet/ns/other", owner, ""), "foreign"],
    ["a colliding key's", { ...stamp, key: "fleet/ns/collision" }, "foreign"],
    ["nobody's", undefined, "unowned"],
  ];
  for (const [why, own, expected] of rows) {
    it(why, () => assert.equal(ownershipOf(found(own), stamp), expected));
  }
});
