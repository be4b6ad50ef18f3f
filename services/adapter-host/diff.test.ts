import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { FoundInstance, WantedInstance } from "./adapter.ts";
import { differences } from "./diff.ts";
import { makeStamp } from "./stamp.ts";

const owner = { cluster: "c", uid: "u" };

interface Row {
  readonly why: string;
  readonly wanted: Partial<WantedInstance>;
  readonly found: Partial<FoundInstance>;
  readonly hashes?: readonly [wanted: string, kept: string];
  readonly immutable?: readonly string[];
  readonly isQuotaSettable?: boolean;
  readonly fields: readonly string[];
}

const size = { parameters: { size: "1" } };
const rows: readonly Row[] = [
  { why: "equal", wanted: size, found: size, fields: [] },
  { why: "what is not wanted is not compared", wanted: {}, found: size, fields: [] },
  {
    why: "another value",
    wanted: size,
    found: { parameters: { size: "2" } },
    fields: ["parameters.size"],
  },
  {
    why: "display name",
    wanted: { displayName: "a" },
    found: { displayName: "" },
    fields: ["displayName"],
  },
  {
    why: "parameters in the order of their names",
    wanted: { parameters: { b: "1", a: "1" } },
    found: { parameters: { a: "2", b: "2" } },
    fields: ["parameters.a", "parameters.b"],
  },
  { why: "hidden, no hash known", wanted: size, found: {}, hashes: ["", "h"], fields: [] },
  { why: "hidden, same hash", wanted: size, found: {}, hashes: ["h", "h"], fields: [] },
  {
    why: "hidden, another hash",
    wanted: size,
    found: {},
    hashes: ["h2", "h1"],
    fields: ["parameters.size"],
  },
  {
    why: "hidden and fixed: never to be changed",
    wanted: size,
    found: {},
    hashes: ["h2", "h1"],
    immutable: ["parameters.size"],
    fields: [],
  },
  {
    why: "shown equal, another hash",
    wanted: size,
    found: size,
    hashes: ["h2", "h1"],
    fields: [],
  },
  {
    why: "quota that the vendor does not hold",
    wanted: { quota: { dailyCalls: 5 } },
    found: { quota: { dailyCalls: 6 } },
    fields: [],
  },
  {
    why: "quota that the vendor holds; zero is a value",
    wanted: { quota: { dailyCalls: 0, maxConcurrency: 2 } },
    found: { quota: { dailyCalls: 6, maxConcurrency: 2 } },
    isQuotaSettable: true,
    fields: ["quota.dailyCalls"],
  },
  {
    why: "quota that the vendor shows without the limit: unlimited is not what was wanted",
    wanted: { quota: { maxConcurrency: 2 } },
    found: { quota: { dailyCalls: 6 } },
    hashes: ["h", "h"],
    isQuotaSettable: true,
    fields: ["quota.maxConcurrency"],
  },
  {
    why: "quota that the vendor holds and does not show",
    wanted: { quota: { maxConcurrency: 2 } },
    found: {},
    hashes: ["h", "h"],
    isQuotaSettable: true,
    fields: [],
  },
];

describe("wanted and found differ in", () => {
  for (const row of rows) {
    it(row.why, () => {
      const [wantedHash, keptHash] = row.hashes ?? ["", ""];
      const wanted = {
        stamp: makeStamp("f/n/k", owner, wantedHash),
        parameters: {},
        quota: {},
        ...row.wanted,
      };
      const found: FoundInstance = {
        id: "x",
        stamp: makeStamp("f/n/k", owner, keptHash),
        state: "READY",
        parameters: {},
        availability: "AVAILABLE",
        createdAtMs: 0,
        ...row.found,
      };
      const changes = differences(wanted, found, {
        isQuotaSettable: row.isQuotaSettable ?? false,
        immutableFields: row.immutable ?? [],
      });
      assert.deepEqual(
        changes.map(({ field }) => field),
        row.fields,
      );
    });
  }
});
