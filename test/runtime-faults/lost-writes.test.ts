/**
 * The API server refuses the controller's writes, or takes them and its answer is lost: one instance,
 * its id recorded in the end, no mutation at the vendor twice, and no loop without a pause.
 */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import type { RequestRecord } from "../../adapters/elevenlabs/emulator/world.ts";
import type { Fault, FaultRule, RequestMatch } from "../fault-proxy/fault-rule.ts";
import { writeMethods } from "../fault-proxy/fault-rule.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";
import {
  applyMany,
  expectInstanceEach,
  lasting,
  numbered,
  untilOnlyReady,
} from "./many-objects.ts";
import { ProxiedController } from "./proxied-controller.ts";

const speech = { endpoint: elevenLabsEndpoint, region: "global" };
const conflictMs = 10_000;
const refusedMs = 4_000;
const convergeMs = 60_000;
/** Ten objects with a new edit, ten new ones; each tries again after 0.5 s, 1 s, 2 s, 4 s, ... */
const passesMax = 20 * 12;

const settledWrites: RequestMatch = { methods: writeMethods, path: "/digitalhumanproviders/" };
const statusWrites: RequestMatch = {
  methods: ["PATCH"],
  path: "/digitalhumanproviders/.*/status$",
};
const recordWrites: RequestMatch = { methods: ["PATCH"], path: "/digitalhumanproviders/[^/]+$" };

let stack: Stack;
let controller: ProxiedController;
let names: readonly string[] = [];

before(async () => {
  stack = await startStack({ withController: false, withElevenLabs: {} });
  controller = await ProxiedController.start(stack, ["--api-timeout=2s"]);
});
after(async () => {
  await controller?.stop();
  await stack?.stop();
});
afterEach(() => controller.proxy.setRules([]));

function conflict(match: RequestMatch): FaultRule {
  return { match, fault: { kind: "status", status: 409, reason: "Conflict" } };
}

async function add(prefix: string, count: number): Promise<readonly string[]> {
  const added = numbered(prefix, count);
  names = [...names, ...added];
  await applyMany(stack.cluster, added, speech);
  return added;
}

async function changes(since = 0): Promise<readonly RequestRecord[]> {
  const requests = await stack.elevenLabs.requests();
  return requests.filter(({ method, sequence }) => method !== "GET" && sequence > since);
}

async function lastSequence(): Promise<number> {
  return (await stack.elevenLabs.requests()).at(-1)?.sequence ?? 0;
}

/** All are Ready, each with one agent that was made once, and nothing was done twice since. */
async function expectOnceEach(since: number, created: number): Promise<void> {
  const objects = await untilOnlyReady(stack.cluster, names, convergeMs);
  await expectInstanceEach(stack, objects);
  const made = (await changes(since)).filter(({ change }) => change === "created");
  assert.equal(made.length, created);
}

test("every write conflicts for ten seconds: few passes, each change at the vendor once", async (context) => {
  const old = await add("conflict", 10);
  await untilOnlyReady(stack.cluster, names, convergeMs);
  const { proxy } = controller;
  const passes = await controller.metric("controller_runtime_reconcile_total");
  const [since, startMs] = [await lastSequence(), Date.now()];
  proxy.setRules([conflict(settledWrites)]);
  await applyMany(stack.cluster, old, { ...speech, displayName: "edited" });
  await add("refused", 10);
  await lasting(conflictMs);
  const passed = (await controller.metric("controller_runtime_reconcile_total")) - passes;
  const requests = proxy.seen.busiestMinute(startMs);
  context.diagnostic(JSON.stringify({ passed, requests }));
  assert.ok((proxy.befallenCounts[0] ?? 0) > names.length, "each was refused");
  assert.ok(passed <= passesMax, `${passed} passes`);
  assert.ok(requests <= 1.5 * passesMax, `${requests} requests`);
  const during = await changes(since);
  assert.deepEqual(
    during.filter(({ change }) => change === "created"),
    [],
    "nothing unrecorded",
  );
  assert.equal(new Set(during.map(({ agentId }) => agentId)).size, during.length, "none twice");
  proxy.setRules([]);
  await expectOnceEach(since, 10);
  const updated = (await changes(since)).filter(({ change }) => change === "updated");
  assert.equal(updated.length, old.length);
});

for (const [status, reason] of [
  [409, "Conflict"],
  [500, "InternalError"],
] as const) {
  test(`every status write after Ensure fails with ${status}: one instance, its id restored`, async () => {
    const since = await lastSequence();
    const refusal: Fault = { kind: "status", status, reason };
    controller.proxy.setRules([{ match: statusWrites, fault: refusal }]);
    const added = await add(`status-${status}`, 5);
    await eventually(async () => assert.equal((await changes(since)).length, added.length));
    await lasting(refusedMs);
    assert.ok((controller.proxy.befallenCounts[0] ?? 0) > added.length, "tried more than once");
    controller.proxy.setRules([]);
    await expectOnceEach(since, added.length);
  });
}

for (const how of ["reset", "cut", "silence"] as const) {
  for (const [what, match] of [
    ["record", recordWrites],
    ["status", statusWrites],
  ] as const) {
    test(`the answer to a ${what} write is lost by ${how} when it is done: one instance`, async () => {
      const since = await lastSequence();
      controller.proxy.setRules([{ match, fault: { kind: "lose-answer", how }, times: 5 }]);
      const added = await add(`${what}-${how}`, 5);
      // All that was lost is known to be lost: a silence by its time-out.
      await eventually(async () => assert.equal(controller.proxy.befallenCounts[0], 5));
      await eventually(async () => {
        assert.equal(await controller.metric("controller_runtime_active_workers"), 0);
      });
      await expectOnceEach(since, added.length);
    });
  }
}
