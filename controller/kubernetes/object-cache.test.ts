import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { ObjectCache } from "./object-cache.ts";
import type { CollectionList, WatchEvent } from "./object-cache.ts";
import type { RawObject } from "./raw-object.ts";
import { parseWireObject } from "./wire-event.ts";
import type { WireObject } from "./wire-event.ts";

function createCache(): ObjectCache<RawObject> {
  return new ObjectCache<RawObject>({ parse: (raw) => raw, onUnreadable: () => undefined });
}

function object(name: string, version: number, uid = `uid-${name}`): WireObject {
  const metadata = { name, namespace: "ns", uid, resourceVersion: String(version) };
  return parseWireObject({ metadata }, "test");
}

function listAt(version: number, ...objects: readonly WireObject[]): CollectionList {
  const items = new Map(objects.map((item) => [`ns/${item.identity.name}`, item]));
  return { resourceVersion: String(version), items };
}

function fill(cache: ObjectCache<RawObject>, list: CollectionList): string[] {
  return told(cache.merge(list, cache.beginList()));
}

function told(events: readonly WatchEvent<RawObject>[]): string[] {
  return events.map(({ kind, key }) => `${kind} ${key}`);
}

describe("object cache", () => {
  test("a list fills it, the same list tells nothing", () => {
    const cache = createCache();
    const list = listAt(10, object("a", 3), object("b", 7));
    assert.deepEqual(fill(cache, list), ["added ns/a", "added ns/b"]);
    assert.deepEqual(fill(cache, list), []);
    assert.equal(cache.resourceVersion, "10");
    assert.equal(cache.size, 2);
  });

  test("another uid under the same name is a delete and an add, by event and by list", () => {
    const cache = createCache();
    fill(cache, listAt(10, object("a", 3, "one")));
    assert.deepEqual(told(cache.upsert(object("a", 11, "two"))), ["deleted ns/a", "added ns/a"]);
    assert.deepEqual(fill(cache, listAt(20, object("a", 15, "three"))), [
      "deleted ns/a",
      "added ns/a",
    ]);
  });

  test("an older list does not replace newer objects or take away newer ones", () => {
    const cache = createCache();
    fill(cache, listAt(10, object("a", 3)));
    const ticket = cache.beginList();
    cache.upsert(object("a", 20));
    cache.upsert(object("b", 21));
    assert.deepEqual(told(cache.merge(listAt(15, object("a", 12)), ticket)), []);
    assert.equal(cache.versionOf("ns/a"), "20");
    assert.equal(cache.versionOf("ns/b"), "21");
    assert.equal(cache.resourceVersion, "21");
  });

  test("an object deleted while a list was under way does not come back with it", () => {
    const cache = createCache();
    fill(cache, listAt(10, object("a", 3)));
    const ticket = cache.beginList();
    cache.remove(object("a", 20));
    assert.deepEqual(told(cache.merge(listAt(15, object("a", 3)), ticket)), []);
    assert.equal(cache.size, 0);
  });

  test("an object deleted and made again while a list was under way is kept", () => {
    const cache = createCache();
    fill(cache, listAt(10, object("a", 3, "one")));
    const ticket = cache.beginList();
    cache.remove(object("a", 20, "one"));
    const list = listAt(25, object("a", 22, "two"));
    assert.deepEqual(told(cache.merge(list, ticket)), ["added ns/a"]);
  });

  test("a deletion of an earlier incarnation leaves the present one", () => {
    const cache = createCache();
    fill(cache, listAt(20, object("a", 19, "two")));
    assert.deepEqual(told(cache.remove(object("a", 15, "one"))), []);
    assert.equal(cache.size, 1);
  });

  test("versions that cannot be ordered are taken as they come", () => {
    const cache = createCache();
    const odd = (version: string): WireObject =>
      parseWireObject(
        { metadata: { name: "a", namespace: "ns", uid: "u", resourceVersion: version } },
        "test",
      );
    cache.upsert(odd("x9"));
    assert.deepEqual(told(cache.upsert(odd("x10"))), ["modified ns/a"]);
    assert.deepEqual(told(cache.upsert(odd("x10"))), []);
  });

  test("10,000 creates and deletes across relists leave an empty store and a flat heap", () => {
    const cache = createCache();
    let version = 1;
    const churn = (count: number): void => {
      for (let index = 0; index < count; index += 1) {
        version += 1;
        cache.upsert(object(`churn-${version}`, version));
        if (index % 100 === 0) fill(cache, listAt(version, object(`churn-${version}`, version)));
        version += 1;
        cache.remove(object(`churn-${version - 1}`, version));
      }
    };
    churn(2_000);
    const before = heapBytes();
    churn(10_000);
    const grown = heapBytes() - before;
    assert.equal(cache.size, 0);
    assert.ok(grown < 300_000, `heap grew by ${grown} bytes`);
  });

  test("an object of 2.3 KB costs at most about 2.2 KB of heap", () => {
    const cache = createCache();
    const count = 2_000;
    const before = heapBytes();
    let textBytes = 0;
    for (let index = 0; index < count; index += 1) {
      const text = JSON.stringify(realisticObject(index));
      textBytes += text.length;
      cache.upsert(parseWireObject(JSON.parse(text), "test"));
    }
    const bytesPerObject = (heapBytes() - before) / count;
    assert.ok(textBytes / count > 2_250, `${textBytes / count} bytes of JSON`);
    assert.ok(bytesPerObject < 2_300, `${Math.round(bytesPerObject)} bytes of heap an object`);
    assert.equal(cache.size, count);
  });
});

