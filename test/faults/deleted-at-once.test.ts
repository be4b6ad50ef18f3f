/**
 * Everybody forgets a create but the controller: its call is given up early, the adapter that sent it
 * dies, and the vendor's lists hide what was made. Absence is told in good faith, and is not believed.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { elevenLabsFront, wordsOf } from "../adapter-faults/vendor-front.ts";
import type { VendorFront } from "../adapter-faults/vendor-front.ts";
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

/** Lists show nothing new until the test says so, well within the doubt. */
const hidden = { do: "set", settings: { listLagMs: 600_000 } };
const shown = { do: "set", settings: { listLagMs: 0 } };
/** From the request to the vendor's commit, when its sender has died. */
const lateMs = 6_000;
const healMs = 60_000;
const createPath = "^/v1/convai/agents/create$";
const create = { do: "fault", method: "POST", path: createPath };
const speech = { endpoint: elevenLabsEndpoint, region: "global" };

let stack: Stack;
let front: VendorFront;

before(async () => {
  stack = await startStack({
    withElevenLabs: {},
    controllerFlags: ["--call-deadline=5s", "--back-off-max=1s"],
  });
  await stack.elevenLabs.script(hidden);
});
after(async () => {
  front?.close();
  await stack?.stop();
});

/** Applies them; then their creates have been sent, and nobody has heard of them. */
async function applyLost(names: readonly string[], fault: object): Promise<void> {
  const { cluster, elevenLabs } = stack;
  await elevenLabs.script({ ...create, times: names.length, ...fault });
  await Promise.all(names.map((name) => applyDhp(cluster, dhp(name, speech))));
  await eventually(async () => assert.deepEqual(await elevenLabs.faults(), []), healMs);
}

async function restartAdapter(): Promise<void> {
  const { adapter } = stack.elevenLabs;
  await adapter.kill();
  await stack.elevenLabs.startAdapter(adapter.ports.grpcPort);
  front = elevenLabsFront(stack.elevenLabs);
}

async function agentCounts(names: readonly string[]): Promise<readonly number[]> {
  return Promise.all(names.map(async (name) => (await stack.elevenLabs.agentsOf(name)).length));
}

async function createsSent(): Promise<number> {
  const requests = await stack.elevenLabs.requests();
  return requests.filter(({ method, path }) => method === "POST" && path.endsWith("/create"))
    .length;
}

/** What the adapter lists as this cluster's, by key. */
async function listedKeys(): Promise<readonly string[]> {
  const get = ["get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"];
  return front.listedKeys(expectDone(await stack.cluster.kubectl(get)));
}

test("what is deleted while its create is lost, hidden and forgotten is found by its key and removed, and what is kept is not made again", async () => {
  const { cluster } = stack;
  const names = ["kept", "unwanted", "late"];
  const hang = { isAfter: true, effect: { kind: "hang" } };
  await applyLost(["kept", "unwanted"], hang);
  await applyLost(["late"], { delayMs: lateMs });
  await Promise.all(["unwanted", "late"].map((name) => deleteDhp(cluster, name)));
  await restartAdapter();
  for (let look = 0; look < 10; look += 1) {
    await Promise.all(names.map((name) => forcePass(cluster, name)));
    await passesHaveAsked();
  }
  await eventually(async () => assert.deepEqual(await agentCounts(names), [1, 1, 1]));
  for (const name of ["unwanted", "late"]) {
    assert.match(wordsOf(await front.describe(`local/default/${name}`)), /^NOT_FOUND NOT_FOUND/);
    const { finalizers } = (await readDhp(cluster, name)).metadata;
    assert.ok(finalizers?.length, "the adapter's NOT_FOUND was believed");
  }
  await stack.elevenLabs.script(shown);
  await Promise.all(names.map((name) => forcePass(cluster, name)));
  await Promise.all([
    untilReady(cluster, "kept", "True", healMs),
    untilGone(cluster, "unwanted", healMs),
    untilGone(cluster, "late", healMs),
  ]);
  assert.deepEqual(await agentCounts(names), [1, 0, 0]);
  assert.deepEqual(await listedKeys(), ["local/default/kept"]);
  assert.equal(await createsSent(), names.length, "each was sent once");
});

/** The vendor has been asked again. */
async function passesHaveAsked(): Promise<void> {
  const before = (await stack.elevenLabs.requests()).length;
  await eventually(async () => {
    assert.ok((await stack.elevenLabs.requests()).length > before);
  });
}
