/** Agents through the host's handlers, against the emulator over HTTPS. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";

import { Availability, Billing, State } from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { Change, RemovalState } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { failure } from "../../services/adapter-host/test-host.ts";
import { Bench, target } from "./test-bench.ts";

let bench: Bench;
const where = { target: target() };
const plain = { ...where, spec: {} };
const owner = { cluster: "cluster-a", uid: "uid-1" };
const spec = {
  displayName: "晚间主播",
  parameters: {
    firstMessage: "你好",
    prompt: "You sell tea.\nBe brief.",
    llm: "gemini-2.5-flash",
    language: "zh",
    voiceId: "EXAVITQu4vr4xnSDxMaL",
    voiceModel: "eleven_flash_v2_5",
    maxDurationSeconds: "900",
  },
  quota: { maxConcurrency: 3n, dailyCalls: 0n },
};

before(async () => {
  bench = await Bench.start();
});
after(() => bench.stop());
beforeEach(async () => {
  const agents = await bench.agents();
  await bench.script(
    { do: "clear-faults" },
    { do: "set", settings: { patch: "deep", texts: "kept", tags: "kept", tagCharactersMax: 0 } },
    ...agents.map(({ id }) => ({ do: "delete-agent", agentId: id })),
  );
});

describe("an agent", () => {
  it("is created once with all that is wanted, and shown as it is", async () => {
    const made = await bench.ask.ensure({ ...where, spec, specHash: "h1" });
    assert.equal(made.change, Change.CREATED);
    const agent = await bench.onlyAgent();
    assert.equal(made.instance?.providerId, agent.id);
    assert.equal(agent.name, "晚间主播");
    const { conversation_config, platform_settings } = agent;
    assert.deepEqual(Reflect.get(conversation_config, "agent"), {
      first_message: "你好",
      language: "zh",
      prompt: {
        prompt: "You sell tea.\nBe brief.",
        llm: "gemini-2.5-flash",
        temperature: 0,
        max_tokens: -1,
      },
    });
    assert.deepEqual(Reflect.get(platform_settings, "call_limits"), {
      agent_concurrency_limit: 3,
      daily_limit: 0,
      bursting_enabled: true,
    });
    const shown = await bench.ask.describe({ ...where, spec });
    assert.deepEqual(shown.instance?.drift, []);
    assert.equal(shown.instance?.state, State.READY);
    assert.equal(shown.instance?.health?.availability, Availability.AVAILABLE);
    assert.equal(shown.instance?.instanceKey, "fleet/ns/name");
    assert.equal(shown.instance?.owner?.uid, "uid-1");
    assert.equal(shown.instance?.specHash, "h1");
    assert.equal(shown.instance?.usage?.credits?.remaining, 498_800n);
    assert.equal(shown.instance?.usage?.concurrency?.limit, 3n);
  });

  it("that is as wanted is left alone ten times; what the vendor filled in is no drift", async () => {
    const few = { parameters: { firstMessage: "hello" } };
    const { instance } = await bench.ask.ensure({ ...where, spec: few, specHash: "h1" });
    const mutations = await bench.mutationCount();
    const recorded = { providerId: instance?.providerId ?? "", realm: instance?.realm ?? "" };
    for (let i = 0; i < 10; i += 1) {
      const again = await bench.ask.ensure({ ...where, spec: few, specHash: "h1", recorded });
      assert.equal(again.change, Change.NONE);
    }
    assert.equal(await bench.mutationCount(), mutations);
  });

  it("whose values the vendor writes in its own way has not drifted", async () => {
    await bench.script({ do: "set", settings: { texts: "trimmed", tags: "lower-case" } });
    await bench.ask.ensure({ ...where, spec, specHash: "h1" });
    const { id } = await bench.onlyAgent();
    const fields = {
      conversation_config: { conversation: { max_duration_seconds: 900.0 } },
      tags: ["zebra", ...(await bench.onlyAgent()).tags].toReversed(),
    };
    await bench.script({ do: "edit-agent", agentId: id, fields });
    assert.deepEqual((await bench.ask.describe({ ...where, spec })).instance?.drift, []);
    assert.equal((await bench.ask.ensure({ ...where, spec, specHash: "h1" })).change, Change.NONE);
  });

  for (const patch of ["deep", "shallow"]) {
    it(`that is changed keeps its id and all wanted values (PATCH is ${patch})`, async () => {
      await bench.script({ do: "set", settings: { patch } });
      const made = await bench.ask.ensure({ ...where, spec, specHash: "h1" });
      const changed = { ...spec, parameters: { ...spec.parameters, firstMessage: "早上好" } };
      const updated = await bench.ask.ensure({ ...where, spec: changed, specHash: "h2" });
      assert.equal(updated.change, Change.UPDATED);
      assert.equal(updated.instance?.providerId, made.instance?.providerId);
      assert.equal(updated.instance?.specHash, "h2");
      assert.deepEqual(updated.instance?.drift, []);
      const settled = await bench.ask.ensure({ ...where, spec: changed, specHash: "h2" });
      assert.equal(settled.change, Change.NONE);
    });
  }

  it("that is edited at the console is seen to have drifted, and put right", async () => {
    await bench.ask.ensure({ ...where, spec, specHash: "h1" });
    const { id } = await bench.onlyAgent();
    const fields = {
      name: "renamed",
      conversation_config: { agent: { language: "en" }, tts: { stability: 0.9 } },
      platform_settings: { archived: true, call_limits: { agent_concurrency_limit: -1 } },
    };
    await bench.script({ do: "edit-agent", agentId: id, fields });
    const drifted = await bench.ask.describe({ ...where, spec });
    assert.deepEqual(
      drifted.instance?.drift.map(({ field, want, have }) => [field, want, have]),
      [
        ["displayName", "晚间主播", "renamed"],
        ["parameters.archived", "false", "true"],
        ["parameters.language", "zh", "en"],
        ["quota.maxConcurrency", "3", undefined],
      ],
    );
    assert.equal(drifted.instance?.health?.availability, Availability.UNAVAILABLE);
    const put = await bench.ask.ensure({ ...where, spec, specHash: "h1", mayCreate: false });
    assert.equal(put.change, Change.UPDATED);
    assert.deepEqual(put.instance?.drift, []);
    const { conversation_config } = await bench.onlyAgent();
    // What nobody asked for stays as it was set by hand.
    assert.equal(Reflect.get(Object(conversation_config["tts"]), "stability"), 0.9);
  });

  it("that is deleted at the console is made anew under a new id", async () => {
    const { instance } = await bench.ask.ensure(plain);
    const providerId = instance?.providerId ?? "";
    await bench.script({ do: "delete-agent", agentId: providerId });
    const recorded = { providerId, realm: instance?.realm ?? "" };
    assert.equal((await failure(bench.ask.describe({ ...where, recorded }))).reason, "NOT_FOUND");
    const again = await (await bench.restarted()).ensure({ ...where, spec: {}, recorded });
    assert.equal(again.change, Change.CREATED);
    assert.notEqual(again.instance?.providerId, providerId);
    await bench.onlyAgent();
  });

  for (const deleteStatus of [200, 204]) {
    it(`is deleted (${deleteStatus}), and NOT_FOUND the second time`, async () => {
      await bench.script({ do: "set", settings: { deleteStatus } });
      await bench.ask.ensure({ ...where, spec });
      assert.equal((await bench.ask.delete(where)).state, RemovalState.DELETED);
      assert.deepEqual(await bench.agents(), []);
      assert.equal((await failure(bench.ask.delete(where))).reason, "NOT_FOUND");
    });
  }

  it("of a predecessor is restamped and not otherwise touched; other people's tags stay", async () => {
    await bench.ask.ensure({ ...where, spec, owner: { ...owner, uid: "uid-0" } });
    const before = await bench.onlyAgent();
    const fields = { tags: ["team tea", ...before.tags] };
    await bench.script({ do: "edit-agent", agentId: before.id, fields });
    const again = await bench.ask.ensure({ ...where, spec, owner, mayCreate: false });
    assert.equal(again.change, Change.RESTAMPED);
    assert.equal(again.instance?.owner?.uid, "uid-1");
    const after = await bench.onlyAgent();
    assert.ok(after.tags.includes("team tea"));
    assert.deepEqual(after.conversation_config, before.conversation_config);
  });

  it("without a stamp is adopted by its id, one of another owner only when that is named", async () => {
    const [providerId = ""] = await bench.script({ do: "create-agent", fields: { name: "old" } });
    const adopt = { providerId };
    const adopted = await bench.ask.ensure({ ...where, adopt, spec: { displayName: "new" } });
    assert.equal(adopted.change, Change.ADOPTED);
    assert.equal((await bench.onlyAgent()).name, "new");
    const other = { owner: { cluster: "cluster-b", uid: "uid-9" }, instanceKey: "fleet/b/name" };
    const refused = await failure(bench.ask.ensure({ ...where, ...other, adopt, spec: {} }));
    assert.equal(refused.reason, "OWNED_BY_ANOTHER");
    const takeOverFrom = owner;
    const taking = { ...where, ...other, adopt: { providerId, takeOverFrom }, spec: {} };
    assert.equal((await bench.ask.ensure(taking)).change, Change.ADOPTED);
    const wrong = { ...where, instanceKey: "fleet/c/name", adopt: { providerId: "../../user" } };
    assert.equal((await failure(bench.ask.ensure({ ...wrong, spec: {} }))).reason, "INVALID_FIELD");
  });

  it("is released with the tags of others and without ours", async () => {
    await bench.ask.ensure({ ...where, spec });
    const { id, tags } = await bench.onlyAgent();
    await bench.script({ do: "edit-agent", agentId: id, fields: { tags: ["mine", ...tags] } });
    assert.equal((await bench.ask.release(where)).state, RemovalState.DELETED);
    assert.deepEqual((await bench.onlyAgent()).tags, ["mine"]);
    assert.equal((await failure(bench.ask.describe(where))).reason, "NOT_FOUND");
  });

  it("is listed among ours, archived or not, over pages of any size", async () => {
    await bench.script({ do: "set", settings: { pageSizeMax: 2 } });
    await bench.script({ do: "create-agent", count: 5, fields: { name: "a stranger's" } });
    const keys = Array.from({ length: 5 }, (_, i) => `fleet/list/name-${i}`);
    for (const instanceKey of keys) {
      const archived = String(instanceKey.endsWith("3"));
      await bench.ask.ensure({ ...where, instanceKey, spec: { parameters: { archived } } });
    }
    const found: string[] = [];
    let pageToken = "";
    for (let pages = 0; pages < 20; pages += 1) {
      const ownerCluster = owner.cluster;
      const page = await bench.ask.list({ ...where, ownerCluster, pageSize: 2, pageToken });
      found.push(...page.instances.map(({ instanceKey }) => instanceKey));
      pageToken = page.nextPageToken;
      if (pageToken === "") break;
    }
    assert.deepEqual(found.sort(), keys);
    assert.deepEqual((await bench.ask.list({ ...where, ownerCluster: "none" })).instances, []);
    await bench.script({ do: "set", settings: { pageSizeMax: 100 } });
  });

  for (const tagCharactersMax of [0, 48]) {
    it(`is found by the longest key (tags of ${tagCharactersMax || "any"} characters)`, async () => {
      await bench.script({ do: "set", settings: { tagCharactersMax } });
      const instanceKey = `${"f".repeat(63)}/${"n".repeat(63)}/${"k".repeat(253)}`;
      const long = {
        ...where,
        instanceKey,
        owner: { cluster: "c".repeat(253), uid: "9f0c3d52-7d0e-4c43-8c0f-6a3e0c1d2b4a" },
      };
      const hash = { specHash: "a".repeat(64), spec };
      assert.equal((await bench.ask.ensure({ ...long, ...hash })).change, Change.CREATED);
      const again = await (await bench.restarted()).ensure({ ...long, ...hash });
      assert.equal(again.change, Change.NONE);
      assert.equal(again.instance?.instanceKey, instanceKey);
      assert.deepEqual(again.instance?.owner, { ...again.instance?.owner, ...long.owner });
      const changed = { ...long, specHash: "b".repeat(64), spec: { displayName: "changed" } };
      assert.equal((await bench.ask.ensure(changed)).change, Change.UPDATED);
      const [listed] = (await bench.ask.list(where)).instances;
      assert.equal(listed?.stamp, again.instance?.stamp);
      assert.equal(listed?.instanceKey, tagCharactersMax === 0 ? instanceKey : "");
      const other = { ...long, spec: {}, owner: { cluster: "d", uid: "u" } };
      assert.equal((await failure(bench.ask.ensure(other))).reason, "OWNED_BY_ANOTHER");
      assert.equal((await bench.ask.delete(long)).state, RemovalState.DELETED);
    });
  }
});

describe("the account's state", () => {
  const rows = [
    ["active, nothing open", {}, "CURRENT"],
    ["past due", { status: "past_due" }, "OVERDUE"],
    ["an invoice open", { open_invoices: [{ amount_due_cents: 1 }] }, "OVERDUE"],
    ["credits used up", { character_count: 500_000 }, "EXHAUSTED"],
    [
      "credits used up, more are sold",
      { character_count: 500_000, max_credit_limit_extension: "unlimited" },
      "CURRENT",
    ],
    ["a status nobody knows", { status: "something new" }, "UNSPECIFIED"],
  ] as const;
  for (const [words, fields, name] of rows) {
    it(`${words}: billing of each agent is ${name}`, async () => {
      const fresh = { status: "active", open_invoices: [], character_count: 1_200 };
      await bench.script({
        do: "subscription",
        fields: { ...fresh, max_credit_limit_extension: 0, ...fields },
      });
      const billing = Billing[name];
      await bench.ask.ensure(plain);
      assert.equal((await bench.ask.describe(where)).instance?.health?.billing, billing);
      const listed = await bench.ask.list(where);
      assert.deepEqual(
        listed.instances.map(({ health }) => health?.billing),
        [billing],
      );
    });
  }

  it("that is not to be had hides itself and nothing else", async () => {
    await bench.ask.ensure(plain);
    for (const [name, billing] of [
      ["missing_permissions", Billing.UNSPECIFIED],
      ["internal_error", Billing.UNSPECIFIED],
      ["quota_exceeded", Billing.EXHAUSTED],
      ["payment_required", Billing.OVERDUE],
    ] as const) {
      const path = "^/v1/user/subscription$";
      await bench.script({ do: "fault", path, effect: { kind: "error", name } });
      const { instance } = await bench.ask.describe(where);
      assert.equal(instance?.health?.availability, Availability.AVAILABLE);
      assert.equal(instance?.health?.billing, billing);
      assert.notEqual(instance?.health?.message, "");
    }
  });
});
