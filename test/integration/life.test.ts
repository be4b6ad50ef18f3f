/** The main job on real parts: kube-apiserver, LiveKit, adapter and controller processes. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { httpGet, metricValue } from "../support/http-get.ts";
import { deleteRoom, listRooms } from "../support/livekit-rooms.ts";
import {
  applyDhp,
  condition,
  deleteDhp,
  dhp,
  patchDhp,
  readDhp,
  untilGone,
  untilReady,
} from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

const controllerUser = "system:serviceaccount:dhp-system:dhp-controller";
let stack: Stack;

before(async () => {
  stack = await startStack({ auditLog: true, layers: ["crd", "policy", "controller"] });
});
after(() => stack.stop());

async function roomOf(name: string) {
  const rooms = await listRooms(stack.livekit);
  return rooms.filter(({ metadata }) => metadata.includes(`/default/${name}"`));
}

/** Requests of the controller about one object, watches left out. */
async function requestsAbout(name: string) {
  const entries = await stack.cluster.audit();
  return entries.filter(
    (entry) =>
      entry.user === controllerUser &&
      entry.verb !== "watch" &&
      entry.resource === "digitalhumanproviders" &&
      entry.name === name,
  );
}

async function reconciles(): Promise<number> {
  const { text } = await httpGet(stack.controller.ports.adminPort, "/metrics");
  return metricValue(text, "controller_runtime_reconcile_total");
}

test("apply creates exactly one room, and status says Ready, providerID and observedGeneration", async () => {
  await applyDhp(stack.cluster, dhp("one"));
  const object = await untilReady(stack.cluster, "one");
  const rooms = await roomOf("one");
  assert.equal(rooms.length, 1);
  assert.ok(object.status?.providerID);
  assert.equal(condition(object, "Ready").reason, "ProviderReady");
  assert.equal(object.status?.className, "livekit");
  assert.equal(object.status?.placements?.length, 1);
});

test("a create costs two writes, a delete one", async () => {
  await applyDhp(stack.cluster, dhp("writes"));
  await untilReady(stack.cluster, "writes");
  const creating = await requestsAbout("writes");
  assert.deepEqual(
    creating.map(({ verb, subresource }) => [verb, subresource ?? ""]),
    [
      ["patch", ""],
      ["patch", "status"],
    ],
  );
  await deleteDhp(stack.cluster, "writes");
  await untilGone(stack.cluster, "writes");
  const deleting = (await requestsAbout("writes")).slice(creating.length);
  assert.deepEqual(
    deleting.map(({ verb, subresource }) => [verb, subresource ?? ""]),
    [["patch", ""]],
  );
  assert.deepEqual(await roomOf("writes"), []);
});

test("delete removes the room, then the object", async () => {
  await applyDhp(stack.cluster, dhp("gone"));
  await untilReady(stack.cluster, "gone");
  await deleteDhp(stack.cluster, "gone");
  await untilGone(stack.cluster, "gone");
  assert.deepEqual(await roomOf("gone"), []);
});

test("a room removed by hand does not keep its object: the vendor's 404 ends the delete", async () => {
  await applyDhp(stack.cluster, dhp("by-hand"));
  await untilReady(stack.cluster, "by-hand");
  const [room] = await roomOf("by-hand");
  assert.ok(room);
  assert.equal(await deleteRoom(stack.livekit, room.name), 200);
  await deleteDhp(stack.cluster, "by-hand");
  await untilGone(stack.cluster, "by-hand", 3_000);
});

test("three annotations leave one room, and observedGeneration equal to generation", async () => {
  await applyDhp(stack.cluster, dhp("touched"));
  await untilReady(stack.cluster, "touched");
  for (const count of ["1", "2", "3"]) {
    await patchDhp(stack.cluster, "touched", { metadata: { annotations: { touched: count } } });
  }
  const object = await readDhp(stack.cluster, "touched");
  assert.equal(object.status?.observedGeneration, object.metadata.generation);
  assert.equal((await roomOf("touched")).length, 1);
});

