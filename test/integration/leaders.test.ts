/** Several controllers on one cluster: one acts, whoever dies, is stopped or wakes late. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { httpGet, metricValue } from "../support/http-get.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import type { Program } from "../support/program.ts";
import { applyDhp, deleteDhp, dhp, readDhp, untilGone, untilReady } from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

const leaseMs = 3_000;
/** Beyond the lease: the look that finds it expired, and the reading of what is recorded. */
const takeOverMs = 2_000;
/** Doubt after a take-over: the lease, the vendor's mutation deadline and the skew allowance. */
const doubtTimeoutMs = 40_000;
/** From here on readers take every Available for Unknown. */
const staleMs = 10_000;
const count = 30;
const creations = Array.from({ length: count }, (_, index) => `show-${index}`);

let stack: Stack;
const started: Program[] = [];
let leader: Program;
let standby: Program;

before(async () => {
  stack = await startStack({
    withController: false,
    controllerFlags: ["--lease-duration", `${leaseMs}ms`],
  });
  leader = await startController();
  await eventually(async () => assert.equal(await isLeading(leader), true));
  standby = await startController();
});
after(async () => {
  await Promise.all(started.map((program) => program.stop()));
  await stack?.stop();
});

async function startController(): Promise<Program> {
  const program = await stack.startController();
  started.push(program);
  await eventually(async () => {
    assert.equal((await httpGet(program.ports.adminPort, "/readyz")).status, 200);
  });
  return program;
}

async function metric(
  { ports }: Program,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  return metricValue((await httpGet(ports.adminPort, "/metrics")).text, name, labels);
}

async function isLeading(program: Program): Promise<boolean> {
  return (await metric(program, "leader_election_master_status")) === 1;
}

/** How long it took from now until the program leads. */
async function untilLeading(program: Program): Promise<number> {
  const startMs = performance.now();
  await eventually(async () => assert.equal(await isLeading(program), true));
  return performance.now() - startMs;
}

interface LeaseSpec {
  readonly holderIdentity: string;
  readonly renewTime: string;
  readonly leaseTransitions: number;
}

async function readLease(): Promise<LeaseSpec> {
  const get = ["get", "lease", "dhp-controller", "--namespace=dhp-system", "-o", "json"];
  return JSON.parse(expectDone(await stack.cluster.kubectl(get))).spec;
}

/** What deploy/README.md tells readers to look at. */
async function leaseAgeMs(): Promise<number> {
  return Date.now() - Date.parse((await readLease()).renewTime);
}

async function expectRoomEach(names: readonly string[]): Promise<void> {
  const rooms = await listRooms(stack.livekit);
  assert.equal(rooms.length, names.length);
  const objects = await Promise.all(names.map((name) => readDhp(stack.cluster, name)));
  const ids = objects.map(({ status }) => status?.providerID);
  assert.equal(new Set(ids).size, names.length);
  for (const { name, sid } of rooms) assert.ok(ids.includes(`${name}/${sid}`));
}

test("of two that are ready one acts, the other neither writes nor speaks to an adapter", async () => {
  await applyDhp(stack.cluster, dhp("first"));
  await untilReady(stack.cluster, "first");
  assert.equal(await isLeading(leader), true);
  assert.ok((await metric(leader, "dhp_api_writes_total")) > 0);
  assert.equal(await isLeading(standby), false);
  assert.equal(await metric(standby, "dhp_api_writes_total"), 0);
  assert.equal(await metric(standby, "dhp_provider_calls_total"), 0);
  assert.equal(await metric(standby, "controller_runtime_reconcile_total"), 0);
});

test("a leader killed during 30 creations: taken over within the lease, one room an object", async () => {
  await applyDhp(stack.cluster, { apiVersion: "v1", kind: "List", items: creations.map(named) });
  await eventually(async () => assert.ok((await listRooms(stack.livekit)).length > 5));
  await leader.kill();
  const tookMs = await untilLeading(standby);
  assert.ok(tookMs < leaseMs + takeOverMs, `took ${tookMs} ms`);
  leader = standby;
  standby = await startController();
  for (const name of creations) await untilReady(stack.cluster, name, "True", doubtTimeoutMs);
  await expectRoomEach(["first", ...creations]);
});

function named(name: string): object {
  return dhp(name);
}

test("a standby told to stop ends well, and leaves the Lease alone", async () => {
  const { holderIdentity, leaseTransitions } = await readLease();
  assert.equal((await standby.stop()).code, 0);
  const lease = await readLease();
  assert.deepEqual(
    [lease.holderIdentity, lease.leaseTransitions],
    [holderIdentity, leaseTransitions],
  );
  assert.equal(await isLeading(leader), true);
});

test("a leader stopped before a call wakes after its successor has deleted: nothing is sent", async () => {
  standby = await startController();
  const old = leader;
  stack.adapter.pause();
  await applyDhp(stack.cluster, dhp("late"));
  await eventually(async () => {
    assert.ok((await metric(old, "controller_runtime_active_workers")) > 0);
  });
  const ensures = () => metric(old, "dhp_provider_calls_total", { method: "Ensure" });
  const ensuresBefore = await ensures();
  old.pause();
  // Its answer waits in the sleeper's socket: on waking up it is about to record and to create.
  stack.adapter.resume();
  await untilLeading(standby);
  await untilReady(stack.cluster, "late");
  await deleteDhp(stack.cluster, "late");
  await untilGone(stack.cluster, "late");
  old.resume();
  await eventually(async () => assert.equal(await isLeading(old), false));
  assert.equal(await ensures(), ensuresBefore);
  await expectRoomEach(["first", ...creations]);
  assert.equal(await isLeading(standby), true);
  [leader, standby] = [standby, old];
});

test("a clean exit releases the Lease: the other one, awake again, leads within 2 s", async () => {
  const exit = leader.stop();
  const tookMs = await untilLeading(standby);
  assert.ok(tookMs < takeOverMs, `took ${tookMs} ms`);
  assert.equal((await exit).code, 0);
  await applyDhp(stack.cluster, dhp("after"));
  await untilReady(stack.cluster, "after");
  await expectRoomEach(["first", "after", ...creations]);
});

test("an API server that is away ends the leadership and not the process, which leads again", async () => {
  stack.cluster.pause();
  try {
    await eventually(async () => assert.equal(await isLeading(standby), false));
  } finally {
    stack.cluster.resume();
  }
  await untilLeading(standby);
  await applyDhp(stack.cluster, dhp("again"));
  await untilReady(stack.cluster, "again");
  await expectRoomEach(["first", "after", "again", ...creations]);
});

test("with no controller left, the Lease tells a reader within 10 s", async () => {
  assert.ok((await leaseAgeMs()) < staleMs);
  await standby.kill();
  const killedMs = performance.now();
  await eventually(async () => assert.ok((await leaseAgeMs()) > staleMs), staleMs + 1_000);
  assert.ok(performance.now() - killedMs < staleMs + 1_000);
});
