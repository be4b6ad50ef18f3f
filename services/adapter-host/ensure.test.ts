import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import { State } from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { Change } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Adapter, AdapterInfo } from "./adapter.ts";
import { makeStamp } from "./stamp.ts";
import { endpoint, failure, key, owner, testHost } from "./test-host.ts";
import type { TestHost } from "./test-host.ts";
import { TestVendor, testAdapter } from "./test-vendor.ts";

/** Overrides the one that the asker fills in. */
const withoutNotAfter = { notAfter: undefined };

let vendor: TestVendor;
let hosts: TestHost[] = [];

function hostWith(info: Partial<AdapterInfo> = {}, own: Partial<Adapter> = {}): TestHost["ask"] {
  const made = testHost(vendor, testAdapter(info, own));
  hosts.push(made);
  return made.ask;
}

const ours = makeStamp(key, owner, "");
const predecessors = makeStamp(key, { ...owner, uid: "uid-0" }, "");
const foreign = makeStamp(key, { cluster: "cluster-b", uid: "uid-9" }, "");

beforeEach(async () => {
  vendor = await TestVendor.start();
  hosts = [];
});
afterEach(async () => {
  vendor.stop();
  for (const { close } of hosts) await close();
});

describe("Ensure of what does not exist", () => {
  it("looks, creates, looks again, and answers with the instance", async () => {
    const { instance, change } = await hostWith().ensure();
    assert.equal(change, Change.CREATED);
    assert.equal(vendor.things.size, 1);
    const [thing] = vendor.things.values();
    assert.equal(instance?.providerId, thing?.id);
    assert.equal(instance?.realm, "test:default");
    assert.equal(instance?.stamp, ours.short);
    assert.equal(instance?.instanceKey, key);
    assert.equal(instance?.owner?.uid, owner.uid);
    assert.equal(instance?.state, State.READY);
    const firstChange = vendor.requests.indexOf("POST /things");
    assert.ok(vendor.requests.slice(0, firstChange).includes("GET /things"));
    assert.ok(vendor.requests.slice(firstChange).includes(`GET /things/${thing?.id}`));
    assert.equal(vendor.mutationCount, 1);
  });

  it("changes nothing when asked ten times", async () => {
    const ask = hostWith();
    await ask.ensure();
    for (let i = 0; i < 9; i += 1) assert.equal((await ask.ensure()).change, Change.NONE);
    assert.equal(vendor.mutationCount, 1);
    assert.equal(vendor.things.size, 1);
  });

  it("answers IN_DOUBT without may_create", async () => {
    const error = await failure(hostWith().ensure({ mayCreate: false }));
    assert.equal(error.reason, "IN_DOUBT");
    assert.equal(error.code, "ABORTED");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.ok((error.facts.retryAfterMs ?? 0) > 0);
    assert.equal(vendor.mutationCount, 0);
  });

  it("says when to ask again while it is being made", async () => {
    vendor.newThing = { state: "PROVISIONING" };
    const { instance, pollAfter } = await hostWith().ensure();
    assert.equal(instance?.state, State.PROVISIONING);
    assert.ok(pollAfter !== undefined && pollAfter.seconds > 0n);
  });
});

describe("Ensure within its time only", () => {
  const late: readonly (readonly [string, number | undefined])[] = [
    ["missing", undefined],
    ["passed", -1000],
    ["within the skew allowance", 100],
  ];
  for (const [why, leftMs] of late) {
    it(`refuses when not_after is ${why}`, async () => {
      const notAfter = leftMs === undefined ? undefined : timestampFromMs(Date.now() + leftMs);
      const error = await failure(hostWith().ensure(notAfter ? { notAfter } : withoutNotAfter));
      assert.equal(error.reason, "TOO_LATE");
      assert.equal(error.outcome, "NOT_APPLIED");
      assert.deepEqual(vendor.requests, []);
    });
  }

  it("looks at the clock again right before the change", async () => {
    const ask = hostWith();
    const notAfter = timestampFromMs(Date.now() + 700);
    vendor.onList = () => {
      const endMs = Date.now() + 400;
      while (Date.now() < endMs);
    };
    const error = await failure(ask.ensure({ notAfter }));
    assert.equal(error.reason, "TOO_LATE");
    assert.equal(vendor.mutationCount, 0);
  });
});

