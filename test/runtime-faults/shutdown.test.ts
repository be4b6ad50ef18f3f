/** SIGTERM to a leader whose queue is full and whose calls are in flight. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { httpGet, metricValue } from "../support/http-get.ts";
import { priorities } from "../../controller/queue/ready-keys.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import type { Program } from "../support/program.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";
import {
  applyMany,
  deleteMany,
  expectInstanceEach,
  numbered,
  untilOnlyReady,
} from "./many-objects.ts";
import { readRuntimeFaults } from "./runtime-faults-options.ts";

const half = Math.ceil(readRuntimeFaults().leaderObjects / 2);
/** Fewer than objects: most of them wait in the queue. */
const workers = 32;
const answerMs = 200;
const convergeMs = 120_000;
const speech = { endpoint: elevenLabsEndpoint, region: "global" };

let stack: Stack;
let leader: Program;

before(async () => {
  stack = await startStack({
    withController: false,
    withElevenLabs: { answerMs },
    controllerFlags: [`--workers=${workers}`],
  });
  leader = await stack.startController();
});
after(() => stack?.stop());

async function metric(
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  return metricValue((await httpGet(leader.ports.adminPort, "/metrics")).text, name, labels);
}

async function agentsNamed(prefix: string): Promise<number> {
  const agents = await stack.elevenLabs.agents();
  return agents.filter(({ tags }) => tags.some((tag) => tag.includes(`/${prefix}-`))).length;
}

async function holder(): Promise<string> {
  const get = ["get", "lease", "dhp-controller", "--namespace=dhp-system", "-o", "json"];
  return JSON.parse(expectDone(await stack.cluster.kubectl(get))).spec.holderIdentity ?? "";
}

/** Works, and more keys wait than are worked on. */
async function expectFullQueue(): Promise<void> {
  const running = await metric("controller_runtime_active_workers");
  const waiting = await Promise.all(
    priorities.map((priority) => metric("workqueue_depth", { priority })),
  );
  const depth = waiting.reduce((sum, size) => sum + size, 0);
  assert.ok(running > 0 && depth > running, `${running} run, ${depth} wait`);
}

test("SIGTERM with a full queue, creates and deletions in flight: exit 0, nothing left open, the Lease released, each change made once", async () => {
  const removed = numbered("removed", half);
  await applyMany(stack.cluster, removed, speech);
  await untilOnlyReady(stack.cluster, removed, convergeMs);
  const made = numbered("made", half);
  await Promise.all([
    deleteMany(stack.cluster, removed),
    applyMany(stack.cluster, made, speech),
    eventually(async () => {
      await expectFullQueue();
      const [gone, come] = await Promise.all(["removed", "made"].map(agentsNamed));
      assert.ok((gone ?? 0) < half && (come ?? 0) > 0, `${gone} left, ${come} made`);
    }),
  ]);
  const { code, signal } = await leader.stop(60_000);
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, leader.output());
  assert.doesNotMatch(leader.output(), /handles left open|did not stop in time|did not heed/);
  assert.equal(await holder(), "", "the Lease is released");
  leader = await stack.startController();
  await expectInstanceEach(stack, await untilOnlyReady(stack.cluster, made, convergeMs));
});