test("five forced passes of a settled object leave resourceVersion at the user's own write", async () => {
  await applyDhp(stack.cluster, dhp("forced"));
  await untilReady(stack.cluster, "forced");
  const requestsBefore = (await requestsAbout("forced")).length;
  let written = "";
  for (const count of [1, 2, 3, 4, 5]) {
    const reconcilesBefore = await reconciles();
    const annotations = { "dhp.example.com/reconcile-requested-at": `pass-${count}` };
    const object = await patchDhp(stack.cluster, "forced", { metadata: { annotations } });
    written = object.metadata.resourceVersion;
    await eventually(async () => assert.ok((await reconciles()) > reconcilesBefore));
  }
  assert.equal((await readDhp(stack.cluster, "forced")).metadata.resourceVersion, written);
  assert.equal((await requestsAbout("forced")).length, requestsBefore);
});

test("a settled object costs no API request when it is touched", async () => {
  await applyDhp(stack.cluster, dhp("settled"));
  await untilReady(stack.cluster, "settled");
  const requestsBefore = (await requestsAbout("settled")).length;
  const reconcilesBefore = await reconciles();
  await patchDhp(stack.cluster, "settled", { metadata: { labels: { seen: "yes" } } });
  await eventually(async () => assert.ok((await reconciles()) > reconcilesBefore));
  assert.equal((await requestsAbout("settled")).length, requestsBefore);
});

test("a spec edited between read and status write stands, and observedGeneration follows", async () => {
  await applyDhp(stack.cluster, dhp("edited", { displayName: "first" }));
  await untilReady(stack.cluster, "edited");
  stack.livekit.pause();
  try {
    await patchDhp(stack.cluster, "edited", { spec: { displayName: "second" } });
    // The pass has read "second" and waits for the vendor; now the user edits again.
    await patchDhp(stack.cluster, "edited", { spec: { displayName: "third" } });
  } finally {
    stack.livekit.resume();
  }
  const object = await untilReady(stack.cluster, "edited");
  assert.equal(object.spec["displayName"], "third");
  assert.equal(object.metadata.generation, 3);
  const [room] = await roomOf("edited");
  assert.match(room?.metadata ?? "", /third/);
});

test("metadata alone does not raise generation", async () => {
  const before = await readDhp(stack.cluster, "edited");
  const after = await patchDhp(stack.cluster, "edited", { metadata: { labels: { a: "b" } } });
  assert.equal(after.metadata.generation, before.metadata.generation);
});

test("the finalizer of a recorded object is not taken off by hand", async () => {
  const patch = JSON.stringify({ metadata: { finalizers: null } });
  const result = await stack.cluster.kubectl(["patch", "dhp", "one", "--type=merge", "-p", patch]);
  assert.notEqual(result.code, 0);
  assert.match(result.stderr, /may still be billed/);
  const replace = JSON.stringify(dhp("one"));
  const replaced = await stack.cluster.kubectl(["replace", "-f", "-"], { input: replace });
  assert.notEqual(replaced.code, 0);
  assert.match(replaced.stderr, /may still be billed/);
});

test("all of this cost at most two TLS handshakes with the API server", async () => {
  const { text } = await httpGet(stack.controller.ports.adminPort, "/metrics");
  assert.ok(metricValue(text, "rest_client_requests_total") > 20);
  assert.ok(metricValue(text, "dhp_api_tls_handshakes_total") <= 2);
});

test("names in Chinese and emoji reach the room as they were written", async () => {
  await applyDhp(stack.cluster, dhp("named", { displayName: "杭州文字转语音 🎙️" }));
  await untilReady(stack.cluster, "named");
  const [room] = await roomOf("named");
  assert.match(room?.metadata ?? "", /杭州文字转语音 🎙️/);
});
