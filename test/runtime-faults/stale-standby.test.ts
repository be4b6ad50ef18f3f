/**
 * A standby whose watch has told it nothing for a while takes over in the middle of moves: what it
 * does not know of is recorded, made or removed already.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import type { FaultRule } from "../fault-proxy/fault-rule.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import { applyMany, expectInstanceEach, numbered, untilOnlyReady } from "./many-objects.ts";
import { TwoControllers } from "./two-controllers.ts";

const place = { endpoint: elevenLabsEndpoint, region: "global" };
const elsewhere = { ...place, className: "elevenlabs-other" };
const names = numbered("moving", 30);
const convergeMs = 120_000;
const silence: FaultRule = {
  match: { isWatch: true, path: "/digitalhumanproviders$" },
  fault: { kind: "hold-events" },
};

let two: TwoControllers;

before(async () => {
  two = await TwoControllers.start();
  await two.stack.applyElevenLabsClass(elsewhere.className, { account: "other" });
  await applyMany(two.stack.cluster, names, { ...place, className: "elevenlabs" });
  await untilOnlyReady(two.stack.cluster, names, convergeMs);
});
after(() => two?.stop());

test("a standby with a stale cache takes over in the middle of moves: each instance is made once, and none is left behind", async () => {
  const leader = await two.leader();
  const standby = two.other(leader);
  standby.controller.proxy.setRules([...standby.ownRules, silence]);
  const startMs = performance.now();
  const creates = (): readonly string[] =>
    two
      .changes(startMs)
      .filter(({ path }) => path.endsWith("/agents/create"))
      .map(({ gate }) => gate);
  await applyMany(two.stack.cluster, names, elsewhere);
  await eventually(async () => assert.ok(creates().length >= 3), convergeMs);
  await leader.controller.program.kill();
  await eventually(async () => assert.equal(await standby.controller.isLeading(), true), 20_000);
  // It leads by what it has read, not by what it is told only now.
  standby.controller.proxy.setRules(standby.ownRules);
  // The old instances serve, and keep Ready, until the new ones do.
  await eventually(async () => {
    const objects = await untilOnlyReady(two.stack.cluster, names, convergeMs);
    await expectInstanceEach(two.stack, objects);
  }, convergeMs);
  assert.equal(creates().length, names.length);
  assert.ok(creates().includes(leader.gate.name) && creates().includes(standby.gate.name));
});
