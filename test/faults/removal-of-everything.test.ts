/** Taking everything away, in the documented order and in the wrong one: nothing hangs unexplained. */
import assert from "node:assert/strict";
import { dirname } from "node:path";
import { after, before, test } from "node:test";
import { expectDone, layerFolder, untilEstablished } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import { applyDhp, dhp, readDhp, untilReady } from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

const deploy = dirname(layerFolder("crd"));
const kinds = ["digitalhumanproviders", "digitalhumanproviderclasses"];
const names = ["one", "two", "three"];
const waitMsMax = 60_000;
let stack: Stack;

before(async () => {
  stack = await startStack({
    withControllerManager: true,
    layers: ["crd", "policy", "controller"],
    controllerFlags: ["--back-off-max=500ms"],
    adapterFlags: ["--read-timeout=1s", "--circuit-open=500ms"],
  });
});
after(() => stack.stop());

async function kubectl(...args: readonly string[]): Promise<string> {
  return expectDone(await stack.cluster.kubectl(args));
}

async function applyAll(): Promise<void> {
  for (const name of names) await applyDhp(stack.cluster, dhp(name));
  for (const name of names) await untilReady(stack.cluster, name);
  assert.equal((await listRooms(stack.livekit)).length, names.length);
}

/** Neither the kinds are left nor what makes them work. */
async function untilNothingIsLeft(): Promise<void> {
  await eventually(async () => {
    const left = await kubectl("get", "crd,ns,clusterrole,validatingadmissionpolicy", "-o", "name");
    const ours = left.split("\n").filter((name) => /dhp/.test(name));
    assert.deepEqual(ours, []);
  }, waitMsMax);
  assert.deepEqual(await listRooms(stack.livekit), []);
}

test("in the documented order everything goes, and no instance is left", async () => {
  await applyAll();
  await kubectl("delete", "dhp", "--all", "-A", "--timeout=30s");
  assert.deepEqual(await listRooms(stack.livekit), []);
  await kubectl("delete", "dhpclass", "--all", "--timeout=30s");
  await stack.controller.stop();
  await kubectl("delete", "-k", deploy, "--timeout=60s");
  await untilNothingIsLeft();
});

test("installed again, the kinds say what they wait for when they are taken away first", async () => {
  await kubectl("apply", "-k", deploy);
  await untilEstablished(stack.cluster);
  await stack.applyClass();
  await stack.startController();
  await applyAll();
  // A vendor that is silent just now: no deletion can end while the controller still may work.
  stack.livekit.pause();
  await kubectl("delete", "-k", deploy, "--wait=false");
  await stack.controller.stop();
  stack.livekit.resume();
  await eventually(async () => {
    for (const kind of kinds) {
      const reason = '{.status.conditions[?(@.type=="Terminating")].reason}';
      const crd = `crd/${kind}.dhp.example.com`;
      const said = await kubectl("get", crd, "-o", `jsonpath=${reason}`);
      assert.equal(said, "InstanceDeletionInProgress");
    }
  });
  for (const name of names) {
    const { metadata } = await readDhp(stack.cluster, name);
    assert.ok(metadata.deletionTimestamp);
    assert.deepEqual(metadata.finalizers, ["dhp.example.com/provider-cleanup"]);
  }
  assert.equal((await listRooms(stack.livekit)).length, names.length);
});

test("and once policy and controller are back, objects, rooms and kinds go by themselves", async () => {
  await eventually(async () => {
    await kubectl("apply", "-k", layerFolder("policy"));
    await kubectl("apply", "-k", layerFolder("controller"));
  }, waitMsMax);
  await stack.startController();
  await eventually(async () => {
    const left = await kubectl("get", "crd", "-o", "name");
    assert.doesNotMatch(left, /dhp/);
  }, waitMsMax);
  assert.deepEqual(await listRooms(stack.livekit), []);
  await kubectl("delete", "-k", layerFolder("controller"));
  await kubectl("delete", "-k", layerFolder("policy"));
  await untilNothingIsLeft();
});
