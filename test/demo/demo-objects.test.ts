import assert from "node:assert/strict";
import { test } from "node:test";

import { screenLines } from "./demo-objects.ts";

test("a table that is wider than the terminal is redrawn over all the lines it took", () => {
  const lines = ["x".repeat(80), "x".repeat(81), "", "short"];
  assert.equal(screenLines(lines, 80), 5);
  assert.equal(screenLines(lines, 200), 4);
});
