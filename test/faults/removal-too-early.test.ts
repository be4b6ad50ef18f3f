import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { layerFolder } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { readDhp } from "../support/providers.ts";
import { deployFolder, Installation, objectNames, waitMsMax } from "./whole-installation.ts";

const crds = ["digitalhumanproviders", "digitalhumanproviderclasses"].map(
  (plural) => `crd/${plural}.dhp.example.com`,
);
let installation: Installation;

before(async () => {
  installation = await Installation.start();
});
after(() => installation.stack.stop());

test("kinds that are taken away with everything else say what they wait for, and keep it", async () => {
  const { stack } = installation;
  // A vendor that is silent just now: no deletion can end while the controller still may work.
  stack.livekit.pause();
  await installation.kubectl("delete", "-k", deployFolder, "--wait=false");
  await stack.controller.stop();
  stack.livekit.resume();
  const reason = 'jsonpath={.status.conditions[?(@.type=="Terminating")].reason}';
  for (const crd of crds) {
    await eventually(async () => {
      const said = await installation.kubectl("get", crd, "-o", reason);
      assert.equal(said, "InstanceDeletionInProgress");
    });
  }
  for (const name of objectNames) {
    const { metadata } = await readDhp(stack.cluster, name);
    assert.ok(metadata.deletionTimestamp);
    assert.deepEqual(metadata.finalizers, ["dhp.example.com/provider-cleanup"]);
  }
  assert.equal(await installation.roomCount(), objectNames.length);
});

test("once policy and controller are back, objects, rooms and kinds go by themselves", async () => {
  await eventually(async () => {
    await installation.kubectl("apply", "-k", layerFolder("policy"));
    await installation.kubectl("apply", "-k", layerFolder("controller"));
  }, waitMsMax);
  await installation.stack.startController();
  await eventually(async () => {
    assert.doesNotMatch(await installation.kubectl("get", "crd", "-o", "name"), /dhp/);
  }, waitMsMax);
  assert.equal(await installation.roomCount(), 0);
  await installation.kubectl("delete", "-k", layerFolder("controller"));
  await installation.kubectl("delete", "-k", layerFolder("policy"));
  await installation.untilNothingIsLeft();
});
