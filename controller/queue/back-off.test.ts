import assert from "node:assert/strict";
import { test } from "node:test";

import { backOffMs } from "./back-off.ts";

const backOff = { minMs: 100, maxMs: 10_000 };

test("the back-off doubles with each failure up to its ceiling", () => {
  const delays = [1, 2, 3, 7, 8, 1_000].map((failures) => backOffMs(backOff, failures, () => 1));
  assert.deepEqual(delays, [100, 200, 400, 6_400, 10_000, 10_000]);
});

test("the back-off is drawn from the upper half of its range", () => {
  assert.equal(
    backOffMs(backOff, 3, () => 0),
    200,
  );
  assert.equal(
    backOffMs(backOff, 3, () => 0.5),
    300,
  );
});
