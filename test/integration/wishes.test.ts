/** What users can ask of an object and a class besides being there. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { deleteRoom, listRooms, updateMetadata } from "../support/livekit-rooms.ts";
import {
  applyDhp,
  condition,
  deleteDhp,
  dhp,
  forcePass,
  patchDhp,
  readDhp,
  untilGone,
  untilReady,
} from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

let stack: Stack;

before(async () => {
  stack = await startStack({ controllerFlags: ["--reprobe", "2s"] });
});
after(() => stack.stop());

async function rooms(name: string) {
  const all = await listRooms(stack.livekit);
  return all.filter(({ metadata }) => metadata.includes(`/default/${name}"`));
}

async function readClass(name: string) {
  return JSON.parse(
    expectDone(await stack.cluster.kubectl(["get", "dhpclass", name, "-o", "json"])),
  );
}

test("a suspended object is not made, and is made once suspend is lifted", async () => {
  await applyDhp(stack.cluster, dhp("suspended", { suspend: true }));
  const object = await untilReady(stack.cluster, "suspended", "False");
  assert.equal(condition(object, "Ready").reason, "Suspended");
  assert.deepEqual(await rooms("suspended"), []);
  await patchDhp(stack.cluster, "suspended", { spec: { suspend: false } });
  await untilReady(stack.cluster, "suspended");
});

test("suspending holds changes, keeps Ready with its old generation, and deletion still works", async () => {
  await patchDhp(stack.cluster, "suspended", { spec: { suspend: true, displayName: "later" } });
  const object = await eventually(async () => {
    const read = await readDhp(stack.cluster, "suspended");
    assert.equal(condition(read, "Ready").reason, "Suspended");
    return read;
  });
  assert.equal(condition(object, "Ready").status, "True");
  assert.equal(object.status?.observedGeneration, object.metadata.generation - 1);
  assert.doesNotMatch((await rooms("suspended"))[0]?.metadata ?? "", /later/);
  await deleteDhp(stack.cluster, "suspended");
  await untilGone(stack.cluster, "suspended");
  assert.deepEqual(await rooms("suspended"), []);
});

test("a protected object's delete waits with a condition until protection is lifted", async () => {
  await applyDhp(stack.cluster, dhp("protected", { deletionProtection: true }));
  await untilReady(stack.cluster, "protected");
  await deleteDhp(stack.cluster, "protected");
  await eventually(async () => {
    const ready = condition(await readDhp(stack.cluster, "protected"), "Ready");
    assert.equal(ready.reason, "DeleteBlocked");
    assert.match(ready.message, /deletionProtection/);
  });
  assert.equal((await rooms("protected")).length, 1);
  await patchDhp(stack.cluster, "protected", { spec: { deletionProtection: false } });
  await untilGone(stack.cluster, "protected");
  assert.deepEqual(await rooms("protected"), []);
});

test("a vendor that cannot release is refused before creating when the policy is Retain", async () => {
  await applyDhp(stack.cluster, dhp("retained", { deletionPolicy: "Retain" }));
  const ready = condition(await untilReady(stack.cluster, "retained", "False"), "Ready");
  assert.equal(ready.reason, "InvalidSpec");
  assert.deepEqual(await rooms("retained"), []);
  await deleteDhp(stack.cluster, "retained");
  await untilGone(stack.cluster, "retained");
});

test("a field that the vendor cannot change: ReplaceRequired, Stalled, and Ready keeps the old truth", async () => {
  await applyDhp(stack.cluster, dhp("fixed", { parameters: { maxParticipants: "5" } }));
  const first = await untilReady(stack.cluster, "fixed");
  await patchDhp(stack.cluster, "fixed", { spec: { parameters: { maxParticipants: "6" } } });
  const object = await eventually(async () => {
    const read = await readDhp(stack.cluster, "fixed");
    assert.equal(condition(read, "ReplaceRequired").status, "True");
    return read;
  });
  assert.match(condition(object, "ReplaceRequired").message, /maxParticipants/);
  assert.equal(condition(object, "Stalled").status, "True");
  assert.equal(condition(object, "Ready").status, "True");
  assert.equal(condition(object, "Ready").observedGeneration, first.metadata.generation);
  await patchDhp(stack.cluster, "fixed", { spec: { parameters: { maxParticipants: "5" } } });
  await eventually(async () => {
    const read = await readDhp(stack.cluster, "fixed");
    assert.equal(condition(read, "ReplaceRequired").status, "False");
    assert.equal(condition(read, "Stalled").status, "False");
    assert.equal(read.status?.observedGeneration, 3);
  });
});

test("a room removed by hand is made again exactly once, with an event", async () => {
  await applyDhp(stack.cluster, dhp("vanished"));
  const before = await untilReady(stack.cluster, "vanished");
  const [room] = await rooms("vanished");
  assert.ok(room);
  assert.equal(await deleteRoom(stack.livekit, room.name), 200);
  await forcePass(stack.cluster, "vanished");
  await eventually(async () => {
    const object = await readDhp(stack.cluster, "vanished");
    assert.notEqual(object.status?.providerID, before.status?.providerID);
    assert.equal(condition(object, "Ready").status, "True");
  });
  assert.equal((await rooms("vanished")).length, 1);
  await eventually(async () => {
    const events = await stack.cluster.kubectl(["get", "events", "-o", "json"]);
    assert.match(events.stdout, /"reason": "Recreated"/);
  });
});

test("an edit at the vendor is corrected, or only shown where driftPolicy is Observe", async () => {
  await applyDhp(stack.cluster, dhp("drift-a", { displayName: "right" }));
  await applyDhp(stack.cluster, dhp("drift-b", { displayName: "right", driftPolicy: "Observe" }));
  for (const name of ["drift-a", "drift-b"]) {
    await untilReady(stack.cluster, name);
    const [room] = await rooms(name);
    assert.ok(room);
    const edited = room.metadata.replace("right", "wrong");
    assert.equal(await updateMetadata(stack.livekit, room.name, edited), 200);
    await forcePass(stack.cluster, name);
  }
  await eventually(async () => assert.match((await rooms("drift-a"))[0]?.metadata ?? "", /right/));
  await eventually(async () => {
    const drifted = condition(await readDhp(stack.cluster, "drift-b"), "Drifted");
    assert.equal(drifted.status, "True");
    assert.match(drifted.message, /displayName.*right.*wrong/);
  });
  assert.match((await rooms("drift-b"))[0]?.metadata ?? "", /wrong/);
});

test("a class in use is kept by a finalizer and says by whom; unused it goes", async () => {
  await stack.applyClass("kept", { endpointHosts: [] });
  await applyDhp(stack.cluster, dhp("user", { className: "kept" }));
  await untilReady(stack.cluster, "user");
  expectDone(await stack.cluster.kubectl(["delete", "dhpclass", "kept", "--wait=false"]));
  await eventually(async () => {
    const inUse = condition(await readClass("kept"), "InUse");
    assert.equal(inUse.reason, "DeletionWaits");
    assert.match(inUse.message, /default\/user/);
  });
  await applyDhp(stack.cluster, dhp("late", { className: "kept" }));
  const late = condition(await untilReady(stack.cluster, "late", "False"), "Ready");
  assert.match(late.message, /being deleted/);
  await deleteDhp(stack.cluster, "late");
  await deleteDhp(stack.cluster, "user");
  await untilGone(stack.cluster, "user");
  await eventually(async () => {
    const result = await stack.cluster.kubectl(["get", "dhpclass", "kept"]);
    assert.match(result.stderr, /NotFound/);
  });
});

test("a class says who answers and how many use it", async () => {
  const found = await eventually(async () => {
    const read = await readClass("livekit");
    assert.equal(condition(read, "Connected").status, "True");
    assert.equal(condition(read, "Compatible").status, "True");
    assert.ok(read.status.instances > 0);
    return read;
  });
  assert.equal(found.status.adapter.name, "livekit");
  assert.ok(found.status.capabilities.includes("DELETE"));
});

test("a class's namespaces are kept to", async () => {
  await stack.applyClass("theirs", { endpointHosts: [], allowedNamespaces: ["elsewhere"] });
  await applyDhp(stack.cluster, dhp("outside", { className: "theirs" }));
  const ready = condition(await untilReady(stack.cluster, "outside", "False"), "Ready");
  assert.equal(ready.reason, "NotAllowed");
});

test("of a class with a bound no more is deleted in a minute, and the others wait with a condition", async () => {
  await stack.applyClass("slow", { endpointHosts: [], maxDeletionsPerMinute: 2 });
  const names = ["braked-1", "braked-2", "braked-3"];
  for (const name of names) await applyDhp(stack.cluster, dhp(name, { className: "slow" }));
  for (const name of names) await untilReady(stack.cluster, name);
  for (const name of names) await deleteDhp(stack.cluster, name);
  const left = await eventually(async () => {
    const all = JSON.parse(expectDone(await stack.cluster.kubectl(["get", "dhp", "-o", "json"])));
    const braked = all.items.filter((item: { metadata: { name: string } }) =>
      names.includes(item.metadata.name),
    );
    assert.equal(braked.length, 1);
    assert.match(condition(braked[0], "Ready").message, /at most 2 instances a minute/);
    return braked[0];
  });
  assert.equal((await rooms(left.metadata.name)).length, 1);
});
