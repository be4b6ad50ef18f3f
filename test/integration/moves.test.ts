/**
 * Moves between two LiveKit servers: the old room serves until the new one is READY, nothing is left
 * at the old place, and a kill -9 after any step heals.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import type { LiveKit } from "../../deploy/dev-cluster/livekit.ts";
import { listRooms } from "../support/livekit-rooms.ts";
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
import { refuseWrites } from "../support/refused-writes.ts";
import { livekitEndpoint, otherEndpoint, startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

const healTimeoutMs = 60_000;
let stack: Stack;

before(async () => {
  stack = await startStack({
    withSecondVendor: true,
    controllerFlags: ["--lease-duration", "3s", "--back-off-max", "1s"],
    adapterFlags: ["--read-timeout", "2s", "--circuit-open", "1s"],
  });
});
after(() => stack.stop());

function roomCounts(): Promise<readonly number[]> {
  const count = async (livekit: LiveKit) => (await listRooms(livekit)).length;
  return Promise.all([count(stack.livekit), count(stack.otherLivekit)]);
}

/** The object has come to rest at one of the two servers and nowhere else. */
function untilOnlyAt(name: string, where: "first" | "second"): Promise<void> {
  return eventually(async () => {
    const object = await readDhp(stack.cluster, name);
    assert.equal(condition(object, "Ready").status, "True", condition(object, "Ready").message);
    assert.equal(object.status?.observedGeneration, object.metadata.generation);
    assert.equal(condition(object, "CleanupPending").status, "False");
    assert.equal(object.status?.placements?.length, 1);
    assert.deepEqual(await roomCounts(), where === "first" ? [1, 0] : [0, 1]);
  }, healTimeoutMs);
}

async function move(name: string, endpoint: string): Promise<void> {
  await patchDhp(stack.cluster, name, { spec: { endpoint } });
}

test("a move makes the new room, then removes the old one", async () => {
  await applyDhp(stack.cluster, dhp("mover"));
  await untilReady(stack.cluster, "mover");
  await move("mover", otherEndpoint);
  await untilOnlyAt("mover", "second");
});

test("there and back in quick succession ends where spec says, with one room", async () => {
  await move("mover", livekitEndpoint);
  await move("mover", otherEndpoint);
  await move("mover", livekitEndpoint);
  await untilOnlyAt("mover", "first");
});

test("while the new place does not answer, the old room serves and the object says why", async () => {
  stack.otherLivekit.pause();
  try {
    await move("mover", otherEndpoint);
    const object = await untilReady(stack.cluster, "mover", "False");
    assert.match(condition(object, "Ready").message, /eu\.livekit\.example\.com/);
    assert.equal((await listRooms(stack.livekit)).length, 1);
  } finally {
    stack.otherLivekit.resume();
  }
  await untilOnlyAt("mover", "second");
});

test("another name for the same place, same account, changes the record and not the room", async () => {
  const { status } = await readDhp(stack.cluster, "mover");
  await stack.applyClass("renamed", { endpointHosts: [] });
  await patchDhp(stack.cluster, "mover", { spec: { className: "renamed" } });
  await eventually(async () => {
    const object = await readDhp(stack.cluster, "mover");
    assert.equal(object.status?.className, "renamed");
    assert.equal(object.status?.observedGeneration, object.metadata.generation);
    assert.equal(object.status?.placements?.[0]?.["class"], "renamed");
  });
  await untilOnlyAt("mover", "second");
  assert.equal((await readDhp(stack.cluster, "mover")).status?.providerID, status?.providerID);
});

const status = "digitalhumanproviders/status";
const placements = "object.?status.?placements.orValue([])";
const placementsBefore = "oldObject.?status.?placements.orValue([])";
const steps: readonly { readonly name: string; readonly allowed: string }[] = [
  { name: "reading the new place", allowed: `size(${placements}) < 2` },
  {
    name: "making the new room",
    allowed: `!${placements}.exists(p, p.state == "Retiring")`,
  },
  {
    name: "removing the old room",
    allowed: `size(${placements}) >= size(${placementsBefore})`,
  },
];

steps.forEach(({ name, allowed }, index) => {
  test(`killed after ${name}, before it could be recorded: the move ends all the same`, async () => {
    const [from, to] =
      index % 2 === 0 ? (["second", "first"] as const) : (["first", "second"] as const);
    await untilOnlyAt("mover", from);
    const allow = await refuseWrites(stack, { resource: status, allowed });
    await move("mover", to === "first" ? livekitEndpoint : otherEndpoint);
    await eventually(async () => assert.match(stack.controller.output(), /refused by the test/));
    await stack.controller.kill();
    await allow();
    await stack.startController();
    await untilOnlyAt("mover", to);
  });
});

test("deleted in the middle of a move, nothing is left at either place", async () => {
  const allow = await refuseWrites(stack, { resource: status, allowed: steps[1]?.allowed ?? "" });
  await move("mover", otherEndpoint);
  await eventually(async () => assert.deepEqual(await roomCounts(), [1, 1]));
  await deleteDhp(stack.cluster, "mover");
  await allow();
  await untilGone(stack.cluster, "mover", healTimeoutMs);
  assert.deepEqual(await roomCounts(), [0, 0]);
});
