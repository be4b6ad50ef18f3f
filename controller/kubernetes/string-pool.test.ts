import assert from "node:assert/strict";
import { test } from "node:test";

import { StringPool } from "./string-pool.ts";

test("sharing texts changes no value, at any depth", () => {
  const text = '{"a":"x","list":["x",1,null,{"b":"x","long":"杭州"}],"__proto__":{"c":"x"}}';
  const value: unknown = JSON.parse(text);
  new StringPool().shareWithin(value);
  assert.equal(JSON.stringify(value), text);
});

test("texts survive generations of a pool that stays small", () => {
  const pool = new StringPool();
  for (let count = 0; count < 10_000; count += 1) {
    const value = { often: "often", once: `once ${count}` };
    pool.shareWithin(value);
    assert.deepEqual(value, { often: "often", once: `once ${count}` });
  }
  assert.ok(pool.size <= 2 * 2_048, `${pool.size} texts`);
});