describe("Ensure of what exists", () => {
  it("updates what differs, in one request", async () => {
    const ask = hostWith();
    await ask.ensure();
    const spec = { displayName: "new", parameters: { size: "2" } };
    const { change, instance } = await ask.ensure({ spec });
    assert.equal(change, Change.UPDATED);
    assert.equal(instance?.observed?.parameters["size"], "2");
    assert.equal(instance?.observed?.displayName, "new");
    assert.deepEqual(instance?.drift, []);
    assert.equal(vendor.mutationCount, 2);
    assert.equal((await ask.ensure({ spec })).change, Change.NONE);
  });

  it("puts right what was changed at the vendor", async () => {
    const ask = hostWith();
    await ask.ensure();
    for (const thing of vendor.things.values()) thing.parameters = { size: "9" };
    assert.equal((await ask.ensure()).change, Change.UPDATED);
    assert.equal((await ask.ensure()).change, Change.NONE);
  });

  it("refuses to change what this vendor cannot change, and writes nothing", async () => {
    const ask = hostWith();
    await ask.ensure({ spec: { parameters: { fixed: "a" } } });
    const error = await failure(ask.ensure({ spec: { parameters: { fixed: "b", size: "2" } } }));
    assert.equal(error.reason, "IMMUTABLE_FIELD");
    assert.equal(error.code, "FAILED_PRECONDITION");
    assert.deepEqual(
      error.facts.preconditions?.map(({ type, subject }) => [type, subject]),
      [["IMMUTABLE", "parameters.fixed"]],
    );
    assert.equal(vendor.mutationCount, 1);
  });

  it("restamps what a dead predecessor left, under its id", async () => {
    const left = vendor.put({ stamp: predecessors, parameters: { size: "1" } });
    const { change, instance } = await hostWith().ensure({ mayCreate: false });
    assert.equal(change, Change.RESTAMPED);
    assert.equal(instance?.providerId, left.id);
    assert.equal(left.stamp?.uid, owner.uid);
    assert.equal(vendor.things.size, 1);
  });

  it("restamps what it recorded and finds without a stamp", async () => {
    const wiped = vendor.put({ parameters: { size: "1" } });
    const recorded = { providerId: wiped.id, realm: "test:default" };
    const { change } = await hostWith().ensure({ recorded });
    assert.equal(change, Change.RESTAMPED);
    assert.equal(wiped.stamp?.key, key);
  });

  it("goes by the key when the recorded id leads to something else", async () => {
    const other = vendor.put({ stamp: makeStamp("fleet/ns/other", owner, "") });
    const recorded = { providerId: other.id, realm: "test:default" };
    const { change, instance } = await hostWith().ensure({ recorded });
    assert.equal(change, Change.CREATED);
    assert.notEqual(instance?.providerId, other.id);
  });

  it("creates anew, once, when the recorded instance is gone", async () => {
    const ask = hostWith();
    const recorded = { providerId: "gone", realm: "test:default" };
    assert.equal((await ask.ensure({ recorded })).change, Change.CREATED);
    assert.equal((await ask.ensure({ recorded })).change, Change.NONE);
  });

  it("leaves another cluster's alone, with no write", async () => {
    vendor.put({ stamp: foreign });
    const error = await failure(hostWith().ensure());
    assert.equal(error.reason, "OWNED_BY_ANOTHER");
    assert.equal(error.code, "ALREADY_EXISTS");
    assert.equal(error.facts.owner, "cluster-b");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.equal(vendor.mutationCount, 0);
  });

  it("tells clusters apart by the short form where there is no room for more", async () => {
    const short = { key: "", cluster: "", uid: "", specHash: "" };
    const thing = vendor.put({ stamp: { ...foreign, ...short }, parameters: { size: "1" } });
    assert.equal((await failure(hostWith().ensure())).reason, "OWNED_BY_ANOTHER");
    thing.stamp = { ...ours, ...short };
    const { change, instance } = await hostWith().ensure();
    assert.equal(change, Change.NONE);
    assert.equal(instance?.instanceKey, key);
    assert.equal(instance?.owner?.cluster, owner.cluster);
  });

  it("takes the oldest of several and deletes none", async () => {
    vendor.put({ id: "young", stamp: ours, createdAtMs: 20, parameters: { size: "1" } });
    vendor.put({ id: "b", stamp: ours, createdAtMs: 10, parameters: { size: "1" } });
    vendor.put({ id: "a", stamp: ours, createdAtMs: 10, parameters: { size: "1" } });
    const { instance, change } = await hostWith().ensure();
    assert.equal(instance?.providerId, "a");
    assert.equal(change, Change.NONE);
    assert.equal(vendor.things.size, 3);
  });

  it("takes a younger one rather than one that is being deleted", async () => {
    vendor.put({ id: "old", stamp: ours, createdAtMs: 1, state: "DELETING" });
    vendor.put({ id: "new", stamp: ours, createdAtMs: 2, parameters: { size: "1" } });
    assert.equal((await hostWith().ensure()).instance?.providerId, "new");
  });

  it("waits while the vendor is deleting it", async () => {
    vendor.put({ stamp: ours, state: "DELETING" });
    const error = await failure(hostWith().ensure());
    assert.equal(error.reason, "BUSY");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.equal(vendor.mutationCount, 0);
  });
});

