import assert from "node:assert/strict";
import { test } from "node:test";

import { Capability } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { ProviderClient } from "../../services/contract/provider-client.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { places, Scenario } from "./simulation/scenario.ts";
import { settling } from "./simulation/world.ts";
import { certainMs } from "./simulation/leader.ts";

const forced = "dhp.example.com/reconcile-requested-at";
const doubtMs =
  certainMs + settling.mutationDeadlineMs + settling.visibilityLagMs + settling.clockSkewMs;

/** A provisioned object whose deletion has just been asked for, and not been looked at. */
async function deleted(...arguments_: ConstructorParameters<typeof Scenario>): Promise<Scenario> {
  const scenario = new Scenario(...arguments_);
  await scenario.provisioned();
  scenario.world.api.delete();
  return scenario;
}

function saysNotFound(realm: string | undefined, reason: "NOT_FOUND" | "NOT_OURS" = "NOT_FOUND") {
  return new ProviderError(reason, "no such instance", {
    outcome: "NOT_APPLIED",
    ...(realm === undefined ? {} : { realm }),
    owner: "cluster-2",
  });
}

test("a deletion that takes its time is asked for again when the vendor says, with one write", async () => {
  const scenario = await deleted({}, { isDeletionAsync: true });
  const isHeldBack = (label: string): boolean => label.includes("is gone");
  const { world } = scenario;
  const writes = world.api.writeCount;
  await scenario.settleBut(isHeldBack);
  assert.equal(scenario.brief("Ready"), "False Deleting");
  assert.equal(scenario.brief("Reconciling"), "True Deleting");
  for (let count = 1; count <= 3; count++) {
    assert.equal(scenario.calls("delete"), count);
    await scenario.later(2_000, isHeldBack);
  }
  assert.equal(world.api.writeCount, writes + 1);
  await scenario.settle();
  await scenario.untilDue();
  assert.equal(world.api.object, undefined);
});

function namesNoTime(inner: ProviderClient): ProviderClient {
  return {
    ...inner,
    delete: async (request, options) => {
      const answer = await inner.delete(request, options);
      delete answer.pollAfter;
      return answer;
    },
  };
}

test("a vendor that names no time is asked again after our own, for a former place as well", async () => {
  const client = namesNoTime;
  const scenario = await deleted({}, { isDeletionAsync: true, mutant: { client } });
  await scenario.settleBut((label) => label.includes("is gone"));
  assert.equal(scenario.calls("delete"), 1);
  assert.equal(await scenario.untilDue(), 2_000);

  const mover = new Scenario({}, { isDeletionAsync: true, mutant: { client } });
  await mover.provisioned();
  mover.world.api.editSpec({ endpoint: places.b.endpoint });
  await mover.settle();
  await mover.world.advance(2_000);
  await mover.settleBut((label) => label.includes("is gone"));
  assert.equal(mover.brief("CleanupPending"), "True Retiring");
  assert.equal(mover.calls("delete"), 1);
});

test("deletionProtection makes a deletion wait, and says so, until it is lifted", async () => {
  const scenario = await deleted({ deletionProtection: true });
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False DeleteBlocked");
  assert.equal(scenario.brief("Stalled"), "True DeleteBlocked");
  assert.equal(scenario.calls("delete"), 0);
  scenario.world.api.editSpec({ deletionProtection: false });
  await scenario.settle();
  assert.equal(scenario.world.api.object, undefined);
});

test("deletionPolicy Retain releases, and a class's policy holds where spec names none", async () => {
  for (const [spec, classSpec] of [
    [{ deletionPolicy: "Retain" }, {}],
    [{}, { deletionPolicy: "Retain" }],
  ] as const) {
    const scenario = await deleted(spec, { classSpec });
    await scenario.settle();
    assert.equal(scenario.world.api.object, undefined);
    assert.equal(scenario.calls("release"), 1);
    assert.equal(scenario.calls("delete"), 0);
  }
});

test("a former place is deleted in spite of Retain, but released where the vendor cannot delete", async () => {
  for (const [capabilities, verb] of [
    [[Capability.DELETE, Capability.RELEASE], "delete"],
    [[Capability.RELEASE], "release"],
  ] as const) {
    const scenario = new Scenario({ deletionPolicy: "Retain" }, { capabilities });
    await scenario.provisioned();
    scenario.world.api.editSpec({ endpoint: places.b.endpoint });
    await scenario.settle();
    await scenario.provisioned();
    await scenario.settle();
    assert.equal(scenario.object.record.length, 1);
    assert.equal(scenario.calls(verb), 1, verb);
  }
});

test("NOT_FOUND in the recorded realm ends a deletion", async () => {
  const scenario = await deleted();
  const [instance] = scenario.world.vendor.live;
  assert.ok(instance);
  scenario.world.vendor.end(instance);
  await scenario.settle();
  assert.equal(scenario.world.api.object, undefined);
});

