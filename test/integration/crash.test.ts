/** kill -9 at the two instants that leak or duplicate: the record and doubt must heal both. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import { refuseWrites } from "../support/refused-writes.ts";
import { applyDhp, deleteDhp, dhp, untilGone, untilReady } from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

/** Doubt after a start: the rest of not_after, the mutation deadline and the skew allowance. */
const doubtTimeoutMs = 60_000;
const noStatus = { resource: "digitalhumanproviders/status", allowed: "false" };
const noFinalizerRemoval = {
  resource: "digitalhumanproviders",
  allowed: "size(object.metadata.?finalizers.orValue([])) > 0",
};
let stack: Stack;

before(async () => {
  stack = await startStack({ withController: false });
});
after(() => stack.stop());

async function expectRooms(count: number): Promise<void> {
  assert.equal((await listRooms(stack.livekit)).length, count);
}

test("killed between Ensure and the status write: one room, found again by its key", async () => {
  const allow = await refuseWrites(stack, noStatus);
  await stack.startController();
  await applyDhp(stack.cluster, dhp("ensured"));
  await eventually(() => expectRooms(1));
  await stack.controller.kill();
  await allow();
  await stack.startController();
  await untilReady(stack.cluster, "ensured", "True", doubtTimeoutMs);
  await expectRooms(1);
});

test("killed between Delete and the finalizer's patch: no room, and the object goes", async () => {
  const allow = await refuseWrites(stack, noFinalizerRemoval);
  await deleteDhp(stack.cluster, "ensured");
  await eventually(() => expectRooms(0));
  await stack.controller.kill();
  await allow();
  await stack.startController();
  await untilGone(stack.cluster, "ensured", doubtTimeoutMs);
  await expectRooms(0);
});

test("killed while its object is deleted before any success was seen: nothing is left", async () => {
  const allow = await refuseWrites(stack, noStatus);
  await applyDhp(stack.cluster, dhp("unseen"));
  await eventually(() => expectRooms(1));
  await stack.controller.kill();
  await deleteDhp(stack.cluster, "unseen");
  await allow();
  await stack.startController();
  await untilGone(stack.cluster, "unseen", doubtTimeoutMs);
  await expectRooms(0);
});
