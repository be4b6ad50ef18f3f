/**
 * Two replicas of one adapter behind one class: one works, the other stands by. The first is drained
 * and killed amid creations; the spare has an empty memory, and the vendor's lists lag.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { TestContext } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";
import { GatedAdapter } from "./gated-adapter.ts";
import {
  applyMany,
  expectInstanceEach,
  lasting,
  numbered,
  untilOnlyReady,
} from "./many-objects.ts";
import { readRuntimeFaults } from "./runtime-faults-options.ts";

const half = Math.ceil(readRuntimeFaults().leaderObjects / 2);
const answerMs = 100;
/** Within what the adapter says of the vendor: a spare that trusts a list makes duplicates. */
const listLagMs = 5_000;
/** It takes a third of a second; a busy machine may take its time. */
const goOnMs = 10_000;
/** From SIGTERM to SIGKILL: some of its calls end well, others do not. */
const drainedMs = 150;
/** What was in flight at a killed adapter is in doubt: 20 s of a mutation, the lag, the skew. */
const convergeMs = 90_000;
const className = "two-replicas";
const speech = { className, endpoint: elevenLabsEndpoint, region: "global" };

let stack: Stack;
let first: GatedAdapter;
let spare: GatedAdapter;
let names: readonly string[] = [];

before(async () => {
  stack = await startStack({ withElevenLabs: { answerMs }, withController: false });
  await stack.elevenLabs.script({ do: "set", settings: { listLagMs } });
  const { emulator } = stack.elevenLabs;
  [first, spare] = await Promise.all([
    GatedAdapter.start("first", emulator),
    GatedAdapter.start("spare", emulator),
  ]);
  const address = `ipv4:${first.address},${spare.address}`;
  await stack.applyElevenLabsClass(className, { adapter: { address } });
  await stack.startController();
});
after(async () => {
  await stack?.stop();
  await Promise.all([first?.stop(), spare?.stop()]);
});

/** Strikes the working replica amid creations; the other one has to go on. */
async function round(context: TestContext, strike: (working: GatedAdapter) => Promise<unknown>) {
  const made = numbered(`round-${names.length}`, half);
  names = [...names, ...made];
  const changesBefore = first.gate.changes.length + spare.gate.changes.length;
  const asked = applyMany(stack.cluster, made, speech);
  const [working, other] = await eventually(async () => {
    const count = first.gate.changes.length + spare.gate.changes.length;
    assert.ok(count >= changesBefore + 5, "not amid creations yet");
    const isFirst = (first.gate.lastAskedMs ?? 0) > (spare.gate.lastAskedMs ?? 0);
    return isFirst ? ([first, spare] as const) : ([spare, first] as const);
  });
  const restingSince = other.gate.lastAskedMs;
  const struckMs = performance.now();
  const striking = strike(working);
  await eventually(async () => assert.notEqual(other.gate.lastAskedMs, restingSince), convergeMs);
  const wentOnMs = performance.now() - struckMs;
  await striking;
  await asked;
  const objects = await untilOnlyReady(stack.cluster, names, convergeMs);
  await expectInstanceEach(stack, objects);
  const creates = [...first.gate.changes, ...spare.gate.changes].filter(({ path }) =>
    path.endsWith("/agents/create"),
  );
  const seconds = Math.round((performance.now() - struckMs) / 1_000);
  context.diagnostic(JSON.stringify({ objects: half, wentOnMs: Math.round(wentOnMs), seconds }));
  assert.equal(creates.length, names.length, "each was made once");
  return wentOnMs;
}

test("an adapter drained and then killed amid creations: its spare goes on at once, each is made once", async (context) => {
  const wentOnMs = await round(context, async ({ program }) => {
    const stopped = program.stop();
    await lasting(drainedMs);
    await program.kill();
    await stopped;
  });
  assert.ok(wentOnMs < goOnMs, `calls went on after ${wentOnMs} ms`);
});

test("an adapter killed without a word amid creations: its spare goes on at once, each is made once", async (context) => {
  await first.restart();
  const wentOnMs = await round(context, ({ program }) => program.kill());
  assert.ok(wentOnMs < goOnMs, `calls went on after ${wentOnMs} ms`);
});
