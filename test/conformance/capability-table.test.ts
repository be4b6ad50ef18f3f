import assert from "node:assert/strict";
import { test } from "node:test";
import { readmeWithTable } from "./capability-table.ts";

test("adapters/README.md shows what each adapter says of itself", async () => {
  const { is, should } = await readmeWithTable();
  assert.equal(is, should, "run npm run generate:capabilities");
});
