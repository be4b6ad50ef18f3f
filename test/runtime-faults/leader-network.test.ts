/** The leader lives, and the network between it and the API server does not. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { HandOver } from "./hand-over.ts";
import { TwoControllers } from "./two-controllers.ts";
import type { Seat } from "./two-controllers.ts";

let two: TwoControllers;
let handOver: HandOver;

before(async () => {
  two = await TwoControllers.start();
  handOver = new HandOver(two);
  await handOver.prepare();
});
after(() => two?.stop());

/** Back, it stands by: the other one goes on leading. */
async function untilStandingBy({ controller }: Seat): Promise<void> {
  await eventually(async () => {
    assert.equal(await controller.isLeading(), false);
    assert.equal(controller.proxy.seen.watchesOpen, 2);
  }, 20_000);
}

test("a leader cut off from the API server changes nothing once another one leads", async (context) => {
  await handOver.round(
    context,
    ({ controller }) => controller.proxy.cut(),
    async (old) => {
      old.controller.proxy.resume();
      await untilStandingBy(old);
    },
  );
});

test("a leader whose renewals alone are lost changes nothing once another one leads", async (context) => {
  await handOver.round(
    context,
    ({ controller, ownRules }) => {
      const renewals = { methods: ["PATCH", "PUT"], path: "/leases/" };
      controller.proxy.setRules([...ownRules, { match: renewals, fault: { kind: "drop" } }]);
    },
    async (old) => {
      old.controller.proxy.setRules(old.ownRules);
      await untilStandingBy(old);
    },
  );
});
