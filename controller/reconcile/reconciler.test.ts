import assert from "node:assert/strict";
import { test } from "node:test";

import { ProviderError } from "../../services/contract/provider-error.ts";
import { places, Scenario } from "./simulation/scenario.ts";

const forced = "dhp.example.com/reconcile-requested-at";

test("a create costs two writes, and a delete one", async () => {
  const scenario = new Scenario();
  // Ready from the first answer on, so that no later look at it is counted.
  await scenario.settleUntil("vendor commits a create");
  const { world } = scenario;
  const [create] = world.vendor.pending;
  create?.commit();
  for (const instance of world.vendor.live) instance.isReady = true;
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "True ProviderReady");
  assert.equal(world.api.writeCount, 2);
  assert.deepEqual(scenario.object.finalizers, ["dhp.example.com/provider-cleanup"]);

  world.api.delete();
  await scenario.settle();
  assert.equal(world.api.object, undefined);
  assert.equal(world.api.writeCount, 3);
  assert.deepEqual(world.vendor.live, []);
});

test("an event that changes nothing costs a settled object no call and no write", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { api, wire } = scenario.world;
  const before = { writes: api.writeCount, calls: wire.callCount };
  api.annotate({ "example.com/note": "looked at" });
  await scenario.settle();
  assert.deepEqual({ writes: api.writeCount, calls: wire.callCount }, before);
});

test("five forced passes read the vendor five times and write nothing", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { api } = scenario.world;
  const before = { writes: api.writeCount, calls: scenario.calls("ensure") };
  for (let count = 0; count < 5; count++) {
    api.annotate({ [forced]: `time ${count}` });
    await scenario.settle();
  }
  assert.equal(api.writeCount, before.writes);
  assert.equal(scenario.calls("ensure"), before.calls + 5);
  assert.equal(scenario.world.vendor.mutationCount, 1);
});

test("a first endpoint that never answers leaves no finalizer and no record", async () => {
  const scenario = new Scenario();
  scenario.world.faultOf = () => new ProviderError("VENDOR_TIMEOUT", "no answer");
  await scenario.settle();
  for (let count = 0; count < 3; count++) await scenario.untilDue();
  assert.deepEqual(scenario.object.finalizers, []);
  assert.deepEqual(scenario.object.record, []);
  assert.equal(scenario.brief("Ready"), "False EnsureFailed");
  assert.equal(scenario.object.status.observedGeneration, 1);
  scenario.world.api.delete();
  await scenario.settle();
  assert.equal(scenario.world.api.object, undefined);
});

test("the wait between failed attempts grows", async () => {
  const scenario = new Scenario();
  scenario.world.faultOf = () => new ProviderError("VENDOR_TIMEOUT", "no answer");
  await scenario.settle();
  const waits = [await scenario.untilDue(), await scenario.untilDue(), await scenario.untilDue()];
  const [first = 0, second = 0, third = 0] = waits;
  assert.ok(first < second && second < third, waits.join(", "));
});

test("an endpoint changed to one that does not answer and back makes Ready True, False, True", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { api, vendor } = scenario.world;
  scenario.world.faultOf = (_rpc, endpoint) =>
    endpoint === places.b.endpoint ? new ProviderError("VENDOR_TIMEOUT", "no answer") : undefined;
  api.editSpec({ endpoint: places.b.endpoint });
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False EnsureFailed");
  assert.equal(scenario.condition("Ready").observedGeneration, 2);
  assert.equal(scenario.object.record.length, 1);
  api.editSpec({ endpoint: places.a.endpoint });
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "True ProviderReady");
  assert.equal(scenario.condition("Ready").observedGeneration, 3);
  assert.equal(vendor.mutationCount, 1);
});

test("a suspended object is neither created nor moved, and can be deleted", async () => {
  const scenario = new Scenario({ suspend: true });
  await scenario.settle();
  const { api, wire, vendor } = scenario.world;
  assert.equal(scenario.brief("Ready"), "False Suspended");
  assert.equal(wire.callCount, 0);

  api.editSpec({ suspend: false });
  await scenario.settle();
  await scenario.provisioned();
  const calls = wire.callCount;
  api.editSpec({ suspend: true, endpoint: places.b.endpoint });
  await scenario.settle();
  assert.equal(wire.callCount, calls);
  assert.equal(scenario.brief("Ready"), "True Suspended");
  assert.equal(scenario.object.status.observedGeneration, 2);

  api.delete();
  await scenario.settle();
  assert.equal(api.object, undefined);
  assert.deepEqual(vendor.live, []);
});

