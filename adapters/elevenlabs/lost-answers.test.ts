/** Answers that are lost, lists that lag or shift, callers at once: never two agents of one key. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";

import { Change, RemovalState } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { failure } from "../../services/adapter-host/test-host.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { makeStamp } from "../../services/adapter-host/stamp.ts";
import { tagsWith } from "./stamp-tags.ts";
import { Bench, target } from "./test-bench.ts";

const where = { target: target() };
const plain = { ...where, spec: {} };
const createPath = "^/v1/convai/agents/create$";
const listPath = "^/v1/convai/agents$";

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.start();
});
afterEach(() => bench.stop());

/** How many agents the vendor has ever made for callers of its API. */
async function createCount(): Promise<number> {
  return (await bench.requests()).filter(({ change }) => change === "created").length;
}

describe("a create whose answer is lost", () => {
  for (const effect of [
    { kind: "reset" },
    { kind: "cut" },
    { kind: "answer", status: 502, text: "<html>" },
    { kind: "error", name: "internal_error" },
  ]) {
    it(`after it was committed (${Object.values(effect).join(" ")}) makes exactly one agent`, async () => {
      await bench.script({ do: "fault", path: createPath, isAfter: true, effect });
      const error = await failure(bench.ask.ensure(plain));
      assert.equal(error.facts.outcome, "UNKNOWN");
      const found = await bench.ask.ensure(plain);
      assert.equal(found.change, Change.NONE);
      assert.equal((await bench.onlyAgent()).id, found.instance?.providerId);
      assert.equal(await createCount(), 1);
    });
  }

  it("is not made again while lists lag, not even by a restarted adapter", async () => {
    await bench.script(
      { do: "set", settings: { listLagMs: 60_000 } },
      { do: "fault", path: createPath, isAfter: true, effect: { kind: "reset" } },
    );
    assert.equal((await failure(bench.ask.ensure(plain))).facts.outcome, "UNKNOWN");
    assert.equal((await failure(bench.ask.ensure(plain))).reason, "IN_DOUBT");
    const restarted = await bench.restarted();
    const doubtful = await failure(restarted.ensure({ ...plain, mayCreate: false }));
    assert.equal(doubtful.reason, "IN_DOUBT");
    assert.equal((await failure(bench.ask.delete(where))).reason, "IN_DOUBT");
    await bench.script({ do: "advance", ms: 60_001 });
    assert.equal((await bench.ask.ensure(plain)).change, Change.NONE);
    assert.equal((await restarted.ensure(plain)).change, Change.NONE);
    assert.equal(await createCount(), 1);
    await bench.onlyAgent();
  });

  it("before it was committed is made again once the doubt is over", async () => {
    await bench.script({ do: "fault", path: createPath, effect: { kind: "reset" } });
    assert.equal((await failure(bench.ask.ensure(plain))).facts.outcome, "UNKNOWN");
    assert.equal((await failure(bench.ask.ensure(plain))).reason, "IN_DOUBT");
    // The doubt is one process's memory; the controller keeps its own across a restart.
    const restarted = await bench.restarted();
    assert.equal((await restarted.ensure(plain)).change, Change.CREATED);
    await bench.onlyAgent();
  });
});

describe("other lost answers", () => {
  it("of a change: the next Ensure finds it made", async () => {
    await bench.ask.ensure(plain);
    const spec = { displayName: "changed" };
    await bench.script({ do: "fault", method: "PATCH", isAfter: true, effect: { kind: "reset" } });
    const error = await failure(bench.ask.ensure({ ...where, spec }));
    assert.equal(error.facts.outcome, "UNKNOWN");
    assert.equal(error.facts.providerId, (await bench.onlyAgent()).id);
    assert.equal((await bench.ask.ensure({ ...where, spec })).change, Change.NONE);
    assert.equal((await bench.onlyAgent()).name, "changed");
  });

  it("of a delete: the next one is told that it is gone", async () => {
    await bench.ask.ensure(plain);
    await bench.script({ do: "fault", method: "DELETE", isAfter: true, effect: { kind: "reset" } });
    assert.equal((await failure(bench.ask.delete(where))).facts.outcome, "UNKNOWN");
    const restarted = await bench.restarted();
    assert.equal((await failure(restarted.delete(where))).reason, "NOT_FOUND");
    assert.deepEqual(await bench.agents(), []);
  });

  it("of the read after a create: the agent stands, and the error names it", async () => {
    const path = "^/v1/convai/agents/agent_";
    await bench.script({ do: "fault", method: "GET", path, effect: { kind: "reset" } });
    const error = await failure(bench.ask.ensure(plain));
    assert.equal(error.facts.outcome, "APPLIED");
    assert.equal(error.facts.providerId, (await bench.onlyAgent()).id);
    assert.equal((await bench.ask.ensure(plain)).change, Change.NONE);
    assert.equal(await createCount(), 1);
  });
});

