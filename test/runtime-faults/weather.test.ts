/**
 * Bad weather between the controller and the API server, with fifty objects: it converges, makes no
 * second instance, and asks no more than the stated number of times. The bounds are some two to
 * three times what was measured (README.md): a loop without a pause makes hundreds a second.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { TestContext } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
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
import { readRuntimeFaults } from "./runtime-faults-options.ts";

const { outageMs } = readRuntimeFaults();
const throttledMs = 10_000;
/** Leading again takes a Lease and its look; the longest pause of a watch is 5 s. */
const convergeMs = 40_000;
const objects = numbered("show", 50);
const speech = { endpoint: elevenLabsEndpoint, region: "global" };
const edited = objects.slice(0, 10);

let stack: Stack;
let controller: ProxiedController;
let round = 0;

before(async () => {
  stack = await startStack({ withController: false, withElevenLabs: {} });
  controller = await ProxiedController.start(stack);
  await applyMany(stack.cluster, objects, speech);
  await untilOnlyReady(stack.cluster, objects, convergeMs);
});
after(async () => {
  await controller?.stop();
  await stack?.stop();
});

/** What the controller did from the beginning of the weather until all was well again. */
interface Figures {
  readonly watches: number;
  /** That reached the proxy, in the busiest minute. */
  readonly requests: number;
  /** As the controller counts them, those in vain as well. */
  readonly attempts: number;
  readonly connections: number;
  readonly seconds: number;
}

async function edit(): Promise<void> {
  round += 1;
  await applyMany(stack.cluster, edited, { ...speech, displayName: `round ${round}` });
}

/** @param weather fulfilled when it is over; somebody edits ten objects in it or right after it */
async function measured(context: TestContext, weather: () => Promise<void>): Promise<Figures> {
  const { proxy } = controller;
  const [startMs, connections, attempts] = [Date.now(), proxy.connectionCount, await sent()];
  await weather();
  await untilOnlyReady(stack.cluster, objects, convergeMs);
  const figures = {
    watches: proxy.seen.watchesOpened(startMs),
    requests: proxy.seen.busiestMinute(startMs),
    attempts: (await sent()) - attempts,
    connections: proxy.connectionCount - connections,
    seconds: Math.round((Date.now() - startMs) / 1_000),
  };
  context.diagnostic(JSON.stringify(figures));
  await expectInstanceEach(stack, await untilOnlyReady(stack.cluster, objects, convergeMs));
  await eventually(async () => assert.equal(proxy.seen.watchesOpen, 2, "one watch a kind"));
  return figures;
}

function sent(): Promise<number> {
  return controller.metric("rest_client_requests_total");
}

/** @param bounds for each minute that it took, a begun first one counting whole */
function expectWithin(figures: Figures, bounds: Omit<Figures, "seconds">): void {
  const text = JSON.stringify(figures);
  const minutes = Math.max(1, figures.seconds / 60);
  assert.ok(figures.watches <= bounds.watches * minutes, text);
  assert.ok(figures.requests <= bounds.requests, text);
  assert.ok(figures.attempts <= bounds.attempts * minutes, text);
  assert.ok(figures.connections <= bounds.connections * minutes, text);
}

test("fine weather is the measure", async (context) => {
  const figures = await measured(context, edit);
  expectWithin(figures, { watches: 0, requests: 100, attempts: 100, connections: 0 });
});

test("the API server restarts", async (context) => {
  const figures = await measured(context, async () => {
    await stack.cluster.restart();
    await edit();
  });
  expectWithin(figures, { watches: 30, requests: 120, attempts: 120, connections: 30 });
});

test(`the API server hangs for ${outageMs} ms behind something that answers pings`, async (context) => {
  const figures = await measured(context, async () => {
    stack.cluster.pause();
    await lasting(outageMs).finally(() => stack.cluster.resume());
    await edit();
  });
  expectWithin(figures, { watches: 10, requests: 80, attempts: 80, connections: 5 });
});

test(`the network is dead for ${outageMs} ms, and what is edited meanwhile is seen`, async (context) => {
  const figures = await measured(context, async () => {
    controller.proxy.pause();
    await edit();
    await lasting(outageMs);
    controller.proxy.resume({ isLossless: false });
  });
  expectWithin(figures, { watches: 12, requests: 100, attempts: 120, connections: 20 });
});

test(`connections are refused for ${outageMs} ms`, async (context) => {
  const figures = await measured(context, async () => {
    controller.proxy.cut();
    await edit();
    await lasting(outageMs);
    controller.proxy.resume();
  });
  expectWithin(figures, { watches: 10, requests: 80, attempts: 150, connections: 90 });
});

test("everything is answered 429 with Retry-After for ten seconds", async (context) => {
  const figures = await measured(context, async () => {
    const { proxy } = controller;
    const throttled = { kind: "status", status: 429, reason: "TooManyRequests" } as const;
    // Calls that go on end first: watches are opened under the throttle as well.
    proxy.cut();
    proxy.resume();
    proxy.setRules([{ match: {}, fault: { ...throttled, retryAfterSeconds: 3 } }]);
    await edit();
    await lasting(throttledMs);
    proxy.setRules([]);
  });
  expectWithin(figures, { watches: 16, requests: 100, attempts: 100, connections: 3 });
});