test("a throttled vendor is not called before its time, whatever changes meanwhile", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { world } = scenario;
  const error = new ProviderError("THROTTLED", "slow down", {
    retryAfterMs: 90_000,
    outcome: "NOT_APPLIED",
  });
  world.faultOf = () => error;
  world.api.annotate({ [forced]: "now" });
  await scenario.settle();
  world.faultOf = () => undefined;
  assert.equal(scenario.brief("RateLimited"), "True Throttled");
  assert.equal(scenario.brief("Ready"), "True ProviderReady");
  const until = scenario.object.status.rateLimitedUntil ?? "";
  assert.ok(Date.parse(until) >= world.clock.now() + 90_000, until);
  const before = { calls: world.wire.callCount, writes: world.api.writeCount };

  await scenario.later(40_000);
  world.api.annotate({ "example.com/note": "looked at" });
  await scenario.settle();
  assert.equal(world.api.writeCount, before.writes, "time alone writes nothing");
  world.api.editSpec({ displayName: "another" });
  await scenario.settle();
  world.api.delete();
  await scenario.settle();
  await scenario.later(49_000);
  assert.equal(world.wire.callCount, before.calls);
  assert.equal(scenario.brief("Ready"), "False DeleteFailed");

  await scenario.later(1_000);
  assert.equal(world.api.object, undefined);
});

test("a fresh process leaves a vendor alone that asked its predecessor for a wait", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { world } = scenario;
  world.faultOf = () =>
    new ProviderError("THROTTLED", "slow down", { retryAfterMs: 90_000, outcome: "NOT_APPLIED" });
  world.api.annotate({ [forced]: "now" });
  await scenario.settle();
  world.faultOf = () => undefined;
  world.killLeader();
  world.startLeader();
  const before = { calls: world.wire.callCount, writes: world.api.writeCount };
  await scenario.later(80_000);
  world.api.annotate({ "example.com/note": "looked at" });
  await scenario.settle();
  assert.deepEqual({ calls: world.wire.callCount, writes: world.api.writeCount }, before);
  await scenario.later(11_000);
  assert.ok(world.wire.callCount > before.calls);
  assert.equal(scenario.brief("RateLimited"), "False NotLimited");
});

test("a vendor that asks for a wait does not keep an object from moving to another", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { world } = scenario;
  world.faultOf = (_rpc, endpoint) =>
    endpoint === places.a.endpoint
      ? new ProviderError("THROTTLED", "slow down", {
          retryAfterMs: 90_000,
          outcome: "NOT_APPLIED",
        })
      : undefined;
  world.api.annotate({ [forced]: "now" });
  await scenario.settle();
  assert.equal(scenario.brief("RateLimited"), "True Throttled");

  world.api.editSpec({ endpoint: places.b.endpoint });
  await scenario.settle();
  assert.ok(world.vendor.live.some(({ realm }) => realm === places.b.realm));
});

test("a hold stands even when the status that tells of it cannot be written", async () => {
  const scenario = new Scenario();
  const { world } = scenario;
  world.faultOf = () => new ProviderError("THROTTLED", "slow down", { retryAfterMs: 90_000 });
  world.fateOfWrite = () => "refused";
  await scenario.settle();
  assert.equal(scenario.calls("describe"), 1);
  await scenario.later(10_000);
  world.fateOfWrite = () => "applied";
  await scenario.later(20_000);
  assert.equal(scenario.calls("describe"), 1);
  assert.equal(scenario.brief("RateLimited"), "True Throttled");
  await scenario.later(60_000);
  assert.equal(scenario.calls("describe"), 2);
});

test("an object that comes back under a held name is told nothing about the old one", async () => {
  const scenario = new Scenario();
  const { world } = scenario;
  await scenario.provisioned();
  world.api.delete();
  world.faultOf = () => new ProviderError("THROTTLED", "slow down", { retryAfterMs: 90_000 });
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False DeleteFailed");
  // By force: somebody took the finalizer off and applied it again.
  const { uid } = scenario.object;
  world.api.replace({ spec: scenario.object.raw["spec"] });
  await scenario.settle();
  assert.notEqual(scenario.object.uid, uid);
  assert.deepEqual(scenario.object.status.conditions, []);
  world.faultOf = () => undefined;
  await scenario.untilDue();
  await scenario.provisioned();
});

test("a class that changes during a pass is asked for again after it", async () => {
  const scenario = new Scenario();
  const { world } = scenario;
  await scenario.provisioned();
  world.api.annotate({ [forced]: "now" });
  await scenario.settleUntil("ensure");
  world.classes = world.classes.map((one) => ({ ...one, generation: one.generation + 1 }));
  await scenario.settle();
  const before = scenario.calls("ensure");
  world.api.annotate({ "example.com/note": "the class changed" });
  await scenario.settle();
  assert.equal(scenario.calls("ensure"), before + 1);
});

test("a status that names a class which is not there is set right at once", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  scenario.world.api.editStatus({ className: "nobody's" });
  await scenario.settle();
  assert.equal(scenario.object.status.className, "class-a");
  assert.equal(scenario.brief("Ready"), "True ProviderReady");
});

test("a class that appears later is chosen, and one that appears after the choice is not", async () => {
  const scenario = new Scenario();
  const { world } = scenario;
  const all = world.classes;
  world.classes = [];
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False NoClass");
  world.classes = all;
  scenario.world.api.annotate({ "example.com/note": "a class came" });
  await scenario.settle();
  await scenario.provisioned();
  assert.equal(scenario.object.status.className, "class-a");

  world.api.editSpec({ endpoint: "https://elsewhere.example.com/api" });
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False NoClass");
  world.api.editSpec({ displayName: "still elsewhere" });
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False NoClass", "the class of before does not stick");
});