function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") for (let round = 0; round < 3; round += 1) collect();
  return process.memoryUsage().heapUsed;
}

/** About as large and as varied as an object with status, conditions and managedFields is. */
function realisticObject(index: number): object {
  const at = new Date(1_700_000_000_000 + index * 1_000).toISOString();
  const condition = (type: string): object => ({
    type,
    status: index % 2 === 0 ? "True" : "False",
    reason: `${type}Reason`,
    message: `instance ${index} is in state ${type} as of the last answer`,
    lastTransitionTime: at,
    observedGeneration: index,
  });
  return {
    apiVersion: "example.com/v1",
    kind: "Widget",
    metadata: {
      name: `widget-${index}`,
      namespace: `namespace-${index % 10}`,
      uid: `2f9c1d3e-8b4a-4c5d-9e6f-${String(index).padStart(12, "0")}`,
      resourceVersion: String(10_000 + index),
      generation: 1,
      creationTimestamp: at,
      finalizers: ["example.com/cleanup"],
      annotations: { "example.com/note": `{"uid":"${index}","placement":{}}` },
      managedFields: [
        {
          manager: "kubectl-client-side-apply",
          operation: "Update",
          apiVersion: "example.com/v1",
          time: at,
          fieldsType: "FieldsV1",
          fieldsV1: {
            "f:metadata": { "f:annotations": { ".": {}, "f:example.com/note": {} } },
            "f:spec": { ".": {}, "f:endpoint": {}, "f:region": {}, "f:displayName": {} },
          },
        },
        {
          manager: "controller",
          operation: "Update",
          subresource: "status",
          apiVersion: "example.com/v1",
          time: at,
          fieldsType: "FieldsV1",
          fieldsV1: { "f:status": { "f:conditions": {}, "f:providerID": {}, "f:usage": {} } },
        },
      ],
    },
    spec: {
      endpoint: `https://tts-${index}.example.com/openapi`,
      region: "cn-hangzhou",
      displayName: `杭州文字转语音 ${index}`,
      parameters: { voice: "zhitian", sampleRate: "16000" },
    },
    status: {
      observedGeneration: 1,
      providerID: `prov-${index}-abcdef0123456789`,
      conditions: ["Ready", "Available", "RateLimited", "BillingOverdue", "Reconciling"].map(
        condition,
      ),
      placements: [
        {
          realm: `account-${index % 7}/cn-hangzhou`,
          class: "aliyun-tts",
          endpoint: `https://tts-${index}.example.com/openapi`,
          region: "cn-hangzhou",
          providerID: `prov-${index}-abcdef0123456789`,
          state: "Ready",
        },
      ],
    },
  };
}
