import assert from "node:assert/strict";
import { test } from "node:test";

import { create } from "@bufbuild/protobuf";
import { Capability, DescribeResponseSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { ProviderErrorFacts } from "../../services/contract/provider-error.ts";
import type { ProviderClient } from "../../services/contract/provider-client.ts";
import { certainMs } from "./simulation/leader.ts";
import { places, Scenario } from "./simulation/scenario.ts";
import { settling } from "./simulation/world.ts";

const forced = "dhp.example.com/reconcile-requested-at";
const doubtMs =
  certainMs + settling.mutationDeadlineMs + settling.visibilityLagMs + settling.clockSkewMs;

/** How many instances were ever made. */
function madeCount({ world }: Scenario): number {
  return world.trace.filter((label) => label.startsWith("vendor commits a create")).length;
}

function withOwner(cluster: string) {
  return (inner: ProviderClient): ProviderClient => ({
    ...inner,
    describe: async (request, options) => {
      const answer = await inner.describe(request, options);
      if (answer.instance?.owner !== undefined) answer.instance.owner.cluster = cluster;
      return answer;
    },
  });
}

test("what cannot be taken back is refused before the vendor is asked", async () => {
  const scenario = new Scenario({}, { capabilities: [Capability.RELEASE] });
  const { world } = scenario;
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False InvalidSpec");
  assert.equal(scenario.brief("Stalled"), "True InvalidSpec");
  assert.match(scenario.condition("Ready").message, /set spec.deletionPolicy to Retain/);
  assert.equal(world.wire.callCount, 0);
  assert.deepEqual(scenario.object.finalizers, []);
  world.api.editSpec({ deletionPolicy: "Retain" });
  await scenario.provisioned();

  const other = new Scenario({ deletionPolicy: "Retain" }, { capabilities: [Capability.DELETE] });
  await other.settle();
  assert.match(other.condition("Ready").message, /cannot release/);
});

test("a create whose answer was lost is not repeated before the doubt is over", async () => {
  const scenario = new Scenario();
  const { world } = scenario;
  await scenario.settleUntil("vendor commits a create");
  const [create] = world.vendor.pending;
  world.replaceAdapter(places.a.address, "crash");
  create?.expire();
  const lostAtMs = world.clock.now();
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False AdapterUnreachable");
  await scenario.untilDue();
  assert.equal(scenario.brief("Ready"), "False Provisioning");
  assert.match(scenario.condition("Ready").message, /nothing is created before 2026-/);
  for (let count = 0; count < 3; count++) {
    world.api.annotate({ [forced]: String(count) });
    await scenario.later(2_000);
  }
  assert.equal(madeCount(scenario), 0);
  await scenario.untilDue();
  assert.equal(world.clock.now(), lostAtMs + doubtMs);
  assert.equal(madeCount(scenario), 1);
});

test("a create that commits after its answer was lost is found, not repeated", async () => {
  const scenario = new Scenario();
  const { world } = scenario;
  await scenario.settleUntil("vendor commits a create");
  world.replaceAdapter(places.a.address, "crash");
  await scenario.settle();
  await scenario.provisioned();
  assert.equal(madeCount(scenario), 1);
  assert.equal(world.vendor.live.length, 1);
});

test("an answer that could not be recorded leaves one instance, and its id is recorded later", async () => {
  const scenario = new Scenario();
  const { world } = scenario;
  await scenario.settleUntil("PATCH status");
  let attempts = 0;
  world.fateOfWrite = () => ((attempts += 1) <= 5 ? "refused" : "applied");
  await scenario.settle();
  while (scenario.object.status.providerID === undefined) await scenario.untilDue();
  assert.ok(attempts > 5);
  await scenario.provisioned();
  assert.equal(madeCount(scenario), 1);
  assert.equal(scenario.object.record[0]?.providerID, world.vendor.live[0]?.id);
});

test("an answer that comes as its pass is told to stop leaves doubt", async () => {
  const scenario = new Scenario();
  const { world } = scenario;
  await scenario.settleUntil("ensure of controller-1 at adapter-a:1 is answered");
  world.leader?.abortPass(false);
  const asked: boolean[] = [];
  const adapter = world.adapterAt(places.a.address);
  const ensure = adapter.ensure.bind(adapter);
  adapter.ensure = (request) => {
    asked.push(request.mayCreate);
    return ensure(request);
  };
  await scenario.settle();
  await scenario.provisioned();
  assert.deepEqual([...new Set(asked)], [false]);
});

test("an Ensure that may create and answers IN_DOUBT is a failure, and asked again later", async () => {
  const scenario = new Scenario();
  scenario.world.faultOf = (rpc) =>
    rpc === "ensure"
      ? new ProviderError("IN_DOUBT", "lists disagree", { outcome: "NOT_APPLIED" })
      : undefined;
  await scenario.settle();
  assert.equal(scenario.calls("ensure"), 1);
  assert.equal(scenario.brief("Ready"), "False EnsureFailed");
  scenario.world.faultOf = () => undefined;
  await scenario.untilDue();
  await scenario.provisioned();
});

test("an instance deleted at the vendor is made again once, with its event", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { world } = scenario;
  const [first] = world.vendor.live;
  assert.ok(first);
  world.vendor.end(first);
  world.api.annotate({ [forced]: "now" });
  await scenario.settle();
  await scenario.provisioned();
  assert.equal(madeCount(scenario), 2);
  const [second] = world.vendor.live;
  assert.notEqual(second?.id, first.id);
  assert.equal(scenario.object.status.providerID, second?.id);
  assert.equal(world.events.filter(({ reason }) => reason === "Recreated").length, 1);
});

