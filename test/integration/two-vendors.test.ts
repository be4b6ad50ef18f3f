/** Two vendors under one controller: what one of them says is no matter of the other's objects. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { elevenLabsEndpoint, elevenLabsUsEndpoint } from "../support/elevenlabs.ts";
import { httpGet } from "../support/http-get.ts";
import { listRooms } from "../support/livekit-rooms.ts";
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
  stack = await startStack({
    withElevenLabs: { adapterFlags: ["--read-timeout", "1s", "--circuit-open", "500ms"] },
    controllerFlags: ["--back-off-max", "1s", "--reprobe", "2s"],
  });
});
after(() => stack.stop());

const speech = { endpoint: elevenLabsEndpoint, region: "global" };

test("each object is made at its own vendor and nowhere else", async () => {
  await applyDhp(stack.cluster, dhp("room"));
  await applyDhp(stack.cluster, dhp("agent", { ...speech, displayName: "evening show" }));
  const room = await untilReady(stack.cluster, "room");
  const agent = await untilReady(stack.cluster, "agent");
  assert.equal(room.status?.className, "livekit");
  assert.equal(agent.status?.className, "elevenlabs");
  assert.equal((await listRooms(stack.livekit)).length, 1);
  const [made, ...others] = await stack.elevenLabs.agents();
  assert.deepEqual(others, []);
  assert.equal(made?.id, agent.status?.providerID);
  assert.equal(made?.name, "evening show");
});

const html = "<html><h1>Bad Gateway</h1></html>";
const deep = "[".repeat(100_000);
const rubbish: readonly (readonly [string, object])[] = [
  ["500 after 500", { kind: "error", name: "internal_error" }],
  ["a proxy's 502 in HTML", { kind: "answer", status: 502, text: html }],
  ["200 in HTML", { kind: "answer", status: 200, text: html }],
  ["a proxy's 404 in HTML", { kind: "answer", status: 404, text: html }],
  ["JSON that is no agent", { kind: "answer", status: 200, json: { agent_id: 7, agents: 7 } }],
  ["JSON without an end", { kind: "answer", status: 200, text: deep }],
  ["half an answer", { kind: "cut" }],
  ["a reset", { kind: "reset" }],
  ["nothing at all", { kind: "hang" }],
];

for (const [what, effect] of rubbish) {
  test(`a vendor that answers ${what} is its own objects' trouble alone`, async () => {
    const before = await readDhp(stack.cluster, "room");
    await stack.elevenLabs.script({ do: "fault", method: "GET", times: 10_000, effect });
    await Promise.all([agentIsUnknown(), roomsComeAndGo()]);
    assert.deepEqual((await readDhp(stack.cluster, "room")).status, before.status);
    await stack.elevenLabs.script({ do: "clear-faults" });
    await untilReady(stack.cluster, "agent");
  });
}

async function agentIsUnknown(): Promise<void> {
  await forcePass(stack.cluster, "agent");
  await eventually(async () => {
    const ready = condition(await readDhp(stack.cluster, "agent"), "Ready");
    assert.equal(ready.status, "Unknown", ready.message);
    assert.match(ready.message, /api\.elevenlabs\.io/);
  });
}

async function roomsComeAndGo(): Promise<void> {
  await forcePass(stack.cluster, "room");
  await applyDhp(stack.cluster, dhp("another-room"));
  await untilReady(stack.cluster, "another-room");
  await deleteDhp(stack.cluster, "another-room");
  await untilGone(stack.cluster, "another-room");
}

test("after all of this there is one agent, and the controller is the one that was started", async () => {
  assert.equal((await stack.elevenLabs.agents()).length, 1);
  const { adminPort } = stack.controller.ports;
  assert.equal((await httpGet(adminPort, "/healthz")).status, 200);
  assert.equal((await httpGet(adminPort, "/readyz")).status, 200);
});

test("another host of the same vendor account changes the record and never the instance", async () => {
  const before = await readDhp(stack.cluster, "agent");
  await patchDhp(stack.cluster, "agent", {
    spec: { endpoint: elevenLabsUsEndpoint, region: "us" },
  });
  const after = await untilReady(stack.cluster, "agent");
  assert.equal(after.status?.providerID, before.status?.providerID);
  assert.deepEqual(
    after.status?.placements?.map(({ endpoint, region, realm }) => [endpoint, region, realm]),
    [[elevenLabsUsEndpoint, "us", before.status?.placements?.[0]?.["realm"]]],
  );
  const ids = (await stack.elevenLabs.agents()).map(({ id }) => id);
  assert.deepEqual(ids, [before.status?.providerID]);
});

test("Retain takes our stamp off, leaves the agent, and lets the object go", async () => {
  await stack.elevenLabs.script({
    do: "edit-agent",
    agentId: (await readDhp(stack.cluster, "agent")).status?.providerID,
    fields: { tags: [...((await stack.elevenLabs.agents())[0]?.tags ?? []), "marketing"] },
  });
  await patchDhp(stack.cluster, "agent", { spec: { deletionPolicy: "Retain" } });
  await deleteDhp(stack.cluster, "agent");
  await untilGone(stack.cluster, "agent");
  const [left, ...others] = await stack.elevenLabs.agents();
  assert.deepEqual(others, []);
  assert.deepEqual(left?.tags, ["marketing"]);
});

test("an agent that nobody owns is adopted by its id, and not made a second time", async () => {
  const [found] = await stack.elevenLabs.agents();
  const spec = { ...speech, adopt: { providerID: found?.id }, displayName: "adopted" };
  await applyDhp(stack.cluster, dhp("adopter", spec));
  const object = await untilReady(stack.cluster, "adopter");
  assert.equal(object.status?.providerID, found?.id);
  const [agent, ...others] = await stack.elevenLabs.agents();
  assert.deepEqual(others, []);
  assert.equal(agent?.name, "adopted");
  assert.ok(agent?.tags.includes("marketing"));
  await deleteDhp(stack.cluster, "adopter");
  await untilGone(stack.cluster, "adopter");
  assert.deepEqual(await stack.elevenLabs.agents(), []);
});
