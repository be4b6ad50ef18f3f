import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import { Change, RemovalState } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Adapter, AdapterInfo } from "./adapter.ts";
import { makeStamp } from "./stamp.ts";
import { failure, key, owner, testHost } from "./test-host.ts";
import type { TestHost } from "./test-host.ts";
import { reset, status, TestVendor, testAdapter } from "./test-vendor.ts";

let vendor: TestVendor;
let hosts: TestHost[] = [];

function hostWith(info: Partial<AdapterInfo> = {}, own: Partial<Adapter> = {}): TestHost["ask"] {
  const made = testHost(vendor, testAdapter(info, own));
  hosts.push(made);
  return made.ask;
}

const ours = makeStamp(key, owner, "");
const foreign = makeStamp(key, { cluster: "cluster-b", uid: "uid-9" }, "");
const late = { notAfter: timestampFromMs(0) };

beforeEach(async () => {
  vendor = await TestVendor.start();
  hosts = [];
});
afterEach(async () => {
  vendor.stop();
  for (const { close } of hosts) await close();
});

describe("Delete", () => {
  it("removes by key alone and says DELETED once the vendor agrees", async () => {
    const ask = hostWith();
    await ask.ensure();
    const { state, realm } = await ask.delete();
    assert.equal(state, RemovalState.DELETED);
    assert.equal(realm, "test:default");
    assert.equal(vendor.things.size, 0);
  });

  it("of what is gone, or never was, is NOT_FOUND in that realm", async () => {
    const ask = hostWith();
    for (const recorded of [undefined, { providerId: "gone", realm: "test:default" }]) {
      const error = await failure(ask.delete(recorded === undefined ? {} : { recorded }));
      assert.equal(error.reason, "NOT_FOUND");
      assert.equal(error.code, "NOT_FOUND");
      assert.equal(error.facts.realm, "test:default");
    }
    assert.equal(vendor.mutationCount, 0);
  });

  it("that the vendor answers with 404 is NOT_FOUND", async () => {
    vendor.put({ stamp: ours });
    const fault = status(404, { error: "not_found" });
    vendor.faults.push({ method: "DELETE", when: "after", effect: fault });
    const error = await failure(hostWith().delete());
    assert.equal(error.reason, "NOT_FOUND");
    assert.equal(error.outcome, "NOT_APPLIED");
  });

  it("that meets a proxy's 404 is not: it may have happened", async () => {
    vendor.put({ stamp: ours });
    vendor.faults.push({ method: "DELETE", when: "before", effect: status(404) });
    const error = await failure(hostWith().delete());
    assert.equal(error.reason, "VENDOR_ERROR");
    assert.equal(error.outcome, "UNKNOWN");
  });

  it("whose answer is lost is unknown, and the next one ends it", async () => {
    vendor.put({ stamp: ours });
    vendor.faults.push({ method: "DELETE", when: "after", effect: reset });
    const ask = hostWith();
    assert.equal((await failure(ask.delete())).outcome, "UNKNOWN");
    assert.equal((await failure(ask.delete())).reason, "NOT_FOUND");
  });

  it("is DELETING while the vendor is at it, without asking it again", async () => {
    vendor.isDeletingSlowly = true;
    const thing = vendor.put({ stamp: ours });
    const ask = hostWith();
    for (let i = 0; i < 3; i += 1) {
      const { state, pollAfter } = await ask.delete();
      assert.equal(state, RemovalState.DELETING);
      assert.ok(pollAfter !== undefined);
    }
    assert.equal(vendor.mutationCount, 1);
    vendor.things.delete(thing.id);
    assert.equal((await failure(ask.delete())).reason, "NOT_FOUND");
  });

  it("leaves another cluster's alone and says whose it is", async () => {
    vendor.put({ stamp: foreign });
    const error = await failure(hostWith().delete());
    assert.equal(error.reason, "NOT_OURS");
    assert.equal(error.code, "NOT_FOUND");
    assert.equal(error.facts.owner, "cluster-b");
    assert.equal(vendor.mutationCount, 0);
  });

  it("removes what a predecessor left", async () => {
    vendor.put({ stamp: makeStamp(key, { ...owner, uid: "uid-0" }, "") });
    assert.equal((await hostWith().delete()).state, RemovalState.DELETED);
  });

  it("removes ours and leaves the other cluster's with the same key", async () => {
    const theirs = vendor.put({ stamp: foreign, createdAtMs: 1 });
    vendor.put({ stamp: ours, createdAtMs: 2 });
    assert.equal((await hostWith().delete()).state, RemovalState.DELETED);
    assert.deepEqual([...vendor.things.keys()], [theirs.id]);
  });

  it("is not finished while a second one of ours is there", async () => {
    vendor.put({ stamp: ours });
    vendor.put({ stamp: ours });
    const ask = hostWith();
    assert.equal((await ask.delete()).state, RemovalState.DELETING);
    assert.equal((await ask.delete()).state, RemovalState.DELETED);
    assert.equal(vendor.things.size, 0);
  });

  it("removes what is recorded although its stamp was wiped, but no other unstamped thing", async () => {
    const recorded = vendor.put({});
    vendor.put({});
    const ask = hostWith();
    await ask.delete({ recorded: { providerId: recorded.id, realm: "test:default" } });
    assert.equal(vendor.things.size, 1);
    assert.equal((await failure(ask.delete())).reason, "NOT_FOUND");
  });

  it("in another realm than recorded is refused", async () => {
    vendor.put({ stamp: ours });
    const recorded = { providerId: "t1", realm: "test:elsewhere" };
    const error = await failure(hostWith().delete({ recorded }));
    assert.equal(error.reason, "WRONG_REALM");
    assert.equal(error.code, "FAILED_PRECONDITION");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.equal(error.facts.preconditions?.[0]?.type, "REALM");
    assert.equal(vendor.mutationCount, 0);
  });

  it("too late does not touch the vendor", async () => {
    vendor.put({ stamp: ours });
    const error = await failure(hostWith().delete(late));
    assert.equal(error.reason, "TOO_LATE");
    assert.deepEqual(vendor.requests, []);
  });

  it("that the vendor's API lacks is UNSUPPORTED", async () => {
    vendor.put({ stamp: ours });
    const error = await failure(hostWith({ capabilities: [] }).delete());
    assert.equal(error.reason, "UNSUPPORTED");
    assert.equal(error.outcome, "NOT_APPLIED");
  });

  it("of an id that is ours to name leaves alone a newcomer under it", async () => {
    vendor.put({ id: ours.keyShort });
    const ask = hostWith({ stampPlace: "ID" }, { find: findById(ours.keyShort) });
    assert.equal((await failure(ask.delete())).reason, "NOT_OURS");
    assert.equal((await ask.ensure()).change, Change.RESTAMPED);
    assert.equal((await ask.delete()).state, RemovalState.DELETED);
  });

  for (const code of [401, 403]) {
    it(`with a credential refused by ${code} is never NOT_FOUND`, async () => {
      vendor.put({ stamp: ours });
      vendor.faults.push({ method: "GET", when: "before", effect: status(code) });
      const error = await failure(hostWith().delete());
      assert.notEqual(error.code, "NOT_FOUND");
      assert.equal(error.outcome, "NOT_APPLIED");
    });
  }
});

