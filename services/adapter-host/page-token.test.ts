import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { readPageToken, writePageToken } from "./page-token.ts";

describe("a page token", () => {
  const positions = [
    {},
    { vendorToken: "next/页" },
    { after: { createdAtMs: 5, id: "a" } },
    { vendorToken: "", after: { createdAtMs: 5, id: "" } },
  ];
  for (const position of positions) {
    it(`holds ${JSON.stringify(position)}`, () => {
      assert.deepEqual(readPageToken(writePageToken(position, "q"), "q"), position);
    });
  }

  it("is good for its question only", () => {
    assert.equal(readPageToken(writePageToken({}, "q"), "p"), undefined);
  });

  it("is nothing when it was changed or made up", () => {
    const token = writePageToken({ vendorToken: "abc" }, "q");
    for (let at = 0; at < token.length; at += 5) {
      const other = token[at] === "A" ? "B" : "A";
      const changed = token.slice(0, at) + other + token.slice(at + 1);
      assert.equal(readPageToken(changed, "q"), undefined, changed);
    }
    for (const text of ["", "x", "%%%", token.slice(1)]) {
      assert.equal(readPageToken(text, "q"), undefined);
    }
  });
});
