/** The leader's process stops for a while, or dies. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { HandOver } from "./hand-over.ts";
import { TwoControllers } from "./two-controllers.ts";

let two: TwoControllers;
let handOver: HandOver;

before(async () => {
  two = await TwoControllers.start();
  handOver = new HandOver(two);
  await handOver.prepare();
});
after(() => two?.stop());

test("a leader that is stopped, and wakes when another one has done its work, changes nothing", async (context) => {
  await handOver.round(
    context,
    ({ controller }) => controller.program.pause(),
    async ({ controller }) => {
      controller.program.resume();
      await eventually(async () => assert.equal(await controller.isLeading(), false));
    },
  );
});

test("a leader that is killed leaves nothing half done for long", async (context) => {
  await handOver.round(
    context,
    ({ controller }) => controller.program.kill(),
    () => undefined,
  );
});
