/** Creates whose answers are lost, at a vendor whose lists hide what it made for long. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import {
  applyDhp,
  deleteDhp,
  dhp,
  forcePass,
  readDhp,
  untilGone,
  untilReady,
} from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

/** Longer than the adapter knows of; doubt about the lost answer lasts longer still. */
const listLagMs = 30_000;
const healMs = 120_000;
const createPath = "^/v1/convai/agents/create$";
const speech = { endpoint: elevenLabsEndpoint, region: "global" };

let stack: Stack;

before(async () => {
  stack = await startStack({ withElevenLabs: {} });
  await stack.elevenLabs.script(
    { do: "set", settings: { listLagMs } },
    // The vendor commits; nobody hears of it.
    {
      do: "fault",
      method: "POST",
      path: createPath,
      times: 2,
      isAfter: true,
      effect: { kind: "hang" },
    },
  );
});
after(() => stack?.stop());

async function agentCount(name: string): Promise<number> {
  return (await stack.elevenLabs.agentsOf(name)).length;
}

async function createsSent(): Promise<number> {
  const requests = await stack.elevenLabs.requests();
  return requests.filter(({ method, path }) => method === "POST" && path.endsWith("/create"))
    .length;
}

/** Ten looks while nobody can see what was made. */
async function lookTenTimes(name: string): Promise<void> {
  for (let count = 0; count < 10; count += 1) {
    await forcePass(stack.cluster, name);
    const before = await stack.elevenLabs.requests();
    await eventually(async () => {
      assert.ok((await stack.elevenLabs.requests()).length > before.length);
    }, healMs);
  }
}

test("a create whose answer is lost is found by its key: ten looks make no second one, and a delete at once leaves nothing", async () => {
  const { cluster } = stack;
  await Promise.all(["hidden", "unwanted"].map((name) => applyDhp(cluster, dhp(name, speech))));
  await eventually(async () => {
    assert.deepEqual([await agentCount("hidden"), await agentCount("unwanted")], [1, 1]);
  });
  await deleteDhp(cluster, "unwanted");
  await lookTenTimes("hidden");
  // Absence was seen in each look, and not believed.
  const waiting = await readDhp(cluster, "unwanted");
  assert.equal(await agentCount("unwanted"), 1);
  assert.ok(waiting.metadata.finalizers?.length, "absence was believed");
  await Promise.all([
    untilReady(cluster, "hidden", "True", healMs),
    untilGone(cluster, "unwanted", healMs),
  ]);
  assert.deepEqual([await agentCount("hidden"), await agentCount("unwanted")], [1, 0]);
  assert.equal(await createsSent(), 2, "each was sent once");
});
