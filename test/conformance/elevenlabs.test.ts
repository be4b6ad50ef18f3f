/** The whole suite against ElevenLabs' adapter, on an account that others use too. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ownedStamp } from "./core/short-stamp.ts";
import { startElevenLabsRig } from "./rigs/elevenlabs-rig.ts";
import type { ElevenLabsRig } from "./rigs/elevenlabs-rig.ts";
import { wholeRun } from "./rigs/whole-run.ts";

let rig: ElevenLabsRig;

before(async () => {
  const flags = ["--read-timeout=2s", "--circuit-open=1s", "--sweep-interval=1s"];
  rig = await startElevenLabsRig(flags);
});
after(async () => {
  await rig?.stop();
});

test(
  "conformance run on a shared vendor account: other tenants' instances untouched; stable counts; no leak",
  { timeout: 540_000 },
  async (context) => {
    const [key, cluster] = ["other-fleet/default/evening-show", "another-cluster"];
    const stamp = ownedStamp(key, cluster);
    const full = [stamp, `dhp-key=${key}`, `dhp-cluster=${cluster}`, "dhp-uid=uid-1", "theirs"];
    await rig.script(
      ...[[], ["news"], [stamp], full].map((tags, at) => ({
        do: "create-agent",
        workspace: "global",
        count: 1,
        fields: { name: `of another tenant ${at}`, tags },
      })),
    );
    const before = await rig.agents();
    assert.equal(before.length, 4);
    const { parameters, vendorFaultsUrl } = rig;
    const faults = vendorFaultsUrl === undefined ? {} : { vendorFaultsUrl };
    const { report, failedNames } = await wholeRun(context, { parameters, ...faults });
    assert.deepEqual(failedNames, []);
    assert.ok(report.isComplete);
    assert.ok(report.passed >= 85, `only ${report.passed} cases ran`);
    assert.deepEqual(await rig.agents(), before);
  },
);

test(
  "the suite holds for a vendor whose lists lag, count and come in small pages",
  { timeout: 300_000 },
  async (context) => {
    const settings = {
      listLagMs: 400,
      pageSizeMax: 2,
      cursor: "offset",
      tagCharactersMax: 48,
      tags: "lower-case",
      patch: "shallow",
    };
    await rig.script({ do: "set", settings });
    const only = ["ensure/ten-times", "ensure/changed", "removal", "release", "list"];
    const { failedNames } = await wholeRun(context, { parameters: rig.parameters, only });
    assert.deepEqual(failedNames, []);
  },
);
