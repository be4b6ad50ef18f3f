/**
 * What happens at a vendor is seen in conditions without anybody asking: the health stream's whole
 * way, over real processes. The promise is ten seconds; the waits here are longer, because machines
 * that run tests are slow, and `npm run load:health` measures.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import type { AgentRecord } from "../../adapters/elevenlabs/emulator/world.ts";
import { httpGet } from "../support/http-get.ts";
import { applyDhp, condition, dhp, patchDhp, readDhp, untilReady } from "../support/providers.ts";
import type { Dhp } from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

const seenWithinMs = 30_000;
/** Faster than usual, so that looks can be waited for. */
const sweep = "--sweep-interval=1s";
const speech = { endpoint: elevenLabsEndpoint, region: "global" };
/** Times in status are whole seconds, rounded up. */
const clockToleranceMs = 1_100;
const agentList = "^/v1/convai/agents$";

let stack: Stack;

before(async () => {
  stack = await startStack({
    withElevenLabs: { adapterFlags: ["--read-timeout=1s", "--circuit-open=500ms", sweep] },
    adapterFlags: [sweep],
    controllerFlags: ["--back-off-max", "1s", "--reprobe", "2s"],
  });
  const { cluster } = stack;
  await applyDhp(cluster, dhp("room"));
  await applyDhp(cluster, dhp("agent", { ...speech, displayName: "evening show" }));
  await applyDhp(cluster, dhp("watched", { ...speech, driftPolicy: "Observe" }));
  await Promise.all(["room", "agent", "watched"].map((name) => untilReady(cluster, name)));
});
after(() => stack.stop());

/** Waits until the object's condition reads "status reason". */
function until(name: string, type: string, expected: string): Promise<Dhp> {
  return eventually(async () => {
    const object = await readDhp(stack.cluster, name);
    const { status, reason, message } = condition(object, type);
    assert.equal(`${status} ${reason}`, expected, message);
    return object;
  }, seenWithinMs);
}

async function agentOf(name: string): Promise<AgentRecord> {
  const [agent, ...others] = await stack.elevenLabs.agentsOf(name);
  assert.ok(agent !== undefined && others.length === 0, `${name} has not exactly one agent`);
  return agent;
}

async function subscription(fields: object): Promise<void> {
  await stack.elevenLabs.script({ do: "subscription", workspace: "global", fields });
}

/** Resolves after so many more looks at the vendor's list. */
async function looks(count: number): Promise<void> {
  const lists = async (): Promise<number> =>
    (await stack.elevenLabs.requests()).filter(({ path }) => path === "/v1/convai/agents").length;
  const before = await lists();
  await eventually(async () => assert.ok((await lists()) >= before + 2 * count), 60_000);
}

test("nothing happens at the vendor: nothing is written, however often it is looked at", async () => {
  const versions = async (): Promise<readonly string[]> =>
    Promise.all(
      ["room", "agent", "watched"].map(
        async (name) => (await readDhp(stack.cluster, name)).metadata.resourceVersion,
      ),
    );
  await looks(2);
  const before = await versions();
  await looks(3);
  assert.deepEqual(await versions(), before);
});

test("an overdue invoice shows, and its payment", async () => {
  await subscription({ status: "past_due" });
  await until("agent", "BillingOverdue", "True Overdue");
  await until("agent", "Ready", "True ProviderReady");
  await subscription({ status: "active" });
  await until("agent", "BillingOverdue", "False Current");
});

test("credits that are gone show, with what is used in status.usage", async () => {
  const limit = 500_000;
  await subscription({ character_count: limit, can_extend_character_limit: false });
  const object = await until("agent", "BillingOverdue", "True Exhausted");
  await until("agent", "QuotaExceeded", "True UsedUp");
  assert.match(JSON.stringify(object.status), /"remaining":0/);
  await eventually(async () => {
    const { text } = await httpGet(stack.controller.ports.adminPort, "/metrics");
    assert.match(text, /dhp_quota_used_ratio\{class="elevenlabs",quota="credits"\} 1\n/);
  });
  await subscription({ character_count: 1_200, can_extend_character_limit: true });
  await until("agent", "QuotaExceeded", "False WithinQuota");
});

test("near a quota the object advises a person, and nothing is created that nobody declared", async () => {
  await stack.applyElevenLabsClass("elevenlabs-near", { scaleOutAtPercent: 80 });
  await applyDhp(stack.cluster, dhp("near", { ...speech, className: "elevenlabs-near" }));
  await untilReady(stack.cluster, "near");
  await until("near", "ScaleOutAdvised", "False BelowThreshold");
  const declared = await declaredNames();
  const agents = (await stack.elevenLabs.agents()).length;
  await subscription({ character_count: 450_000 });
  const advised = await until("near", "ScaleOutAdvised", "True NearLimit");
  const { message } = condition(advised, "ScaleOutAdvised");
  assert.match(message, /450000 of 500000 credits used/);
  assert.match(message, /apply a further DigitalHumanProvider/);
  await looks(3);
  assert.deepEqual(await declaredNames(), declared);
  assert.equal((await stack.elevenLabs.agents()).length, agents);
  await subscription({ character_count: 1_200 });
  await until("near", "ScaleOutAdvised", "False BelowThreshold");
});