test("a move to another realm keeps the old instance until the new one is READY", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { world } = scenario;
  const [old] = world.vendor.live;
  world.api.editSpec({ endpoint: places.b.endpoint });
  await scenario.settleBut((label) => label.endsWith("is READY"));
  assert.equal(scenario.brief("Ready"), "False Provisioning");
  assert.equal(scenario.brief("CleanupPending"), "True Moving");
  assert.match(scenario.condition("CleanupPending").message, /https:\/\/a\.example\.com/);
  assert.equal(scenario.calls("delete"), 0);
  assert.equal(scenario.object.record.length, 2);
  await scenario.settle();
  await scenario.provisioned();
  await scenario.settle();
  assert.equal(scenario.brief("CleanupPending"), "False Clean");
  assert.deepEqual(
    scenario.object.record.map(({ realm }) => realm),
    ["realm-2"],
  );
  assert.ok(world.vendor.live.every((instance) => instance !== old));
});

test("a move within a realm keeps the instance and deletes nothing", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { world } = scenario;
  const [instance] = world.vendor.live;
  world.api.editSpec({ endpoint: places.a2.endpoint });
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "True ProviderReady");
  assert.deepEqual(world.vendor.live, [instance]);
  assert.equal(scenario.calls("delete"), 0);
  assert.equal(scenario.object.record.length, 1);
  assert.equal(scenario.object.record[0]?.endpoint, places.a2.endpoint);
  assert.equal(scenario.object.record[0]?.providerID, instance?.id);
});

test("an object that comes back under its name inherits the doubt of the one before", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { world } = scenario;
  const spec = scenario.object.raw["spec"];
  world.api.annotate({ [forced]: "now" });
  const [instance] = world.vendor.live;
  assert.ok(instance);
  world.vendor.end(instance);
  await scenario.settleUntil("vendor commits a create");
  const [create] = world.vendor.pending;
  world.replaceAdapter(places.a.address, "crash");
  world.api.replace({ spec });
  create?.expire();
  const lostAtMs = world.clock.now();
  await scenario.settle();
  const before = madeCount(scenario);
  while (world.clock.now() < lostAtMs + doubtMs) {
    assert.equal(madeCount(scenario), before);
    await scenario.untilDue();
  }
  assert.equal(world.clock.now(), lostAtMs + doubtMs);
  assert.equal(madeCount(scenario), before + 1);
});