test("absence in another realm, or in none, ends nothing", async () => {
  for (const [realm, ready] of [
    ["realm-9", "False DeleteBlocked"],
    [undefined, "False DeleteFailed"],
  ] as const) {
    const scenario = await deleted();
    scenario.world.faultOf = () => saysNotFound(realm);
    await scenario.settle();
    for (let count = 0; count < 3; count++) await scenario.untilDue();
    assert.equal(scenario.brief("Ready"), ready);
    assert.equal(scenario.object.record.length, 1);
  }
});

test("a removal in another realm ends nothing", async () => {
  const client = (inner: ProviderClient): ProviderClient => ({
    ...inner,
    delete: async (request, options) => ({
      ...(await inner.delete(request, options)),
      realm: "realm-9",
    }),
  });
  const scenario = await deleted({}, { mutant: { client } });
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False DeleteBlocked");
  assert.match(scenario.condition("Ready").message, /realm-9.*realm-1/);
  assert.equal(scenario.object.record.length, 1);
});

test("an instance of another cluster is left alone, and an event says so", async () => {
  const scenario = await deleted();
  scenario.world.faultOf = () => saysNotFound("realm-1", "NOT_OURS");
  await scenario.settle();
  assert.equal(scenario.world.api.object, undefined);
  assert.equal(scenario.world.vendor.live.length, 1);
  const event = scenario.world.events.find(({ reason }) => reason === "NotOurs");
  assert.match(event?.note ?? "", /cluster-2/);
});

test("a Delete whose answer was lost leaves doubt, and no absence is believed until it ends", async () => {
  const scenario = await deleted();
  const { world } = scenario;
  await scenario.settleUntil("vendor commits a delete");
  world.replaceAdapter(places.a.address, "crash");
  const lostAtMs = world.clock.now();
  await scenario.settle();
  assert.equal(world.vendor.live.length, 0);
  assert.equal(scenario.brief("Ready"), "False DeleteFailed");
  await scenario.untilDue();
  assert.equal(scenario.brief("Ready"), "False Deleting");
  assert.match(scenario.condition("Ready").message, /absence is believed from 2026-/);
  const calls = scenario.calls("delete");
  await scenario.untilDue();
  assert.equal(world.api.object, undefined);
  assert.equal(scenario.calls("delete"), calls + 1);
  assert.equal(world.clock.now(), lostAtMs + doubtMs);
});

test("a process that takes over believes no absence before its predecessor's calls are over", async () => {
  const scenario = await deleted();
  const { world } = scenario;
  world.killLeader();
  world.startLeader();
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False Deleting");
  await scenario.untilDue();
  assert.equal(world.api.object, undefined);
});

test("a missing class blocks a deletion with words, until it is there again", async () => {
  const scenario = await deleted();
  const { world } = scenario;
  const all = world.classes;
  world.classes = [];
  await scenario.settle();
  assert.equal(scenario.brief("Ready"), "False DeleteBlocked");
  assert.match(scenario.condition("Ready").message, /class "class-a" does not exist any more/);
  world.classes = all;
  await scenario.untilDue();
  assert.equal(world.api.object, undefined);
});

test("a throttled former place is not asked before its time, however often the pass runs", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { world } = scenario;
  world.faultOf = (rpc) =>
    rpc === "delete"
      ? new ProviderError("THROTTLED", "slow down", {
          retryAfterMs: 60_000,
          outcome: "NOT_APPLIED",
        })
      : undefined;
  world.api.editSpec({ endpoint: places.b.endpoint });
  await scenario.settle();
  await scenario.provisioned();
  assert.equal(scenario.calls("delete"), 1);
  assert.equal(scenario.brief("CleanupPending"), "True Retiring");
  assert.match(scenario.condition("CleanupPending").message, /a\.example\.com.*slow down/);
  for (let count = 0; count < 5; count++) {
    world.api.annotate({ [forced]: String(count) });
    await scenario.later(5_000);
  }
  world.api.delete();
  await scenario.settle();
  assert.equal(scenario.calls("delete"), 2, "the place of now is deleted, the former one waits");
  world.faultOf = () => undefined;
  await scenario.untilDue();
  assert.equal(world.api.object, undefined);
});

test("each place that cannot be cleaned up keeps its own patience", async () => {
  const scenario = new Scenario();
  await scenario.provisioned();
  const { world } = scenario;
  world.faultOf = (rpc) =>
    rpc === "delete"
      ? new ProviderError("BAD_CREDENTIAL", "who are you", { outcome: "NOT_APPLIED" })
      : undefined;
  world.api.editSpec({ endpoint: places.b.endpoint });
  await scenario.settle();
  await scenario.provisioned();
  assert.equal(scenario.brief("Ready"), "True ProviderReady");
  for (let count = 0; count < 10; count++) await scenario.later(20_000);
  assert.equal(scenario.calls("delete"), 1, "what a person must mend is tried slowly");
  world.faultOf = () => undefined;
  await scenario.untilDue();
  assert.equal(scenario.object.record.length, 1);
  assert.equal(scenario.brief("CleanupPending"), "False Clean");
});