describe("absence is proven", () => {
  it("not by a list entry that the id denies", async () => {
    vendor.put({ stamp: ours, isInvisible: true });
    assert.equal((await hostWith().ensure()).change, Change.CREATED);
  });

  it("by two equal scans where lists are not consistent", async () => {
    vendor.put({ id: "x" });
    await hostWith({ areListsConsistent: false }).ensure();
    const before = vendor.requests.slice(0, vendor.requests.indexOf("POST /things"));
    assert.equal(before.filter((request) => request === "GET /things").length, 2);
  });

  it("never while a list shifts under its reader", async () => {
    for (let i = 0; i < 5; i += 1) vendor.put({});
    vendor.pageSize = 2;
    vendor.onList = () => void vendor.put({});
    const error = await failure(hostWith().ensure());
    assert.equal(error.reason, "IN_DOUBT");
    assert.equal(vendor.mutationCount, 0);
  });

  it("not by pages that a deletion has shifted", async () => {
    const first = vendor.put({});
    for (let i = 0; i < 3; i += 1) vendor.put({});
    vendor.put({ stamp: ours, parameters: { size: "1" } });
    vendor.pageSize = 4;
    let pages = 0;
    vendor.onList = () => {
      // Between the first page and the second: ours slides onto the page already read.
      pages += 1;
      if (pages === 2) vendor.things.delete(first.id);
    };
    assert.equal((await hostWith().ensure()).change, Change.NONE);
    assert.equal(vendor.mutationCount, 0);
  });
});

describe("two that create at once where nothing is unique", () => {
  it("leave the oldest; the other deletes what it just made", async () => {
    const a = hostWith();
    const elder = { id: "elder", stamp: ours, createdAtMs: 1, parameters: { size: "1" } };
    vendor.faults.push({
      method: "POST",
      when: "before",
      effect: (request, response) => {
        vendor.put(elder);
        vendor.hold(request, response);
        vendor.releaseHeld();
      },
    });
    const { change, instance } = await a.ensure();
    assert.equal(instance?.providerId, "elder");
    assert.equal(change, Change.NONE);
    assert.deepEqual([...vendor.things.keys()], ["elder"]);
  });

  it("tell the younger cluster that the instance is another's", async () => {
    vendor.faults.push({
      method: "POST",
      when: "before",
      effect: (request, response) => {
        vendor.put({ id: "elder", stamp: foreign, createdAtMs: 1 });
        vendor.hold(request, response);
        vendor.releaseHeld();
      },
    });
    const error = await failure(hostWith().ensure());
    assert.equal(error.reason, "OWNED_BY_ANOTHER");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.deepEqual([...vendor.things.keys()], ["elder"]);
  });

  it("cannot happen where the id is ours to name: the other's is told, and kept", async () => {
    vendor.faults.push({
      method: "POST",
      when: "before",
      effect: (request, response) => {
        vendor.put({ id: ours.keyShort, stamp: foreign });
        vendor.hold(request, response);
        vendor.releaseHeld();
      },
    });
    const ask = hostWith({ stampPlace: "ID" });
    const error = await failure(ask.ensure());
    assert.equal(error.reason, "OWNED_BY_ANOTHER");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.equal(vendor.things.get(ours.keyShort)?.stamp?.cluster, "cluster-b");
  });
});

describe("validate_only", () => {
  it("checks, reads, and changes nothing", async () => {
    const ask = hostWith();
    const validateOnly = true;
    const { instance } = await ask.ensure({ validateOnly });
    assert.equal(instance?.providerId, "");
    assert.equal(instance?.observed?.parameters["size"], "1");
    const spec = { parameters: { size: "many" } };
    assert.equal((await failure(ask.ensure({ validateOnly, spec }))).reason, "INVALID_FIELD");
    vendor.put({ stamp: ours, parameters: { fixed: "a" } });
    const changed = { parameters: { fixed: "b" } };
    const error = await failure(ask.ensure({ validateOnly, spec: changed }));
    assert.equal(error.reason, "IMMUTABLE_FIELD");
    assert.equal(vendor.mutationCount, 0);
  });
});

describe("realm", () => {
  it("of the record must be the one the target leads to", async () => {
    const recorded = { providerId: "x", realm: "test:other" };
    const error = await failure(hostWith().ensure({ recorded }));
    assert.equal(error.reason, "WRONG_REALM");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.deepEqual(error.facts.preconditions?.[0]?.type, "REALM");
    const target = { endpoint, account: "other" };
    assert.equal((await hostWith().ensure({ recorded, target })).change, Change.CREATED);
  });
});