describe("Release", () => {
  it("takes the stamp off and leaves the instance", async () => {
    const ask = hostWith();
    await ask.ensure();
    assert.equal((await ask.release()).state, RemovalState.DELETED);
    assert.equal(vendor.things.size, 1);
    assert.equal((await failure(ask.release())).reason, "NOT_FOUND");
    assert.equal((await ask.ensure()).change, Change.CREATED);
  });

  it("leaves another cluster's alone", async () => {
    vendor.put({ stamp: foreign });
    assert.equal((await failure(hostWith().release())).reason, "NOT_OURS");
    assert.equal(vendor.mutationCount, 0);
  });

  it("is done when the recorded instance carries no stamp already", async () => {
    const thing = vendor.put({});
    const recorded = { providerId: thing.id, realm: "test:default" };
    assert.equal((await hostWith().release({ recorded })).state, RemovalState.DELETED);
    assert.equal(vendor.mutationCount, 0);
  });

  it("that the vendor lacks is UNSUPPORTED", async () => {
    const error = await failure(hostWith({ capabilities: ["DELETE"] }).release());
    assert.equal(error.reason, "UNSUPPORTED");
    assert.equal(error.code, "UNIMPLEMENTED");
  });
});

/** As a vendor with client-named ids looks up: by the id that the key leads to. */
function findById(id: string): NonNullable<Adapter["find"]> {
  const { read } = testAdapter();
  return async (call) => {
    const found = await read(call, id);
    return found === undefined ? [] : [found];
  };
}
