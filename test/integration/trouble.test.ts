/** Vendors, adapters and endpoints that fail: what objects say meanwhile, and that all heals. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { httpGet, metricValue } from "../support/http-get.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import {
  applyDhp,
  condition,
  deleteDhp,
  dhp,
  forcePass,
  patchDhp,
  readDhp,
  untilGone,
  untilReady,
} from "../support/providers.ts";
import { SeenVersions } from "../support/seen-versions.ts";
import { deadEndpoint, livekitEndpoint, startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

let stack: Stack;

before(async () => {
  stack = await startStack({
    controllerFlags: ["--back-off-max", "2s", "--call-deadline", "6s", "--reprobe", "3s"],
    adapterFlags: ["--read-timeout", "2s", "--circuit-open", "2s"],
  });
});
after(() => stack.stop());

async function adapterMetric(
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  return metricValue((await httpGet(stack.adapter.ports.adminPort, "/metrics")).text, name, labels);
}

test("an endpoint flipped to an unreachable one and back: Ready True, False, True, each of its generation", async () => {
  await applyDhp(stack.cluster, dhp("flip"));
  const first = await untilReady(stack.cluster, "flip");
  await patchDhp(stack.cluster, "flip", { spec: { endpoint: deadEndpoint } });
  const away = await untilReady(stack.cluster, "flip", "False");
  const ready = condition(away, "Ready");
  assert.match(ready.message, /dead\.livekit\.example\.com/);
  assert.match(ready.message, /refused|unreachable|cannot reach/i);
  assert.equal(ready.observedGeneration, 2);
  assert.equal((await listRooms(stack.livekit)).length, 1, "the old room serves on");
  await patchDhp(stack.cluster, "flip", { spec: { endpoint: livekitEndpoint } });
  const back = await untilReady(stack.cluster, "flip");
  assert.equal(condition(back, "Ready").observedGeneration, 3);
  assert.equal(back.status?.providerID, first.status?.providerID);
  await deleteDhp(stack.cluster, "flip");
  await untilGone(stack.cluster, "flip");
});

test("flipped there and back under a watch: no version claims a generation it does not speak for, nor a truth that is none", async () => {
  await applyDhp(stack.cluster, dhp("watched"));
  await untilReady(stack.cluster, "watched");
  const versions = await SeenVersions.of(stack.cluster, "watched");
  try {
    for (const [endpoint, status] of [
      [deadEndpoint, "False"],
      [livekitEndpoint, "True"],
      [deadEndpoint, "False"],
      [livekitEndpoint, "True"],
    ] as const) {
      await patchDhp(stack.cluster, "watched", { spec: { endpoint } });
      await untilReady(stack.cluster, "watched", status);
    }
    await eventually(async () => {
      const last = versions.seen.at(-1);
      assert.equal(last?.status?.observedGeneration, 5);
      assert.equal(condition(last, "Ready").status, "True");
    });
    assert.ok(versions.seen.length >= 8, `${versions.seen.length} versions`);
    for (const [at, object] of versions.seen.entries()) {
      const { generation } = object.metadata;
      assert.ok((object.status?.observedGeneration ?? 0) <= generation);
      const ready = condition(object, "Ready");
      assert.ok(ready.observedGeneration <= generation);
      // Even generations ask for the endpoint behind which nobody is.
      const isDead = ready.observedGeneration % 2 === 0;
      assert.ok(!isDead || ready.status !== "True", `Ready ${ready.status} of ${generation}`);
      const before = versions.seen[at - 1];
      if (before === undefined) continue;
      const was = condition(before, "Ready");
      const hasMoved = was.lastTransitionTime !== ready.lastTransitionTime;
      assert.ok(!hasMoved || was.status !== ready.status, "time moves on transitions only");
    }
  } finally {
    await versions.stop();
  }
  await deleteDhp(stack.cluster, "watched");
  await untilGone(stack.cluster, "watched");
});

test("a first endpoint that never answers leaves no finalizer and no record, and delete is immediate", async () => {
  await applyDhp(stack.cluster, dhp("mistyped", { endpoint: deadEndpoint }));
  const object = await untilReady(stack.cluster, "mistyped", "False");
  assert.deepEqual(object.metadata.finalizers ?? [], []);
  assert.deepEqual(object.status?.placements ?? [], []);
  await deleteDhp(stack.cluster, "mistyped");
  await untilGone(stack.cluster, "mistyped", 2_000);
});

test("the breaker of a dead endpoint opens, shows in condition and metric, and closes again", async () => {
  await applyDhp(stack.cluster, dhp("breaker"));
  await untilReady(stack.cluster, "breaker");
  await stack.livekit.kill();
  await eventually(async () => {
    await forcePass(stack.cluster, "breaker");
    const ready = condition(await readDhp(stack.cluster, "breaker"), "Ready");
    assert.equal(ready.reason, "CircuitOpen", ready.message);
    assert.notEqual(ready.status, "True");
  }, 60_000);
  assert.ok((await adapterMetric("dhp_vendor_circuit_state")) > 0);
  await stack.livekit.restart();
  await eventually(async () => {
    await forcePass(stack.cluster, "breaker");
    const ready = condition(await readDhp(stack.cluster, "breaker"), "Ready");
    assert.equal(ready.status, "True", ready.message);
  }, 60_000);
  await eventually(async () => assert.equal(await adapterMetric("dhp_vendor_circuit_state"), 0));
  assert.equal((await listRooms(stack.livekit)).length, 1, "made again exactly once");
});

test("an adapter that is down is said so, and all converges when it is back", async () => {
  const { grpcPort } = stack.adapter.ports;
  assert.ok(grpcPort);
  await stack.adapter.kill();
  await applyDhp(stack.cluster, dhp("waiting"));
  const object = await untilReady(stack.cluster, "waiting", "False");
  assert.equal(condition(object, "Ready").reason, "AdapterUnreachable");
  assert.deepEqual(object.metadata.finalizers ?? [], []);
  await stack.startAdapter(grpcPort);
  await untilReady(stack.cluster, "waiting", "True", 30_000);
  await eventually(async () => assert.equal((await listRooms(stack.livekit)).length, 2));
});

test("an adapter restarted under load makes no second room", async () => {
  const { grpcPort } = stack.adapter.ports;
  assert.ok(grpcPort);
  const names = Array.from({ length: 10 }, (_, index) => `restart-${index}`);
  const items = names.map((name) => dhp(name));
  const applied = stack.apply({ apiVersion: "v1", kind: "List", items });
  await eventually(async () => assert.ok((await listRooms(stack.livekit)).length > 3));
  await stack.adapter.kill();
  await stack.startAdapter(grpcPort);
  await applied;
  for (const name of names) await untilReady(stack.cluster, name, "True", 60_000);
  assert.equal((await listRooms(stack.livekit)).length, 12);
  for (const name of names) await deleteDhp(stack.cluster, name);
  for (const name of names) await untilGone(stack.cluster, name, 60_000);
  assert.equal((await listRooms(stack.livekit)).length, 2);
});

test("a vendor that hangs is a time-out in a condition, and heals when it answers", async () => {
  stack.livekit.pause();
  try {
    await applyDhp(stack.cluster, dhp("slow"));
    const object = await untilReady(stack.cluster, "slow", "False", 30_000);
    assert.match(condition(object, "Ready").message, /no complete answer within 2000 ms|circuit/i);
  } finally {
    stack.livekit.resume();
  }
  await untilReady(stack.cluster, "slow", "True", 60_000);
});
