/** Two objects of one cluster that adopt the same instance at the same moment. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import {
  applyDhp,
  condition,
  deleteDhp,
  dhp,
  forcePass,
  readDhp,
  untilGone,
  untilReady,
} from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

/** Long enough for both to have looked before either writes. */
const writeMs = 3_000;
const healMs = 30_000;
const names = ["one", "other"];
let stack: Stack;

before(async () => {
  stack = await startStack({ withElevenLabs: {} });
});
after(() => stack?.stop());

async function writesSeen(): Promise<number> {
  return (await stack.elevenLabs.requests()).filter(({ method }) => method !== "GET").length;
}

/** The object that the agent's tags name. */
async function ownerOf(id: string): Promise<string> {
  const agent = (await stack.elevenLabs.agents()).find((candidate) => candidate.id === id);
  const owners = names.filter((name) =>
    agent?.tags.some((tag) => tag.endsWith(`/default/${name}`)),
  );
  assert.equal(owners.length, 1);
  return owners[0] ?? "";
}

async function expectOwnerAlone(owner: string, other: string): Promise<void> {
  const { cluster } = stack;
  await untilReady(cluster, owner, "True", healMs);
  // While the owner's write is on its way the vendor is busy for the other.
  await eventually(async () => {
    const { status, reason, message } = condition(await readDhp(cluster, other), "Ready");
    assert.equal(`${status} ${reason}`, "False OwnedByAnother", message);
    assert.ok(message.includes(`/default/${owner} `), message);
  }, healMs);
}

test("of two objects that adopt one instance at the same moment one becomes its owner, and the other is told and writes nothing", async () => {
  const { cluster, elevenLabs } = stack;
  const fields = { name: "wanted" };
  const [providerID = ""] = await elevenLabs.script({ do: "create-agent", fields });
  await elevenLabs.script({ do: "fault", method: "PATCH", times: 2, delayMs: writeMs });
  const spec = { endpoint: elevenLabsEndpoint, region: "global", adopt: { providerID } };
  await Promise.all(names.map((name) => applyDhp(cluster, dhp(name, spec))));
  const owner = await eventually(() => ownerOf(providerID), healMs);
  const other = names.find((name) => name !== owner) ?? "";
  await expectOwnerAlone(owner, other);
  assert.equal(await writesSeen(), 1);
  for (let pass = 0; pass < 5; pass += 1) {
    for (const name of names) await forcePass(cluster, name);
    await expectOwnerAlone(owner, other);
  }
  assert.equal(await writesSeen(), 1);
  await deleteDhp(cluster, other);
  await untilGone(cluster, other, healMs);
  assert.equal(await ownerOf(providerID), owner);
  assert.equal((await readDhp(cluster, owner)).status?.providerID, providerID);
});
