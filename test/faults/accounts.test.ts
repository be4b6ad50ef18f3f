/** Two accounts at one vendor behind one adapter: what befalls the one is no matter of the other. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { emulatorApiKey } from "../../adapters/elevenlabs/emulator.ts";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { elevenLabsEndpoint, otherUserId } from "../support/elevenlabs.ts";
import { httpGet, metricValue } from "../support/http-get.ts";
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

const place = { endpoint: elevenLabsEndpoint, region: "global" };
const otherClass = { ...place, className: "elevenlabs-other" };
let stack: Stack;
let edits = 0;

before(async () => {
  stack = await startStack({
    withElevenLabs: { adapterFlags: ["--read-timeout", "1s", "--circuit-open", "2s"] },
    controllerFlags: ["--back-off-min", "100ms", "--back-off-max", "1s", "--reprobe", "1s"],
  });
  await stack.applyElevenLabsClass("elevenlabs-other", { account: "other" });
  await applyDhp(stack.cluster, dhp("ours", place));
  await applyDhp(stack.cluster, dhp("theirs", otherClass));
  await untilReady(stack.cluster, "ours");
  await untilReady(stack.cluster, "theirs");
});
after(() => stack.stop());

/** The other account's object is changed, at the vendor too, and soon. */
async function othersWork(): Promise<void> {
  edits += 1;
  const displayName = `edit ${edits}`;
  await patchDhp(stack.cluster, "theirs", { spec: { displayName } });
  await untilReady(stack.cluster, "theirs", "True", 5_000);
  assert.equal((await stack.elevenLabs.agentsOf("theirs"))[0]?.name, displayName);
}

/** Of all circuits of an account: 0 while every one is closed. */
async function circuitState(account: string): Promise<number> {
  const { text } = await httpGet(stack.elevenLabs.adapter.ports.adminPort, "/metrics");
  return metricValue(text, "dhp_vendor_circuit_state", { account });
}

/** So many calls of account "default" go wrong as it takes; reads alone, which change nothing. */
async function breakOurs(effect: object): Promise<void> {
  await stack.elevenLabs.script({
    do: "fault",
    method: "GET",
    userId: "user-1",
    times: 10_000,
    effect,
  });
}

test("a key that is refused is its own account's trouble, and opens no circuit", async () => {
  await stack.elevenLabs.script({ do: "revoke-key", apiKey: emulatorApiKey });
  await forcePass(stack.cluster, "ours");
  const object = await untilReady(stack.cluster, "ours", "False");
  assert.equal(condition(object, "Ready").reason, "EnsureFailed");
  assert.equal(condition(object, "Stalled").status, "True");
  assert.equal(object.status?.placements?.length, 1);
  await othersWork();
  assert.equal(await circuitState("default"), 0);
});

test("an object that was never allowed to create anything is deleted without the vendor's yes", async () => {
  await applyDhp(stack.cluster, dhp("refused", place));
  const object = await untilReady(stack.cluster, "refused", "False");
  assert.deepEqual(object.metadata.finalizers ?? [], []);
  assert.deepEqual(object.status?.placements ?? [], []);
  await deleteDhp(stack.cluster, "refused");
  await untilGone(stack.cluster, "refused", 2_000);
});

test("a key that is rotated is taken up without a restart", async () => {
  const apiKey = "sk_rotated_key_of_the_first_user";
  await stack.elevenLabs.script({ do: "key", apiKey, userId: "user-1" });
  await stack.elevenLabs.useKey("default", apiKey);
  await untilReady(stack.cluster, "ours");
  assert.equal((await stack.elevenLabs.agents()).length, 2);
});

test("a circuit that opens for one account stays closed for the other", async () => {
  await breakOurs({ kind: "error", name: "internal_error" });
  await eventually(async () => {
    await forcePass(stack.cluster, "ours");
    const ready = condition(await readDhp(stack.cluster, "ours"), "Ready");
    assert.equal(ready.reason, "CircuitOpen", ready.message);
  });
  assert.ok((await circuitState("default")) > 0);
  await othersWork();
  assert.equal(await circuitState("other"), 0);
  await stack.elevenLabs.script({ do: "clear-faults" });
  await untilReady(stack.cluster, "ours");
});

test("an account whose calls are never answered does not slow the other", async () => {
  const names = Array.from({ length: 12 }, (_, index) => `hung-${index}`);
  await breakOurs({ kind: "hang" });
  const items = names.map((name) => dhp(name, place));
  await stack.apply({ apiVersion: "v1", kind: "List", items });
  await forcePass(stack.cluster, "ours");
  for (let count = 0; count < 3; count += 1) await othersWork();
  await eventually(async () => {
    const ready = condition(await readDhp(stack.cluster, "ours"), "Ready");
    assert.equal(ready.status, "Unknown", ready.message);
  });
  // Nothing is recorded of them yet, so that they go while the vendor is still silent.
  for (const name of names) await deleteDhp(stack.cluster, name);
  for (const name of names) await untilGone(stack.cluster, name);
  await stack.elevenLabs.script({ do: "clear-faults" });
  await untilReady(stack.cluster, "ours");
});

test("an account that has used up its calls a second does not take the other's", async () => {
  await stack.elevenLabs.writeAccounts(0.3);
  await eventually(async () => {
    await forcePass(stack.cluster, "ours");
    const limited = condition(await readDhp(stack.cluster, "ours"), "RateLimited");
    assert.equal(limited.status, "True", limited.message);
  });
  await othersWork();
  assert.equal(condition(await readDhp(stack.cluster, "theirs"), "RateLimited").status, "False");
  await stack.elevenLabs.writeAccounts();
  await eventually(async () => {
    const limited = condition(await readDhp(stack.cluster, "ours"), "RateLimited");
    assert.equal(limited.status, "False", limited.message);
  });
});

test("behind an account that has become another one, no absence is believed and nothing deleted", async () => {
  const apiKey = "sk_key_of_somebody_else";
  await stack.elevenLabs.script({ do: "key", apiKey, userId: "user-3" });
  await stack.elevenLabs.useKey("default", apiKey);
  await deleteDhp(stack.cluster, "ours");
  await eventually(async () => {
    const ready = condition(await readDhp(stack.cluster, "ours"), "Ready");
    assert.equal(ready.reason, "DeleteBlocked", ready.message);
    assert.match(ready.message, /user-1.*user-3/);
  });
  assert.equal((await stack.elevenLabs.agentsOf("ours")).length, 1);
  await stack.elevenLabs.useKey("default", "sk_rotated_key_of_the_first_user");
  await untilGone(stack.cluster, "ours");
  assert.deepEqual(await stack.elevenLabs.agentsOf("ours"), []);
});

test("after all of this the other account's agent is the one that it was, and was never in trouble", async () => {
  const selector = "--field-selector=involvedObject.name=theirs,type=Warning";
  const warnings = await stack.cluster.kubectl(["get", "events", selector, "-o", "json"]);
  assert.deepEqual(JSON.parse(expectDone(warnings)).items, []);
  const agents = await stack.elevenLabs.agents();
  const object = await readDhp(stack.cluster, "theirs");
  assert.deepEqual(
    agents.map(({ id }) => id),
    [object.status?.providerID],
  );
  const users = (await stack.elevenLabs.requests()).filter(({ agentId }) => agentId !== "");
  assert.ok(users.some(({ userId }) => userId === otherUserId));
});
