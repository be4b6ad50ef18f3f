/** Answers that are old, late or cut at awkward places: an older object never replaces a newer one. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import type { RequestRecord } from "../../adapters/elevenlabs/emulator/world.ts";
import type { Fault, FaultRule, RequestMatch } from "../fault-proxy/fault-rule.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";
import {
  applyMany,
  deleteMany,
  expectInstanceEach,
  numbered,
  untilOnlyReady,
} from "./many-objects.ts";
import { ProxiedController } from "./proxied-controller.ts";

const convergeMs = 60_000;
const kind = "/digitalhumanproviders$";
const lists: RequestMatch = { path: kind, isWatch: true, query: "sendInitialEvents" };
const watches: RequestMatch = { path: kind, isWatch: true, query: "resourceVersion=" };
const gone: Fault = { kind: "watch-error", status: 410, reason: "Expired" };

let stack: Stack;
let controller: ProxiedController;
let kept = numbered("kept", 10);
const deleted = numbered("deleted", 3);
let edits = 0;

/** The old list knows kept objects before their edits, and three that are gone since. */
before(async () => {
  stack = await startStack({ withController: false, withElevenLabs: {} });
  await applyMany(stack.cluster, [...kept, ...deleted], spec("old"));
  const recording = { match: lists, fault: { kind: "record", as: "old" } } as const;
  // A look at the vendor each second: what the controller believes shows there at once.
  controller = await ProxiedController.start(stack, ["--resync=1s"], [recording]);
  controller.proxy.setRules([]);
  assert.ok(controller.proxy.hasRecord("old"));
  await untilOnlyReady(stack.cluster, [...kept, ...deleted], convergeMs);
  await deleteMany(stack.cluster, deleted);
  await edit();
});
after(async () => {
  await controller?.stop();
  await stack?.stop();
});
beforeEach(() => controller.proxy.setRules([]));

function spec(displayName: string): Readonly<Record<string, unknown>> {
  return { endpoint: elevenLabsEndpoint, region: "global", displayName };
}

/** All of them, and waits until it is done at the vendor. */
async function edit(): Promise<void> {
  edits += 1;
  await applyMany(stack.cluster, kept, spec(`edit ${edits}`));
  await expectAsEdited();
}

async function expectAsEdited(): Promise<void> {
  await eventually(async () => {
    const agents = await stack.elevenLabs.agents();
    assert.deepEqual(new Set(agents.map(({ name }) => name)), new Set([`edit ${edits}`]));
  }, convergeMs);
  await expectInstanceEach(stack, await untilOnlyReady(stack.cluster, kept, convergeMs));
}

async function requestsSince(since: number): Promise<readonly RequestRecord[]> {
  const requests = await stack.elevenLabs.requests();
  return requests.filter(({ sequence }) => sequence > since);
}

/** Breaks the connection, so that the rules befall the controller's next watch, and what follows. */
function meet(rules: readonly FaultRule[]): void {
  controller.proxy.setRules(rules);
  controller.proxy.cut();
  controller.proxy.resume();
}

/** The controller has met all of it and looked at the vendor since; it has changed nothing there. */
async function expectUntouched(since: number, befallen: readonly number[]): Promise<void> {
  await eventually(async () => {
    assert.deepEqual(controller.proxy.befallenCounts, befallen);
  }, convergeMs);
  const met = await lastSequence();
  const ids = (await stack.elevenLabs.agents()).map(({ id }) => id);
  await eventually(async () => {
    const asked = (await requestsSince(met)).map(({ path }) => path);
    for (const id of ids) assert.ok(asked.filter((path) => path.endsWith(id)).length >= 2, id);
  }, convergeMs);
  const changes = (await requestsSince(since)).filter(({ method }) => method !== "GET");
  assert.deepEqual(changes, []);
}

async function lastSequence(): Promise<number> {
  return (await stack.elevenLabs.requests()).at(-1)?.sequence ?? 0;
}

test("an old list after a newer one brings nothing back and undoes no edit", async () => {
  const since = await lastSequence();
  meet([
    { match: watches, fault: gone, times: 1 },
    { match: lists, fault: { kind: "replay", of: "old", afterwards: "hold" }, times: 3 },
  ]);
  await expectUntouched(since, [1, 3]);
  await edit();
});

test("old events before new ones on one watch bring nothing back and undo no edit", async () => {
  const since = await lastSequence();
  const fault: Fault = { kind: "replay", of: "old", afterwards: "live" };
  meet([{ match: watches, fault, times: 1 }]);
  await expectUntouched(since, [1]);
  await edit();
});

test("410 as a status leads to a new list, and what was missed is done", async () => {
  const status: Fault = { kind: "status", status: 410, reason: "Expired" };
  meet([{ match: watches, fault: status, times: 1 }]);
  await edit();
  assert.deepEqual(controller.proxy.befallenCounts, [1]);
});

test("while events are held back nothing is done, and then each once", async () => {
  controller.proxy.setRules([
    { match: { path: kind, isWatch: true }, fault: { kind: "hold-events" } },
  ]);
  const since = await lastSequence();
  const added = numbered("late", 5);
  await applyMany(stack.cluster, added, spec(`edit ${edits}`));
  await expectUntouched(since, [0]);
  kept = [...kept, ...added];
  controller.proxy.setRules([]);
  await expectAsEdited();
  const created = (await requestsSince(since)).filter(({ change }) => change === "created");
  assert.equal(created.length, added.length);
});

test("without bookmarks, not even the one that ends a list, it lists in pages and goes on", async () => {
  const fault: Fault = { kind: "drop-bookmarks", which: "all" };
  meet([
    { match: watches, fault: gone, times: 1 },
    { match: { path: kind, isWatch: true }, fault },
  ]);
  await edit();
  await eventually(async () => {
    const pages = controller.proxy.seen.list().filter(({ path, query, isWatch }) => {
      return path.endsWith("/digitalhumanproviders") && query.includes("limit=") && !isWatch;
    });
    assert.ok(pages.length > 0);
  }, convergeMs);
});

test("chunks cut inside characters are read as what was sent", async () => {
  meet([
    { match: watches, fault: gone, times: 1 },
    { match: {}, fault: { kind: "split" } },
  ]);
  edits += 1;
  const city = `edit ${edits} 杭州文字转语音`;
  await applyMany(stack.cluster, kept, spec(city));
  await eventually(async () => {
    const agents = await stack.elevenLabs.agents();
    assert.deepEqual(new Set(agents.map(({ name }) => name)), new Set([city]));
  }, convergeMs);
});
