/** What the record of an object outlives: mistyped endpoints, clones, restored backups, new classes. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { expectDone, expectRefused } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import type { Room } from "../support/livekit-rooms.ts";
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
import type { Dhp } from "../support/providers.ts";
import { livekitEndpoint, otherEndpoint, startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

let stack: Stack;

before(async () => {
  stack = await startStack({
    withSecondVendor: true,
    layers: ["crd", "policy", "controller"],
    adapterFlags: ["--read-timeout", "500ms", "--circuit-open", "500ms"],
    controllerFlags: ["--back-off-max", "1s", "--reprobe", "2s"],
  });
});
after(() => stack.stop());

async function roomsOf(name: string): Promise<readonly Room[]> {
  const rooms = await listRooms(stack.livekit);
  return rooms.filter(({ metadata }) => metadata.includes(`/default/${name}"`));
}

/** The second server answers nothing while `work` runs. */
async function withSilentOther(work: () => Promise<void>): Promise<void> {
  stack.otherLivekit.pause();
  try {
    await work();
  } finally {
    stack.otherLivekit.resume();
  }
}

interface BackedUp {
  readonly metadata: Pick<Dhp["metadata"], "annotations" | "finalizers">;
  readonly spec: Dhp["spec"];
}

/** As an API server takes it from a backup: another uid, and no status. */
async function restore(name: string, { metadata, spec }: BackedUp): Promise<void> {
  const { annotations, finalizers } = metadata;
  const manifest = {
    ...dhp(name, spec),
    metadata: { name, namespace: "default", annotations, finalizers },
  };
  const input = JSON.stringify(manifest);
  expectDone(await stack.cluster.kubectl(["create", "-f", "-"], { input }));
}

test("an endpoint mistyped at first records nothing: edited back it is made once, and deletes end", async () => {
  await withSilentOther(async () => {
    await applyDhp(stack.cluster, dhp("mistyped", { endpoint: otherEndpoint }));
    const away = await untilReady(stack.cluster, "mistyped", "False");
    assert.deepEqual(away.status?.placements ?? [], []);
    assert.deepEqual(away.metadata.finalizers ?? [], []);
    await patchDhp(stack.cluster, "mistyped", { spec: { endpoint: livekitEndpoint } });
    const back = await untilReady(stack.cluster, "mistyped");
    assert.equal(back.status?.placements?.length, 1);
    assert.equal((await roomsOf("mistyped")).length, 1);
    await deleteDhp(stack.cluster, "mistyped");
    await untilGone(stack.cluster, "mistyped", 5_000);
  });
  assert.deepEqual(await roomsOf("mistyped"), []);
});

test("an endpoint mistyped later records nothing there either, so that the delete does not wait for it", async () => {
  await applyDhp(stack.cluster, dhp("strayed"));
  await untilReady(stack.cluster, "strayed");
  await withSilentOther(async () => {
    await patchDhp(stack.cluster, "strayed", { spec: { endpoint: otherEndpoint } });
    const away = await untilReady(stack.cluster, "strayed", "False");
    assert.deepEqual(
      away.status?.placements?.map(({ endpoint }) => endpoint),
      [livekitEndpoint],
    );
    await patchDhp(stack.cluster, "strayed", { spec: { endpoint: livekitEndpoint } });
    await untilReady(stack.cluster, "strayed");
    await deleteDhp(stack.cluster, "strayed");
    await untilGone(stack.cluster, "strayed", 5_000);
  });
  assert.deepEqual(await roomsOf("strayed"), []);
});

test("a suspended object that is deleted says what it waits for, and goes when the vendor answers", async () => {
  await applyDhp(stack.cluster, dhp("held"));
  await untilReady(stack.cluster, "held");
  await patchDhp(stack.cluster, "held", { spec: { suspend: true } });
  stack.livekit.pause();
  try {
    await deleteDhp(stack.cluster, "held");
    await eventually(async () => {
      const ready = condition(await readDhp(stack.cluster, "held"), "Ready");
      assert.equal(ready.reason, "DeleteFailed", ready.message);
      assert.match(ready.message, /cannot delete "local\/default\/held" at livekit live\.example/);
    });
  } finally {
    stack.livekit.resume();
  }
  await untilGone(stack.cluster, "held");
  assert.deepEqual(await roomsOf("held"), []);
});

