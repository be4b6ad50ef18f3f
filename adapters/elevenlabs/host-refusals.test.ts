/** What the host refuses around this vendor: owners, time, doubt, realm, values, open circuits. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";

import { failure } from "../../services/adapter-host/test-host.ts";
import type { Code, ProviderError, Reason } from "../../services/contract/provider-error.ts";
import { Bench, target } from "./test-bench.ts";

const owner = { cluster: "cluster-a", uid: "uid-1" };
const where = { target: target() };

let bench: Bench;
let key = "";
let keyCount = 0;

before(async () => {
  bench = await Bench.start();
});
after(() => bench.stop());
beforeEach(() => {
  keyCount += 1;
  key = `fleet/ns/name-${keyCount}`;
});

function assertRefusal(error: ProviderError, reason: Reason, code: Code): void {
  assert.equal(error.reason, reason, error.message);
  assert.equal(error.code, code);
  assert.equal(error.facts.outcome, "NOT_APPLIED");
}

describe("with this vendor the host says", () => {
  it("OWNED_BY_ANOTHER and NOT_OURS of another cluster's agent, and touches nothing", async () => {
    const asked = { ...where, instanceKey: key };
    await bench.ask.ensure({ ...asked, spec: {}, owner: { cluster: "cluster-b", uid: "uid-9" } });
    const mutations = await bench.mutationCount();
    const refused = await failure(bench.ask.ensure({ ...asked, spec: {}, owner }));
    assertRefusal(refused, "OWNED_BY_ANOTHER", "ALREADY_EXISTS");
    assert.equal(refused.facts.owner, "cluster-b");
    const kept = await failure(bench.ask.delete({ ...asked, owner }));
    assertRefusal(kept, "NOT_OURS", "NOT_FOUND");
    assert.equal(kept.facts.owner, "cluster-b");
    assert.equal(await bench.mutationCount(), mutations);
  });

  it("TOO_LATE, IN_DOUBT and WRONG_REALM before anything is changed", async () => {
    const asked = { ...where, instanceKey: key };
    const mutations = await bench.mutationCount();
    const notAfter = { seconds: 1n, nanos: 0 };
    const late = await failure(bench.ask.ensure({ ...asked, spec: {}, notAfter }));
    assertRefusal(late, "TOO_LATE", "ABORTED");
    const doubt = await failure(bench.ask.ensure({ ...asked, spec: {}, mayCreate: false }));
    assertRefusal(doubt, "IN_DOUBT", "ABORTED");
    assert.ok((doubt.facts.retryAfterMs ?? 0) > 0);
    const recorded = { providerId: "", realm: "elevenlabs:global/somebody" };
    const elsewhere = await failure(bench.ask.delete({ ...asked, recorded }));
    assertRefusal(elsewhere, "WRONG_REALM", "FAILED_PRECONDITION");
    assert.equal(elsewhere.facts.realm, "elevenlabs:global/user-1");
    assert.equal(elsewhere.facts.preconditions?.[0]?.type, "REALM");
    assert.equal(await bench.mutationCount(), mutations);
  });

  it("INVALID_FIELD of what can be set nowhere, before anything is sent", async () => {
    const mutations = await bench.mutationCount();
    for (const [spec, path] of [
      [{ displayName: " a" }, "displayName"],
      [{ quota: { monthlyCredits: 5n } }, "quota.monthlyCredits"],
      [{ parameters: { firstMessage: "a " } }, "parameters.firstMessage"],
      [{ parameters: { nope: "1" } }, "parameters.nope"],
    ] as const) {
      const error = await failure(bench.ask.ensure({ ...where, instanceKey: key, spec }));
      assertRefusal(error, "INVALID_FIELD", "INVALID_ARGUMENT");
      assert.deepEqual(
        error.facts.fields?.map((field) => field.path),
        [path],
      );
    }
    assert.equal(await bench.mutationCount(), mutations);
  });

  it("INVALID_FIELD of a region that the endpoint's host does not serve", async () => {
    const elsewhere = { target: target({ region: "eu" }), instanceKey: key };
    const error = await failure(bench.ask.describe(elsewhere));
    assertRefusal(error, "INVALID_FIELD", "INVALID_ARGUMENT");
    assert.equal(error.facts.fields?.[0]?.path, "region");
  });
});

describe("the circuit", () => {
  it("opens after failures of the vendor, refuses for a time, and knows reads from writes", async () => {
    const broken = await Bench.start({ breaker: { verdictCountMin: 3, openMs: 60_000 } });
    try {
      const effect = { kind: "error", name: "internal_error" };
      const path = "^/v1/convai/agents/create$";
      await broken.script({ do: "fault", path, times: 100, effect });
      for (let i = 0; i < 3; i += 1) {
        const asked = { ...where, instanceKey: `fleet/ns/open-${i}`, spec: {} };
        assert.equal((await failure(broken.ask.ensure(asked))).reason, "VENDOR_ERROR");
      }
      const mutations = await broken.mutationCount();
      const refused = await failure(broken.ask.ensure({ ...where, spec: {} }));
      assertRefusal(refused, "CIRCUIT_OPEN", "UNAVAILABLE");
      assert.ok((refused.facts.retryAfterMs ?? 0) > 0);
      assert.equal(await broken.mutationCount(), mutations);
      assert.deepEqual((await broken.ask.list(where)).instances, []);
    } finally {
      await broken.stop();
    }
  });

  it("stays closed whatever is wrong with key, plan or request", async () => {
    const sturdy = await Bench.start({ breaker: { verdictCountMin: 3, openMs: 60_000 } });
    try {
      for (const name of [
        "invalid_api_key",
        "missing_permissions",
        "quota_exceeded",
        "payment_required",
        "too_many_concurrent_requests",
        "system_busy",
        "max_character_limit_exceeded",
      ]) {
        const path = "^/v1/convai/agents/create$";
        await sturdy.script({ do: "fault", path, effect: { kind: "error", name } });
        const error = await failure(sturdy.ask.ensure({ ...where, spec: {} }));
        assert.notEqual(error.reason, "CIRCUIT_OPEN");
      }
      await sturdy.ask.ensure({ ...where, spec: {} });
      await sturdy.onlyAgent();
    } finally {
      await sturdy.stop();
    }
  });

  it("is not reached where there is no vendor: nothing was applied", async () => {
    const gone = await Bench.start();
    await gone.ask.list(where);
    await gone.emulator.stop();
    const error = await failure(gone.ask.ensure({ ...where, spec: {} }));
    assertRefusal(error, "VENDOR_UNREACHABLE", "UNAVAILABLE");
    await gone.stop();
  });
});