test("an instance of another cluster is not written to, and the object says whose it is", async () => {
  const scenario = new Scenario({}, { mutant: { client: withOwner("cluster-2") } });
  const { world } = scenario;
  // Somebody else's instance stands under our key.
  void world.vendor.create("realm-1", "fleet/media/one", "uid-9");
  world.vendor.pending[0]?.commit();
  for (const instance of world.vendor.live) instance.isReady = true;
  await scenario.later(settling.visibilityLagMs);
  world.api.annotate({ [forced]: "now" });
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False OwnedByAnother");
  assert.match(scenario.condition("Ready").message, /cluster-2/);
  assert.equal(world.vendor.mutationCount, 1);
  assert.deepEqual(scenario.object.finalizers, []);
});

test("driftPolicy Observe reads a settled instance and never ensures it", async () => {
  const scenario = new Scenario({ driftPolicy: "Observe" });
  await scenario.provisioned();
  const before = scenario.calls("ensure");
  scenario.world.api.annotate({ [forced]: "now" });
  await scenario.settle();
  assert.equal(scenario.calls("ensure"), before);
  scenario.world.api.editSpec({ displayName: "asked for" });
  await scenario.settle();
  assert.equal(scenario.calls("ensure"), before + 1);
});

test("an answer from another realm than the recorded one counts as nothing", async () => {
  const client = (inner: ProviderClient): ProviderClient => ({
    ...inner,
    ensure: async (request, options) => {
      const answer = await inner.ensure(request, options);
      if (answer.instance !== undefined) {
        answer.instance.realm = "realm-9";
      }
      return answer;
    },
  });
  const scenario = new Scenario({}, { mutant: { client } });
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False EnsureFailed");
  assert.match(scenario.condition("Ready").message, /realm-9.*realm-1/);
  assert.equal(scenario.brief("Stalled"), "True EnsureFailed");
  assert.equal(scenario.object.record[0]?.providerID, "");
});

test("an instance without realm or id is no answer, and leaves no record", async () => {
  for (const [fields, missing] of [
    [{ providerId: "i-9" }, "realm"],
    [{ realm: "realm-1" }, "provider_id"],
  ] as const) {
    const client = (inner: ProviderClient): ProviderClient => ({
      ...inner,
      describe: async () => create(DescribeResponseSchema, { instance: fields }),
    });
    const scenario = new Scenario({}, { mutant: { client } });
    await scenario.settle();
    assert.equal(scenario.brief("Ready"), "False EnsureFailed");
    assert.match(scenario.condition("Ready").message, new RegExp(`instance without ${missing}`));
    assert.deepEqual(scenario.object.record, []);
    assert.deepEqual(scenario.object.finalizers, []);
  }
});

/** Every Ensure fails like this, once what it did is known. */
function withFailure(facts: ProviderErrorFacts) {
  return (inner: ProviderClient): ProviderClient => ({
    ...inner,
    ensure: async () => {
      throw new ProviderError("INVALID_FIELD", "the second step was refused", facts);
    },
  });
}

test("the id of what a failed create left behind is recorded, and asked for from then on", async () => {
  const client = withFailure({ outcome: "PARTIAL", providerId: "i-9" });
  const scenario = new Scenario({}, { mutant: { client } });
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False InvalidSpec");
  assert.equal(scenario.object.record[0]?.providerID, "i-9");
  assert.equal(scenario.object.finalizers.length, 1);
});

for (const [what, spec, facts] of [
  ["a failed adoption", { adopt: { providerID: "i-9" } }, { outcome: "UNKNOWN" }],
  ["a failure that applied nothing", {}, { outcome: "NOT_APPLIED" }],
] as const) {
  test(`the id that ${what} names is not recorded: it may be a stranger's`, async () => {
    const client = withFailure({ ...facts, providerId: "i-9" });
    const scenario = new Scenario(spec, { mutant: { client } });
    await scenario.settle();
    assert.equal(scenario.brief("Ready"), "False InvalidSpec");
    assert.equal(scenario.object.record[0]?.providerID, "");
  });
}

test("a process that may lead no more sends no mutation", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { world } = scenario;
  const calls = world.wire.callCount;
  await world.advance(certainMs);
  world.api.annotate({ [forced]: "now" });
  await scenario.settle();
  world.api.delete();
  await scenario.settle();
  assert.equal(world.wire.callCount, calls);
  await scenario.untilDue();
  assert.equal(world.api.object, undefined);
});
