import assert from "node:assert/strict";
import { test } from "node:test";

import type { FoundInstance, VendorCall } from "../adapter.ts";
import { endpoint } from "../test-host.ts";
import { testAdapter } from "../test-vendor.ts";
import { makeStamp } from "../stamp.ts";
import { readUnlisted, sweep } from "./sweep.ts";
import type { KnownInstances } from "./sweep.ts";

const call: VendorCall = {
  target: { endpoint, region: "", account: "default" },
  credential: {},
  http: { send: () => assert.fail("the adapter of this test needs no vendor") },
  signal: new AbortController().signal,
};

function found(id: string): FoundInstance {
  const owner = { cluster: "cluster-a", uid: id };
  return {
    id,
    stamp: makeStamp(`fleet/ns/${id}`, owner, "hash"),
    state: "READY",
    parameters: {},
    availability: "AVAILABLE",
    createdAtMs: 1,
  };
}

/** Sweeps a vendor whose lists lack fields and where `comers` new ones appear in each sweep. */
async function readsOf(options: {
  readonly old: number;
  readonly comers: number;
  readonly sweeps: number;
  readonly rotationReads: number;
  readonly isLate?: () => boolean;
}): Promise<readonly string[]> {
  const ids = Array.from({ length: options.old }, (_, at) => `old-${at}`);
  const reads: string[] = [];
  const adapter = testAdapter(
    { listsLackFields: true },
    {
      list: async () => ({ instances: ids.map(found) }),
      read: async (_call, id) => {
        reads.push(id);
        return found(id);
      },
    },
  );
  let known: KnownInstances = new Map();
  for (let round = 0; round < options.sweeps; round += 1) {
    const { rotationReads: readsMax, isLate = () => false } = options;
    const listed = await sweep(adapter, call, known, { pagesMax: 1, confirmationsMax: 1 });
    const read = await readUnlisted(adapter, call, listed.instances, { readsMax, isLate });
    known = read.instances;
    for (let comer = 0; comer < options.comers; comer += 1) ids.push(`new-${round}-${comer}`);
  }
  return reads;
}

test("each is read once before any is read again", async () => {
  const reads = await readsOf({ old: 10, comers: 0, sweeps: 10, rotationReads: 3 });
  assert.equal(reads.length, 30);
  for (let round = 0; round < 3; round += 1) {
    assert.equal(new Set(reads.slice(10 * round, 10 * (round + 1))).size, 10);
  }
});

test("where new ones come in each sweep the old ones have their turn all the same", async () => {
  const reads = await readsOf({ old: 3, comers: 1, sweeps: 12, rotationReads: 1 });
  assert.deepEqual(reads.slice(0, 3).toSorted(), ["old-0", "old-1", "old-2"]);
  assert.ok(reads.slice(3).some((id) => id.startsWith("old-")));
});

test("a sweep that is late reads one more, so that slow vendors are read in turn too", async () => {
  const isLate = (): boolean => true;
  const reads = await readsOf({ old: 4, comers: 0, sweeps: 4, rotationReads: 100, isLate });
  assert.deepEqual(reads, ["old-0", "old-1", "old-2", "old-3"]);
});
