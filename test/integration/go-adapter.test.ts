/** An adapter in another language serves objects like any other: the controller sees the contract alone. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { ProviderAPI } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Instance } from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { WireClient } from "../conformance/core/wire-client.ts";
import { parrotEndpoint, startGoAdapter } from "../support/go-adapter.ts";
import type { Program } from "../support/program.ts";
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

let stack: Stack;
let adapter: Program;
let client: WireClient;

before(async () => {
  stack = await startStack({ controllerFlags: ["--back-off-max", "1s"] });
  adapter = await startGoAdapter(["--vendor-create-time=300ms", "--vendor-remove-time=300ms"]);
  const address = `127.0.0.1:${adapter.ports.grpcPort}`;
  client = new WireClient({ address, secrets: [] });
  const endpointHosts = [new URL(parrotEndpoint).host];
  await stack.applyClass("parrot", { adapter: { address }, endpointHosts });
});
after(async () => {
  client?.close();
  await adapter?.stop();
  await stack?.stop();
});

const spec = { endpoint: parrotEndpoint, region: "eu" };

/** All that is stamped at the vendor, in the region of the objects. */
async function listed(): Promise<readonly Instance[]> {
  const reply = await client.call(ProviderAPI.method.list, { target: spec });
  assert.ok(reply.kind === "answer", "List answers");
  return reply.answer.instances;
}

async function onlyInstance(): Promise<Instance> {
  const [instance, ...others] = await listed();
  assert.deepEqual(others, []);
  assert.ok(instance, "the vendor has an instance");
  return instance;
}

test("an object of its class is made, and Ready once the vendor says so", async () => {
  const parameters = { voice: "tenor", speed: "1.50", language: "zh" };
  await applyDhp(stack.cluster, dhp("speaker", { ...spec, displayName: "晚间节目", parameters }));
  const object = await untilReady(stack.cluster, "speaker");
  assert.equal(object.status?.className, "parrot");
  const instance = await onlyInstance();
  assert.equal(instance.providerId, object.status?.providerID);
  assert.equal(instance.instanceKey, "local/default/speaker");
  assert.equal(instance.owner?.uid, object.metadata.uid);
  assert.equal(instance.observed?.displayName, "晚间节目");
  assert.deepEqual({ ...instance.observed?.parameters }, { ...parameters, speed: "1.5" });
});

test("an edit reaches the instance, and it stays the same one", async () => {
  const before = await onlyInstance();
  const parameters = { voice: "bass", speed: "1.5" };
  await patchDhp(stack.cluster, "speaker", { spec: { displayName: "morning", parameters } });
  await untilReady(stack.cluster, "speaker");
  const after = await onlyInstance();
  assert.equal(after.providerId, before.providerId);
  assert.equal(after.observed?.displayName, "morning");
  assert.equal(after.observed?.parameters["voice"], "bass");
});

test("a field that the vendor cannot change is named in the condition", async () => {
  await patchDhp(stack.cluster, "speaker", { spec: { parameters: { language: "de" } } });
  await eventually(async () => {
    const { status, message } = condition(
      await readDhp(stack.cluster, "speaker"),
      "ReplaceRequired",
    );
    assert.equal(status, "True");
    assert.match(message, /parameters\.language/);
  });
  assert.equal((await onlyInstance()).observed?.parameters["language"], "zh");
  await patchDhp(stack.cluster, "speaker", { spec: { parameters: { language: "zh" } } });
  await untilReady(stack.cluster, "speaker");
});

test("a move to the vendor's other region leaves nothing in the first", async () => {
  await patchDhp(stack.cluster, "speaker", { spec: { region: "us" } });
  await untilReady(stack.cluster, "speaker");
  await eventually(async () => assert.deepEqual(await listed(), []));
  await patchDhp(stack.cluster, "speaker", { spec: { region: "eu" } });
  await untilReady(stack.cluster, "speaker");
  await onlyInstance();
});

test("the object goes when the vendor has let the instance go", async () => {
  await deleteDhp(stack.cluster, "speaker");
  await untilGone(stack.cluster, "speaker");
  assert.deepEqual(await listed(), []);
});

test("the adapter stops with exit code 0 when it is asked to", async () => {
  assert.deepEqual(await adapter.stop(), { code: 0, signal: null });
});
