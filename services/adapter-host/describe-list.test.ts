import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";

import type { Instance } from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
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

beforeEach(async () => {
  vendor = await TestVendor.start();
  hosts = [];
});
afterEach(async () => {
  vendor.stop();
  for (const { close } of hosts) await close();
});

describe("Describe", () => {
  it("answers by key, and names the fields that differ from the wanted spec", async () => {
    const ask = hostWith();
    await ask.ensure();
    const same = await ask.describe({ spec: { parameters: { size: "1" } } });
    assert.deepEqual(same.instance?.drift, []);
    const spec = { displayName: "new", parameters: { size: "2" } };
    const { instance } = await ask.describe({ spec });
    assert.deepEqual(
      instance?.drift.map(({ field, want, have }) => [field, want, have]),
      [
        ["displayName", "new", ""],
        ["parameters.size", "2", "1"],
      ],
    );
    assert.ok(instance?.health?.observedAt !== undefined);
    assert.equal(vendor.mutationCount, 1);
  });

  it("answers an instance of another cluster as it is", async () => {
    vendor.put({ stamp: makeStamp(key, { cluster: "cluster-b", uid: "uid-9" }, "") });
    const { instance } = await hostWith().describe();
    assert.equal(instance?.owner?.cluster, "cluster-b");
  });

  it("is NOT_FOUND with the realm when the vendor attests it", async () => {
    const error = await failure(hostWith().describe());
    assert.equal(error.reason, "NOT_FOUND");
    assert.equal(error.facts.realm, "test:default");
    assert.equal(error.facts.resource, key);
  });

  it("needs no list when the recorded id leads there", async () => {
    const ask = hostWith();
    const { instance } = await ask.ensure();
    vendor.requests.length = 0;
    await ask.describe({ recorded: { providerId: instance?.providerId ?? "" } });
    assert.deepEqual(vendor.requests, [`GET /things/${instance?.providerId}`]);
  });
});

async function allPages(
  ask: TestHost["ask"],
  request: { readonly pageSize: number; readonly ownerCluster?: string },
  between: () => void = () => undefined,
): Promise<readonly Instance[]> {
  const instances: Instance[] = [];
  let pageToken = "";
  for (let pages = 0; pages < 100; pages += 1) {
    const page = await ask.list({ ...request, pageToken });
    assert.ok(page.instances.length <= request.pageSize);
    instances.push(...page.instances);
    pageToken = page.nextPageToken;
    if (pageToken === "") return instances;
    between();
  }
  return assert.fail("the list does not end");
}

function put(count: number, cluster: string): void {
  for (let i = 0; i < count; i += 1) {
    vendor.put({
      stamp: makeStamp(`fleet/${cluster}/name-${i}`, { cluster, uid: `uid-${i}` }, ""),
    });
  }
}

describe("List", () => {
  for (const [vendorPages, pageSize] of [
    [100, 7],
    [3, 7],
    [7, 3],
    [1, 1],
  ] as const) {
    it(`gives everything once, in pages of ${pageSize} from the vendor's ${vendorPages}`, async () => {
      vendor.pageSize = vendorPages;
      put(12, "cluster-a");
      put(5, "cluster-b");
      for (let i = 0; i < 4; i += 1) vendor.put({});
      const ask = hostWith();
      const all = await allPages(ask, { pageSize });
      assert.equal(new Set(all.map(({ providerId }) => providerId)).size, 17);
      assert.equal(all.length, 17);
      const own = await allPages(ask, { pageSize, ownerCluster: "cluster-a" });
      assert.equal(own.length, 12);
      assert.ok(own.every(({ stamp, realm }) => stamp !== "" && realm === "test:default"));
    });
  }

  it("loses nothing when what it gave already is deleted meanwhile", async () => {
    put(20, "cluster-a");
    const deleted: string[] = [];
    const all = await allPages(hostWith(), { pageSize: 4 }, () => {
      const [first] = vendor.things.keys();
      deleted.push(first ?? "");
      vendor.things.delete(first ?? "");
    });
    assert.equal(new Set(all.map(({ providerId }) => providerId)).size, 20);
    assert.equal(deleted.length, 4);
  });

  it("tells instances of one instant apart", async () => {
    put(9, "cluster-a");
    for (const thing of vendor.things.values()) thing.createdAtMs = 5;
    assert.equal((await allPages(hostWith(), { pageSize: 2 })).length, 9);
  });

  it("finds by the short form where there is no room for more", async () => {
    const stamp = makeStamp("fleet/ns/short", owner, "");
    vendor.put({ stamp: { ...stamp, key: "", cluster: "", uid: "" } });
    const { instances } = await hostWith().list({ ownerCluster: owner.cluster });
    assert.equal(instances.length, 1);
    assert.equal(instances[0]?.stamp, stamp.short);
    assert.equal(instances[0]?.instanceKey, "");
    assert.deepEqual((await hostWith().list({ ownerCluster: "cluster-z" })).instances, []);
  });

  it("refuses a token that is not its own for this question", async () => {
    put(5, "cluster-a");
    const ask = hostWith();
    const { nextPageToken } = await ask.list({ pageSize: 2 });
    const tampered = `${nextPageToken.slice(0, -3)}AAA`;
    for (const pageToken of ["x", "!!", tampered]) {
      const error = await failure(ask.list({ pageToken }));
      assert.equal(error.reason, "INVALID_FIELD");
      assert.equal(error.facts.fields?.[0]?.path, "page_token");
    }
    const other = { ownerCluster: "cluster-a", pageToken: nextPageToken };
    assert.equal((await failure(ask.list(other))).reason, "INVALID_FIELD");
    assert.equal((await ask.list({ pageToken: nextPageToken, pageSize: 50 })).instances.length, 3);
    assert.equal((await failure(ask.list({ pageSize: -1 }))).reason, "INVALID_FIELD");
  });
});