async function declaredNames(): Promise<string> {
  return expectDone(await stack.cluster.kubectl(["get", "dhp,dhpclass", "-A", "-o", "name"]));
}

test("a vendor that throttles the looks is said to, and those who wait lose nothing", async () => {
  const headers = { "retry-after": "2" };
  const effect = { kind: "error", name: "too_many_concurrent_requests", headers };
  await stack.elevenLabs.script({ do: "fault", path: agentList, times: 2, effect });
  await until("agent", "RateLimited", "True Throttled");
  await until("agent", "RateLimited", "False NotLimited");
  await until("agent", "Ready", "True ProviderReady");
});

test("a wait that the vendor asked for is kept by an adapter that has just started, too", async () => {
  const { elevenLabs } = stack;
  const headers = { "retry-after": "12" };
  const effect = { kind: "error", name: "too_many_concurrent_requests", headers };
  await elevenLabs.script({ do: "fault", path: agentList, times: 1, effect });
  const limited = await until("agent", "RateLimited", "True Throttled");
  const untilMs = Date.parse(limited.status?.rateLimitedUntil ?? "");
  assert.ok(untilMs > Date.now() + 5_000, limited.status?.rateLimitedUntil);
  const { grpcPort } = elevenLabs.adapter.ports;
  await elevenLabs.adapter.kill();
  const last = (await elevenLabs.requests()).at(-1)?.sequence ?? 0;
  await elevenLabs.startAdapter(grpcPort);
  await until("agent", "RateLimited", "False NotLimited");
  assert.ok(Date.now() >= untilMs, "not before its time");
  const asked = (await elevenLabs.requests()).filter(({ sequence }) => sequence > last);
  assert.ok(asked.length > 0);
  const early = asked.filter(({ atMs }) => atMs < untilMs - clockToleranceMs);
  assert.deepEqual(early, []);
  await until("agent", "Ready", "True ProviderReady");
});

test("an instance that is out of use at the vendor is unavailable, and works again when it is back", async () => {
  const { id } = await agentOf("watched");
  const archive = (archived: boolean): Promise<readonly string[]> =>
    stack.elevenLabs.script({
      do: "edit-agent",
      agentId: id,
      fields: { platform_settings: { archived } },
    });
  await archive(true);
  await until("watched", "Available", "False Unavailable");
  await until("watched", "Ready", "False Unavailable");
  await until("watched", "Drifted", "True Observe");
  await archive(false);
  await until("watched", "Ready", "True ProviderReady");
});

test("a rename at the vendor's console is put back once, or shown where drift is observed", async () => {
  const agent = await agentOf("agent");
  const rename = { do: "edit-agent", agentId: agent.id, fields: { name: "somebody's show" } };
  await stack.elevenLabs.script(rename);
  await eventually(
    async () => assert.equal((await agentOf("agent")).name, agent.name),
    seenWithinMs,
  );
  const requests = await stack.elevenLabs.requests();
  const updates = requests.filter(
    ({ change, agentId, userId }) => change === "updated" && agentId === agent.id && userId !== "",
  );
  assert.equal(updates.length, 1);
  await until("agent", "Drifted", "False AsSpecified");
});

test("an instance removed by hand is made again exactly once, and an event says so", async () => {
  const { id } = await agentOf("agent");
  await stack.elevenLabs.script({ do: "delete-agent", agentId: id });
  const again = await eventually(async () => {
    const agent = await agentOf("agent");
    assert.notEqual(agent.id, id);
    return agent;
  }, 60_000);
  await untilReady(stack.cluster, "agent");
  await looks(2);
  assert.equal((await agentOf("agent")).id, again.id);
  const events = await stack.cluster.kubectl(["get", "events", "-o", "json"]);
  assert.match(events.stdout, /Recreated/);
});

test("a vendor that goes silent is old knowledge within the bound; the other vendor's stays", async () => {
  await stack.elevenLabs.script({ do: "fault", times: 10_000, effect: { kind: "hang" } });
  await until("agent", "Available", "Unknown HealthStale");
  await until("agent", "Ready", "Unknown HealthStale");
  assert.equal(condition(await readDhp(stack.cluster, "room"), "Ready").status, "True");
  await stack.elevenLabs.script({ do: "clear-faults" });
  await until("agent", "Ready", "True ProviderReady");
});

test("a dead adapter makes its objects Unknown, and they come back with it", async () => {
  const { grpcPort } = stack.adapter.ports;
  await stack.adapter.kill();
  await until("room", "Available", "Unknown AdapterUnreachable");
  const object = await until("room", "Ready", "Unknown AdapterUnreachable");
  assert.equal(condition(object, "Ready").observedGeneration, object.metadata.generation);
  await stack.startAdapter(grpcPort);
  await until("room", "Ready", "True ProviderReady");
});

test("the health of a suspended object flows", async () => {
  await patchDhp(stack.cluster, "agent", { spec: { suspend: true } });
  await until("agent", "Ready", "True Suspended");
  await subscription({ status: "past_due" });
  await until("agent", "BillingOverdue", "True Overdue");
  await subscription({ status: "active" });
  await until("agent", "BillingOverdue", "False Current");
  await patchDhp(stack.cluster, "agent", { spec: { suspend: false } });
  await until("agent", "Ready", "True ProviderReady");
});
