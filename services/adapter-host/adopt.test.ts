import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";

import { Change } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Adapter, AdapterInfo } from "./adapter.ts";
import { makeStamp } from "./stamp.ts";
import { failure, key, owner, testHost } from "./test-host.ts";
import type { TestHost } from "./test-host.ts";
import { TestVendor, testAdapter } from "./test-vendor.ts";

let vendor: TestVendor;
let hosts: TestHost[] = [];

function hostWith(info: Partial<AdapterInfo> = {}, own: Partial<Adapter> = {}): TestHost["ask"] {
  const made = testHost(vendor, testAdapter(info, own));
  hosts.push(made);
  return made.ask;
}

const foreign = makeStamp(key, { cluster: "cluster-b", uid: "uid-9" }, "");

beforeEach(async () => {
  vendor = await TestVendor.start();
  hosts = [];
});
afterEach(async () => {
  vendor.stop();
  for (const { close } of hosts) await close();
});

describe("adoption", () => {
  it("stamps an unowned instance and puts it right", async () => {
    const thing = vendor.put({ name: "old" });
    const spec = { displayName: "new", parameters: { size: "3" } };
    const { change } = await hostWith().ensure({ adopt: { providerId: thing.id }, spec });
    assert.equal(change, Change.ADOPTED);
    assert.equal(thing.stamp?.uid, owner.uid);
    assert.equal(thing.name, "new");
    assert.equal(vendor.mutationCount, 1);
  });

  it("is inert once done", async () => {
    const thing = vendor.put({ parameters: { size: "1" } });
    const adopt = { providerId: thing.id };
    await hostWith().ensure({ adopt });
    assert.equal((await hostWith().ensure({ adopt })).change, Change.NONE);
    assert.equal(vendor.mutationCount, 1);
  });

  it("takes an owned instance only from the owner that is named", async () => {
    const other = makeStamp("fleet/ns/other", { cluster: "cluster-b", uid: "uid-9" }, "");
    const thing = vendor.put({ stamp: other, parameters: { size: "1" } });
    const take = (takeOverFrom?: { cluster: string; uid: string }): object => ({
      adopt: { providerId: thing.id, ...(takeOverFrom === undefined ? {} : { takeOverFrom }) },
    });
    const ask = hostWith();
    for (const wrong of [undefined, { cluster: "cluster-b", uid: "uid-8" }]) {
      assert.equal((await failure(ask.ensure(take(wrong)))).reason, "OWNED_BY_ANOTHER");
    }
    assert.equal(vendor.mutationCount, 0);
    const right = { cluster: "cluster-b", uid: "uid-9" };
    assert.equal((await ask.ensure(take(right))).change, Change.ADOPTED);
    thing.stamp = makeStamp(key, { cluster: "cluster-c", uid: "uid-7" }, "");
    assert.equal((await failure(ask.ensure(take(right)))).reason, "OWNED_BY_ANOTHER");
  });

  it("with takeOverFrom left in the manifests of two clusters works once: nothing goes to and fro", async () => {
    const first = { cluster: "cluster-x", uid: "uid-x" };
    const thing = vendor.put({ stamp: makeStamp(key, first, ""), parameters: { size: "1" } });
    const adopt = { providerId: thing.id, takeOverFrom: first };
    const ask = hostWith();
    const rival = { cluster: "cluster-b", uid: "uid-9" };
    assert.equal((await ask.ensure({ adopt })).change, Change.ADOPTED);
    const { mutationCount } = vendor;
    for (let pass = 0; pass < 3; pass += 1) {
      const refused = await failure(ask.ensure({ owner: rival, adopt }));
      assert.equal(refused.reason, "OWNED_BY_ANOTHER");
      assert.equal((await ask.ensure({ adopt })).change, Change.NONE);
    }
    assert.equal(vendor.mutationCount, mutationCount);
    assert.equal(thing.stamp?.uid, owner.uid);
  });

  it("by two keys at once leaves it to one of them, and tells the other", async () => {
    const thing = vendor.put({ parameters: { size: "1" } });
    const adopt = { providerId: thing.id };
    const ask = hostWith();
    const rival = { instanceKey: "fleet/ns/rival", adopt };
    const both = await Promise.allSettled([ask.ensure({ adopt }), ask.ensure(rival)]);
    assert.equal(both.filter(({ status }) => status === "fulfilled").length, 1);
    assert.equal(vendor.mutationCount, 1);
    const isOurs = thing.stamp?.key === key;
    const refused = await failure(ask.ensure(isOurs ? rival : { adopt }));
    assert.equal(refused.reason, "OWNED_BY_ANOTHER");
    assert.equal(vendor.mutationCount, 1);
  });

  it("that another process has undone by the next look is told", async () => {
    const thing = vendor.put({ parameters: { size: "1" } });
    const rival = makeStamp("fleet/ns/rival", owner, "");
    const ask = hostWith({}, { update: async () => void (thing.stamp = rival) });
    const error = await failure(ask.ensure({ adopt: { providerId: thing.id } }));
    assert.equal(error.reason, "OWNED_BY_ANOTHER");
    assert.match(error.message, /fleet\/ns\/rival/);
  });

  it("whose displaced owner still shows is not taken for undone", async () => {
    const thing = vendor.put({ stamp: foreign, parameters: { size: "1" } });
    const ask = hostWith({}, { update: async () => undefined });
    const takeOverFrom = { cluster: foreign.cluster, uid: foreign.uid };
    const { change } = await ask.ensure({ adopt: { providerId: thing.id, takeOverFrom } });
    assert.equal(change, Change.ADOPTED);
  });

  it("does not put a second instance beside another cluster's with the same key", async () => {
    vendor.put({ stamp: foreign });
    const thing = vendor.put({});
    const error = await failure(hostWith().ensure({ adopt: { providerId: thing.id } }));
    assert.equal(error.reason, "OWNED_BY_ANOTHER");
    assert.equal(vendor.mutationCount, 0);
  });

  it("of what is recorded already is a restamping", async () => {
    const { id: providerId } = vendor.put({ parameters: { size: "1" } });
    const recorded = { providerId, realm: "test:default" };
    const { change } = await hostWith().ensure({ adopt: { providerId }, recorded });
    assert.equal(change, Change.RESTAMPED);
  });

  it("never makes one where the named one does not exist", async () => {
    const error = await failure(hostWith().ensure({ adopt: { providerId: "nope" } }));
    assert.equal(error.reason, "INVALID_FIELD");
    assert.equal(error.facts.fields?.[0]?.path, "adopt.providerID");
    assert.equal(vendor.mutationCount, 0);
  });

  it("is refused where the vendor cannot", async () => {
    const thing = vendor.put({});
    const ask = hostWith({ capabilities: ["DELETE"] });
    const error = await failure(ask.ensure({ adopt: { providerId: thing.id } }));
    assert.equal(error.reason, "UNSUPPORTED");
    assert.equal(error.code, "FAILED_PRECONDITION");
  });
});
