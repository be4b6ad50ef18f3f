import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { startCluster } from "../../deploy/dev-cluster/cluster.ts";
import type { Cluster } from "../../deploy/dev-cluster/cluster.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { systemClock } from "../../services/process/clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { isApiError } from "./api-error.ts";
import type { ApiErrorKind } from "./api-error.ts";
import { listInPages } from "./collection-list.ts";
import { CountingConnection } from "./counting-connection.ts";
import { EventRecorder } from "./events.ts";
import { OwnWrites } from "./own-writes.ts";
import { isRawObject, readIdentity } from "./raw-object.ts";
import type { RawObject } from "./raw-object.ts";
import { collectionPath, ResourceClient } from "./resource-client.ts";
import { Watch } from "./watch.ts";

const widgets = { group: "example.com", version: "v1", plural: "widgets", isNamespaced: true };

const widgetCrd = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.example.com" },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        },
      },
    ],
  },
};

describe("the runtime on a real API server", () => {
  let cluster: Cluster;
  let connection: CountingConnection;
  let client: ResourceClient<RawObject>;
  let watch: Watch<RawObject>;
  let told: string[];
  let lists: string[];
  let ends: string[];
  const stopping = new AbortController();
  let run: Promise<void>;

  before(async () => {
    cluster = await startCluster();
    connection = new CountingConnection(cluster.adminKubeconfig, { pingIntervalMs: 500 });
    const parse = (raw: RawObject): RawObject => raw;
    client = new ResourceClient({ connection, type: widgets, parse, timeoutMs: 10_000 });
    [told, lists, ends] = [[], [], []];
    watch = new Watch({
      connection,
      path: collectionPath(widgets),
      parse,
      onEvent: ({ kind, key }) => told.push(`${kind} ${key}`),
      clock: systemClock,
      random: Math.random,
      log: silentLog,
      metrics: {
        onList: ({ how }) => lists.push(how),
        onEnd: ({ reason }) => ends.push(reason),
        onDefect: () => undefined,
      },
    });
    run = watch.run(stopping.signal);
  });

  after(async () => {
    stopping.abort();
    await run;
    await connection.close();
    await cluster.stop();
  });

  async function createWidget(name: string, fields: object = {}): Promise<RawObject> {
    const metadata = { name, namespace: "default" };
    return client.create({ apiVersion: "example.com/v1", kind: "Widget", metadata, ...fields });
  }

  test("a watch waits for its CRD and then lists by stream", async () => {
    await eventually(async () => assert.equal(watch.state, "waiting-for-crd"));
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    await connection.request({ method: "POST", path, body: widgetCrd, timeoutMs: 10_000 });
    await watch.whenSynced(AbortSignal.timeout(20_000));
    assert.deepEqual(lists, ["stream"]);
  });

  test("create, status, finalizer and delete reach the cache in order", async () => {
    const created = await createWidget("ordered", { spec: { size: 1 } });
    const withStatus = await client.patchStatus(created, { ...created, status: { ok: true } });
    const metadata = created["metadata"];
    assert.ok(isRawObject(metadata));
    const finalizers = ["example.com/cleanup"];
    const current = withStatus.object;
    assert.ok(isRawObject(current["metadata"]));
    const held = await client.patch(current, {
      ...current,
      metadata: { ...current["metadata"], finalizers },
    });
    await client.delete(held.object);
    const deleting = await client.get("default/ordered");
    assert.ok(isRawObject(deleting["metadata"]));
    assert.ok(deleting["metadata"]["deletionTimestamp"] !== undefined);
    await client.patch(deleting, {
      ...deleting,
      metadata: { ...deleting["metadata"], finalizers: [] },
    });
    await eventually(async () =>
      assert.deepEqual(
        told.filter((line) => line.endsWith("/ordered")).map((line) => line.split(" ")[0]),
        ["added", "modified", "modified", "modified", "deleted"],
      ),
    );
    await assert.rejects(client.get("default/ordered"), kind("not-found"));
  });

  test("fields this program does not know survive a patch made from the cache", async () => {
    const spec = { size: 1, nobody: { knows: [{ this: "杭州" }] } };
    await createWidget("unknown", { spec });
    await eventually(async () => assert.ok(watch.get("default/unknown")));
    const cached = watch.get("default/unknown") ?? {};
    await client.patch(cached, { ...cached, spec: { ...spec, size: 2 } });
    assert.deepEqual((await client.get("default/unknown"))["spec"], { ...spec, size: 2 });
  });

  test("a patch from an outdated version is a conflict, on the object and on status", async () => {
    const created = await createWidget("outdated", { spec: { size: 1 } });
    await client.patch(created, { ...created, spec: { size: 2 } });
    const late = { ...created, spec: { size: 3 } };
    await assert.rejects(client.patch(created, late), kind("conflict"));
    const lateStatus = { ...created, status: { ok: true } };
    await assert.rejects(client.patchStatus(created, lateStatus), kind("conflict"));
    await assert.rejects(createWidget("outdated"), kind("already-exists"));
  });

  test("nothing to write is no request", async () => {
    const created = await createWidget("settled");
    const calls = connection.counts.codes.length;
    for (let count = 0; count < 5; count += 1) {
      await client.patch(created, structuredClone(created));
      await client.patchStatus(created, structuredClone(created));
    }
    assert.equal(connection.counts.codes.length, calls);
  });

  test("an own write is unseen until the cache has it", async () => {
    const writes = new OwnWrites(watch);
    const created = await createWidget("own");
    writes.record("default/own", readIdentity(created).resourceVersion);
    await eventually(async () => assert.ok(writes.hasSeen("default/own")));
    assert.ok(watch.get("default/own"));
    await client.delete(created);
    await eventually(async () => assert.equal(watch.get("default/own"), undefined));
  });

  test("a refresh reaches a version written elsewhere without waiting for a bookmark", async () => {
    const path = collectionPath({ group: "", version: "v1", plural: "configmaps" }, "default");
    const body = { metadata: { generateName: "elsewhere-" } };
    const written = await connection.request({ method: "POST", path, body, timeoutMs: 5_000 });
    const writes = new OwnWrites(watch);
    writes.record("default/any", readIdentity(written).resourceVersion);
    assert.ok(!writes.hasSeen("default/any"));
    await watch.refresh(AbortSignal.timeout(5_000));
    assert.ok(writes.hasSeen("default/any"));
    assert.equal(watch.state, "watching");
  });

  test("a list in pages is the list by stream", async () => {
    for (let count = 0; count < 7; count += 1) await createWidget(`page-${count}`);
    const list = await listInPages({
      connection,
      path: collectionPath(widgets),
      query: {},
      pageSize: 2,
      objectsMax: 1_000,
      timeoutMs: 5_000,
      signal: AbortSignal.timeout(10_000),
    });
    await watch.refresh(AbortSignal.timeout(5_000));
    assert.deepEqual([...list.items.keys()].toSorted(), watch.keys().toSorted());
  });

  test("1,000 calls beside a watch cost no handshake", async () => {
    const { handshakes } = connection.counts;
    for (let batch = 0; batch < 20; batch += 1) {
      await Promise.all(Array.from({ length: 50 }, () => client.get("default/settled")));
    }
    assert.equal(connection.counts.handshakes, handshakes);
    assert.ok(handshakes <= 2, `${handshakes} handshakes since the start`);
  });

  test("the API server accepts events and their series", async () => {
    const object = await client.get("default/settled");
    const { name, uid } = readIdentity(object);
    const recorder = new EventRecorder({
      connection,
      clock: systemClock,
      log: silentLog,
      reportingController: "example.com/test",
      reportingInstance: "test",
      limits: { seriesWriteMs: 0 },
    });
    const event = {
      regarding: {
        apiVersion: "example.com/v1",
        kind: "Widget",
        namespace: "default",
        name,
        uid,
      },
      type: "Warning",
      reason: "TestReason",
      action: "Test",
      note: "something happened: 杭州",
    } as const;
    const sent = connection.counts.codes.length;
    recorder.record(event);
    await eventually(async () => assert.ok(connection.counts.codes.length > sent));
    recorder.record(event);
    recorder.record(event);
    await recorder.stop(5_000);
    const path = "/apis/events.k8s.io/v1/namespaces/default/events";
    const found = await connection.request({ method: "GET", path, timeoutMs: 5_000 });
    const items = isRawObject(found) && Array.isArray(found["items"]) ? found["items"] : [];
    const ours = items.filter(isRawObject).filter((item) => item["reason"] === "TestReason");
    assert.equal(ours.length, 1);
    assert.deepEqual(ours[0]?.["note"], event.note);
    const { series } = ours[0] ?? {};
    assert.equal(isRawObject(series) ? series["count"] : undefined, 3);
  });

  test("a service account's token is enough, and its refusals are forbidden", async () => {
    const kubectl = await cluster.kubectl(["create", "serviceaccount", "reader"]);
    assert.equal(kubectl.code, 0, kubectl.stderr);
    const kubeconfig = await cluster.serviceAccountKubeconfig({
      namespace: "default",
      name: "reader",
    });
    const limited = new CountingConnection(kubeconfig);
    const get = { method: "GET", timeoutMs: 5_000 } as const;
    assert.ok(isRawObject(await limited.request({ ...get, path: "/version" })));
    const path = collectionPath(widgets);
    await assert.rejects(limited.request({ ...get, path }), kind("forbidden"));
    await limited.close();
  });

  test("a paused API server is noticed, and all is well when it goes on", async () => {
    cluster.pause();
    try {
      const call = client.get("default/settled");
      await assert.rejects(call, kind("network", "timeout"));
      await eventually(async () => assert.notEqual(watch.state, "watching"));
    } finally {
      cluster.resume();
    }
    await eventually(async () => assert.equal(watch.state, "watching"), 30_000);
    await createWidget("after-pause");
    await eventually(async () => assert.ok(watch.get("default/after-pause")));
  });

  test("a restarted API server is watched again: one stream, nothing missed", async () => {
    const handshakes = connection.counts.handshakes;
    const toldBefore = told.length;
    await cluster.restart();
    await eventually(async () => void (await createWidget("after-restart")), 30_000);
    await eventually(async () => assert.ok(watch.get("default/after-restart")), 30_000);
    assert.deepEqual(told.slice(toldBefore), ["added default/after-restart"]);
    assert.ok(connection.counts.handshakes - handshakes <= 3);
    const listed = await client.list({ namespace: "default" });
    const keys = listed.map((object) => `default/${readIdentity(object).name}`);
    assert.deepEqual(watch.keys().toSorted(), keys.toSorted());
  });

  test("a CRD taken away is waited for again, and its objects are told as deleted", async () => {
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    await connection.request({ method: "DELETE", path, timeoutMs: 10_000 });
    await eventually(async () => assert.equal(watch.state, "waiting-for-crd"), 30_000);
    await eventually(async () => {
      const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
      await connection.request({ method: "POST", path: crds, body: widgetCrd, timeoutMs: 10_000 });
    }, 30_000);
    await eventually(async () => assert.equal(watch.state, "watching"), 30_000);
    await eventually(async () => assert.deepEqual(watch.keys(), []));
  });
});

function kind(...kinds: readonly ApiErrorKind[]): (error: unknown) => boolean {
  return (error) => isApiError(error, ...kinds);
}
