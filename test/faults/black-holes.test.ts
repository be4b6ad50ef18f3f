/** What is asked to go while nobody answers: it waits, says for what, and goes when it can. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { emulatorApiKey } from "../../adapters/elevenlabs/emulator.ts";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import {
  applyDhp,
  condition,
  deleteDhp,
  dhp,
  forcePass,
  readDhp,
  untilGone,
  untilReady,
} from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

const healMs = 60_000;
const speech = { endpoint: elevenLabsEndpoint, region: "global" };
let stack: Stack;

before(async () => {
  stack = await startStack({
    withControllerManager: true,
    layers: ["crd", "policy", "controller"],
    withElevenLabs: {},
    adapterFlags: ["--read-timeout", "500ms", "--circuit-open", "500ms"],
    controllerFlags: ["--back-off-max", "1s", "--reprobe", "2s"],
  });
});
after(() => stack?.stop());
afterEach(() => stack.elevenLabs.useKey("default", emulatorApiKey));

/** Of an object that is being deleted, wherever it is. */
async function untilWaiting(
  namespace: string,
  name: string,
  reason: "DeleteFailed" | "DeleteBlocked",
  words: RegExp,
): Promise<void> {
  await eventually(async () => {
    const get = ["get", "dhp", name, "--namespace", namespace, "-o", "json"];
    const object = JSON.parse(expectDone(await stack.cluster.kubectl(get)));
    assert.ok(object.metadata.deletionTimestamp);
    const ready = condition(object, "Ready");
    assert.equal(ready.reason, reason, ready.message);
    assert.match(ready.message, words);
  }, healMs);
}

test("adapter and vendor black-holed during a delete: it stays, says for whom it waits, and completes when they are back", async () => {
  const { cluster } = stack;
  await applyDhp(cluster, dhp("stuck"));
  await untilReady(cluster, "stuck");
  stack.adapter.pause();
  await deleteDhp(cluster, "stuck");
  await untilWaiting("default", "stuck", "DeleteFailed", /127\.0\.0\.1:\d+|adapter/);
  stack.livekit.pause();
  stack.adapter.resume();
  await untilWaiting("default", "stuck", "DeleteFailed", /live\.example\.com/);
  assert.ok((await readDhp(cluster, "stuck")).metadata.finalizers?.length);
  stack.livekit.resume();
  await untilGone(cluster, "stuck", healMs);
  assert.deepEqual(await listRooms(stack.livekit), []);
});

/** A namespace with one object, deleted when its account's credential is gone already. */
async function orphanedNamespace(namespace: string): Promise<void> {
  const { cluster } = stack;
  expectDone(await cluster.kubectl(["create", "namespace", namespace]));
  const manifest = { ...dhp("last", speech), metadata: { name: "last", namespace } };
  await applyDhp(cluster, manifest);
  const wait = ["wait", "--for=condition=Ready", "dhp/last", "--namespace", namespace];
  expectDone(await cluster.kubectl([...wait, "--timeout=30s"]));
  await stack.elevenLabs.removeCredential("default");
  expectDone(await cluster.kubectl(["delete", "namespace", namespace, "--wait=false"]));
  await untilWaiting(namespace, "last", "DeleteBlocked", /credential/);
}

async function untilNamespaceGone(namespace: string): Promise<void> {
  await eventually(async () => {
    const { stderr, stdout } = await stack.cluster.kubectl(["get", "namespace", namespace]);
    assert.match(stderr, /NotFound/, stdout);
  }, healMs);
}

test("a namespace whose credential went first waits with a clear condition, and ends with the credential back", async () => {
  await orphanedNamespace("studio");
  assert.equal((await stack.elevenLabs.agents()).length, 1);
  await stack.elevenLabs.useKey("default", emulatorApiKey);
  await untilNamespaceGone("studio");
  assert.deepEqual(await stack.elevenLabs.agents(), []);
});

test("a namespace whose credential is gone for good ends by the documented override, and the agent is left to a person", async () => {
  await orphanedNamespace("attic");
  const patch = ["patch", "dhp", "last", "--namespace=attic", "--type=merge", "-p"];
  const annotations = { "dhp.example.com/abandon": "the contract has ended" };
  expectDone(
    await stack.cluster.kubectl([...patch, JSON.stringify({ metadata: { annotations } })]),
  );
  const without = JSON.stringify({ metadata: { finalizers: null } });
  expectDone(await stack.cluster.kubectl([...patch, without]));
  await untilNamespaceGone("attic");
  await stack.elevenLabs.useKey("default", emulatorApiKey);
  assert.equal((await stack.elevenLabs.agents()).length, 1);
});

test("of two objects that name one instance to adopt one gets it, the other is told, and nothing goes to and fro", async () => {
  const { cluster } = stack;
  const [providerID] = await stack.elevenLabs.script({
    do: "create-agent",
    workspace: "global",
    count: 1,
    fields: { name: "wanted" },
  });
  const spec = { ...speech, adopt: { providerID } };
  await applyDhp(cluster, dhp("first", spec));
  const owner = await untilReady(cluster, "first");
  assert.equal(owner.status?.providerID, providerID);
  await applyDhp(cluster, dhp("second", spec));
  const refused = condition(await untilReady(cluster, "second", "False"), "Ready");
  assert.equal(refused.reason, "OwnedByAnother", refused.message);
  assert.match(refused.message, /default\/first/);
  const changes = await changesAtVendor();
  for (let pass = 0; pass < 5; pass += 1) {
    for (const name of ["first", "second"]) await forcePass(cluster, name);
    await untilReady(cluster, "first");
    await untilReady(cluster, "second", "False");
  }
  assert.equal(await changesAtVendor(), changes);
  await deleteDhp(cluster, "second");
  await untilGone(cluster, "second");
  assert.ok((await stack.elevenLabs.agents()).some(({ id }) => id === providerID));
});

async function changesAtVendor(): Promise<number> {
  return (await stack.elevenLabs.requests()).filter(({ method }) => method !== "GET").length;
}
