/** The whole suite against LiveKit's adapter, in front of real LiveKit servers. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { listRooms } from "../support/livekit-rooms.ts";
import { startLiveKitRig } from "./rigs/livekit-rig.ts";
import type { LiveKitRig } from "./rigs/livekit-rig.ts";
import { wholeRun } from "./rigs/whole-run.ts";

let rig: LiveKitRig;

before(async () => {
  const flags = ["--read-timeout=2s", "--circuit-open=1s", "--sweep-interval=1s"];
  rig = await startLiveKitRig(flags);
});
after(async () => {
  await rig?.stop();
});

test(
  "LiveKit's adapter keeps every promise of the contract, and leaves no room",
  { timeout: 300_000 },
  async (context) => {
    const { report, failedNames } = await wholeRun(context, { parameters: rig.parameters });
    assert.deepEqual(failedNames, []);
    assert.equal(report.adapter, "livekit");
    assert.ok(report.isComplete);
    assert.ok(report.passed >= 85, `only ${report.passed} cases ran`);
    assert.deepEqual(await listRooms(rig.livekit), []);
  },
);