describe("lists", () => {
  it("that still show what is gone do not bring it back", async () => {
    const { instance } = await bench.ask.ensure(plain);
    await bench.script(
      { do: "set", settings: { listLagMs: 60_000 } },
      { do: "advance", ms: 60_001 },
    );
    assert.equal((await bench.ask.delete(where)).state, RemovalState.DELETED);
    const recorded = { providerId: instance?.providerId ?? "", realm: instance?.realm ?? "" };
    assert.equal((await failure(bench.ask.describe({ ...where, recorded }))).reason, "NOT_FOUND");
    assert.equal((await failure(bench.ask.describe(where))).reason, "NOT_FOUND");
  });

  for (const cursor of ["offset", "keyset"]) {
    it(`that shift while they are read hide nothing (${cursor} cursors)`, async () => {
      await bench.script({ do: "set", settings: { cursor, pageSizeMax: 10 } });
      const strangers = await bench.script({ do: "create-agent", count: 20, fields: {} });
      await bench.script({ do: "advance", ms: 5_000 });
      const { instance } = await bench.ask.ensure(plain);
      await bench.script({ do: "advance", ms: 5_000 }, { do: "create-agent", count: 5 });
      // Before the third page is read one agent of the first goes: ours moves to the second.
      const gone = { do: "delete-agent", agentId: strangers[0] };
      await bench.script({ do: "fault", path: listPath, skip: 2, console: [gone] });
      const again = await (await bench.restarted()).ensure(plain);
      assert.equal(again.change, Change.NONE);
      assert.equal(again.instance?.providerId, instance?.providerId);
      assert.equal(await createCount(), 1);
    });
  }

  it("that never settle prove nothing: nobody creates", async () => {
    await bench.script({ do: "set", settings: { pageSizeMax: 5 } });
    const stir = [{ do: "create-agent", fields: { name: "a stranger's" } }];
    await bench.script({ do: "fault", path: listPath, times: 1_000, console: stir });
    const error = await failure(bench.ask.ensure(plain));
    assert.equal(error.reason, "IN_DOUBT");
    assert.equal(error.facts.outcome, "NOT_APPLIED");
    assert.equal(await createCount(), 0);
  });

  it("in which an agent is archived or renamed by hand still lead to it", async () => {
    await bench.ask.ensure({ ...where, spec: { displayName: "a" } });
    const { id } = await bench.onlyAgent();
    const fields = { name: "renamed", platform_settings: { archived: true } };
    await bench.script({ do: "edit-agent", agentId: id, fields });
    const again = await (await bench.restarted()).ensure({ ...where, spec: { displayName: "a" } });
    assert.equal(again.change, Change.UPDATED);
    assert.equal(again.instance?.providerId, id);
    assert.equal((await bench.onlyAgent()).name, "a");
  });

  it("in which a copy of an agent carries our tags lead to the older one; the copy stays", async () => {
    await bench.ask.ensure(plain);
    const { id, tags } = await bench.onlyAgent();
    await bench.script({ do: "advance", ms: 5_000 });
    const [copy] = await bench.script({ do: "create-agent", fields: { name: "copy", tags } });
    const again = await (await bench.restarted()).ensure(plain);
    assert.equal(again.instance?.providerId, id);
    assert.deepEqual(new Set((await bench.agents()).map((agent) => agent.id)), new Set([id, copy]));
  });
});

describe("callers at once", () => {
  it("twenty of one adapter make one agent", async () => {
    const all = await Promise.allSettled(Array.from({ length: 20 }, () => bench.ask.ensure(plain)));
    for (const result of all) {
      if (result.status === "fulfilled") continue;
      assert.ok(result.reason instanceof ProviderError);
      assert.equal(result.reason.reason, "BUSY");
    }
    await bench.onlyAgent();
  });

  it("of two clusters end with the older agent, and the one that came later is told", async () => {
    const other = makeStamp("fleet/ns/name", { cluster: "cluster-b", uid: "uid-9" }, "");
    // While our create is on its way, the other cluster's is committed.
    const theirs = { do: "create-agent", fields: { tags: tagsWith(other, [], "full") } };
    const console = [theirs, { do: "advance", ms: 2_000 }];
    await bench.script({ do: "fault", path: createPath, console });
    const error = await failure(bench.ask.ensure(plain));
    assert.equal(error.reason, "OWNED_BY_ANOTHER");
    assert.equal(error.facts.outcome, "NOT_APPLIED");
    assert.ok((await bench.onlyAgent()).tags.includes(other.short));
    assert.equal(await createCount(), 1);
  });
});
