import assert from "node:assert/strict";
import { test } from "node:test";

import { textTable } from "./text-table.ts";

test("columns are as wide as their longest value, and the last one is not padded", () => {
  assert.deepEqual(
    textTable(
      ["A", "LONGER", "WHY"],
      [
        ["one", "x", "because"],
        ["", "", ""],
      ],
    ),
    ["A     LONGER   WHY", "one   x        because", ""],
  );
});