test("a clone that carries our annotation is admitted, gets a room of its own, and takes none along", async () => {
  await applyDhp(stack.cluster, dhp("original"));
  const original = await untilReady(stack.cluster, "original");
  assert.ok(original.metadata.annotations?.["dhp.example.com/first-placement"]);
  await restore("clone", original);
  const clone = await untilReady(stack.cluster, "clone");
  assert.notEqual(clone.status?.providerID, original.status?.providerID);
  await deleteDhp(stack.cluster, "clone");
  await untilGone(stack.cluster, "clone");
  assert.deepEqual(await roomsOf("clone"), []);
  assert.equal((await roomsOf("original")).length, 1);
});

test("an object that is abandoned with a reason goes while its adapter is gone, and its room stays", async () => {
  const { grpcPort = 0 } = stack.adapter.ports;
  await stack.adapter.kill();
  await deleteDhp(stack.cluster, "original");
  await eventually(async () => {
    const ready = condition(await readDhp(stack.cluster, "original"), "Ready");
    assert.equal(ready.reason, "DeleteFailed", ready.message);
  });
  const patch = ["patch", "dhp", "original", "--type=merge", "-p"];
  const withoutFinalizers = JSON.stringify({ metadata: { finalizers: null } });
  expectRefused(await stack.cluster.kubectl([...patch, withoutFinalizers]), /abandon=<reason>/);
  const annotations = { "dhp.example.com/abandon": "the contract has ended" };
  await patchDhp(stack.cluster, "original", { metadata: { annotations } });
  expectDone(await stack.cluster.kubectl([...patch, withoutFinalizers]));
  await untilGone(stack.cluster, "original", 2_000);
  await stack.startAdapter(grpcPort);
  assert.equal((await roomsOf("original")).length, 1);
});

test("an object restored from a backup restamps its room, whatever the record of before says", async () => {
  const [room] = await roomsOf("original");
  const uid = "11111111-2222-3333-4444-555555555555";
  const annotations = {
    "dhp.example.com/first-placement": JSON.stringify({ uid, placement: { version: 1 } }),
  };
  const metadata = { annotations, finalizers: ["dhp.example.com/provider-cleanup"] };
  await restore("original", { metadata, spec: {} });
  const object = await untilReady(stack.cluster, "original");
  const [restamped, ...others] = await roomsOf("original");
  assert.deepEqual(others, []);
  assert.equal(restamped?.sid, room?.sid);
  assert.ok(restamped?.metadata.includes(object.metadata.uid));
  assert.ok(!room?.metadata.includes(object.metadata.uid));
  await deleteDhp(stack.cluster, "original");
  await untilGone(stack.cluster, "original");
  assert.deepEqual(await roomsOf("original"), []);
});

test("a new class that matches a running object more closely moves nobody", async () => {
  await applyDhp(stack.cluster, dhp("settled", { endpoint: otherEndpoint }));
  const before = await untilReady(stack.cluster, "settled");
  assert.equal(before.status?.className, "livekit");
  await stack.applyClass("closer", { endpointHosts: [new URL(otherEndpoint).host] });
  await applyDhp(stack.cluster, dhp("newcomer", { endpoint: otherEndpoint }));
  const newcomer = await untilReady(stack.cluster, "newcomer");
  assert.equal(newcomer.status?.className, "closer");
  await forcePass(stack.cluster, "settled");
  await patchDhp(stack.cluster, "settled", { spec: { displayName: "edited" } });
  const after = await untilReady(stack.cluster, "settled");
  assert.equal(after.status?.className, "livekit");
  assert.equal(after.status?.providerID, before.status?.providerID);
  assert.deepEqual(after.status?.placements, before.status?.placements);
});
