import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";

import { Change, RemovalState } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { FakeClock } from "../process/fake-clock.ts";
import type { CallContext } from "../contract/provider-handlers.ts";
import { ProviderError } from "../contract/provider-error.ts";
import type { Adapter, AdapterInfo } from "./adapter.ts";
import { makeStamp } from "./stamp.ts";
import { eventually, failure, key, owner, testHost } from "./test-host.ts";
import type { TestHost } from "./test-host.ts";
import { html, reset, status, TestVendor, testAdapter, testInfo } from "./test-vendor.ts";

/** Moves only when a test says so: no time-out ends anything by accident. */
let clock: FakeClock;
let vendor: TestVendor;
let hosts: TestHost[] = [];

function hostWith(info: Partial<AdapterInfo> = {}, own: Partial<Adapter> = {}): TestHost {
  const made = testHost(vendor, testAdapter(info, own), { clock });
  hosts.push(made);
  return made;
}

function leaver(): { readonly call: CallContext; readonly leave: () => void } {
  const caller = new AbortController();
  return {
    call: { signal: caller.signal, deadlineAtMs: Infinity },
    leave: () => caller.abort(new Error("deadline")),
  };
}

beforeEach(async () => {
  clock = new FakeClock(Date.now());
  vendor = await TestVendor.start();
  hosts = [];
});
afterEach(async () => {
  vendor.releaseHeld();
  vendor.stop();
  for (const { close } of hosts) await close();
});

describe("twenty Ensures at once", () => {
  it("make one instance; who comes second is told BUSY with nothing applied", async () => {
    const { ask } = hostWith();
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => ask.ensure()));
    assert.equal(vendor.things.size, 1);
    assert.equal(vendor.mutationCount, 1);
    const failed = results.filter((result) => result.status === "rejected");
    for (const { reason } of failed) {
      assert.equal(reason.reason, "BUSY");
      assert.equal(reason.outcome, "NOT_APPLIED");
    }
    assert.ok(results.some((result) => result.status === "fulfilled"));
  });

  it("on twenty keys do not wait for one another", async () => {
    const { ask } = hostWith();
    const keys = Array.from({ length: 20 }, (_, i) => `fleet/ns/name-${i}`);
    await Promise.all(keys.map((instanceKey) => ask.ensure({ instanceKey })));
    assert.equal(vendor.things.size, 20);
  });
});

describe("the caller's deadline", () => {
  it("before the change is sent: nothing happened, the key is free", async () => {
    const { ask } = hostWith();
    const { call, leave } = leaver();
    vendor.faults.push({ method: "GET", when: "before", effect: vendor.hold });
    const asking = failure(ask.ensure({}, call));
    await eventually(() => vendor.heldCount === 1);
    leave();
    const error = await asking;
    assert.equal(error.reason, "VENDOR_TIMEOUT");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.equal((await ask.ensure()).change, Change.CREATED);
  });

  it("after it was sent: unknown, the key stays taken, and its result is the next one's", async () => {
    const { ask, host } = hostWith();
    const { call, leave } = leaver();
    vendor.faults.push({ method: "POST", when: "before", effect: vendor.hold });
    const asking = failure(ask.ensure({}, call));
    await eventually(() => vendor.heldCount === 1);
    leave();
    const error = await asking;
    assert.equal(error.outcome, "UNKNOWN");
    assert.equal((await failure(ask.ensure())).reason, "BUSY");
    assert.equal((await failure(ask.delete())).reason, "BUSY");
    const timers = clock.pendingTimerCount;
    const looking = ask.ensure({ validateOnly: true });
    // Reading the list waits for the change in flight, though not for long.
    await eventually(() => clock.pendingTimerCount > timers);
    await clock.advance(2_000);
    assert.equal((await looking).change, Change.NONE);
    // The vendor commits now, but its lists do not show it yet.
    vendor.newThing = { isUnlisted: true };
    vendor.releaseHeld();
    await host.idle(AbortSignal.timeout(5000));
    const { change, instance } = await ask.ensure();
    assert.equal(change, Change.NONE);
    assert.equal(vendor.things.size, 1);
    assert.ok(vendor.things.has(instance?.providerId ?? ""));
  });
});

function readsOf(id: string): number {
  return vendor.requests.filter((request) => request === `GET /things/${id}`).length;
}

interface Lost {
  readonly why: string;
  readonly when: "before" | "after";
  readonly effect: Parameters<TestVendor["faults"]["push"]>[0]["effect"];
  readonly reason: string;
}

const lost: readonly Lost[] = [
  { why: "a reset before it", when: "before", effect: reset, reason: "VENDOR_UNREACHABLE" },
  { why: "a reset after it", when: "after", effect: reset, reason: "VENDOR_UNREACHABLE" },
  { why: "a 500 before it", when: "before", effect: status(500), reason: "VENDOR_ERROR" },
  { why: "a 502 after it", when: "after", effect: status(502), reason: "VENDOR_ERROR" },
  { why: "HTML after it", when: "after", effect: html, reason: "VENDOR_UNREADABLE" },
  { why: "silence", when: "after", effect: () => undefined, reason: "VENDOR_TIMEOUT" },
];

describe("a create whose answer is lost leaves one instance at the end, after", () => {
  for (const { why, when, effect, reason } of lost) {
    it(why, async () => {
      const { ask } = hostWith();
      vendor.faults.push({ method: "POST", when, effect });
      const asking = failure(ask.ensure());
      await eventually(() => vendor.requests.includes("POST /things"));
      if (why === "silence") await clock.advance(testInfo.mutationDeadlineMs);
      const error = await asking;
      assert.equal(error.reason, reason);
      assert.equal(error.outcome, "UNKNOWN");
      if (when === "before") {
        // Nobody creates while the first may still come to be.
        const doubt = await failure(ask.ensure());
        assert.equal(doubt.reason, "IN_DOUBT");
        assert.equal(doubt.outcome, "NOT_APPLIED");
        assert.equal((await failure(ask.delete())).reason, "IN_DOUBT");
        await clock.advance(doubt.facts.retryAfterMs ?? 0);
      }
      const { change } = await ask.ensure();
      assert.equal(change, when === "before" ? Change.CREATED : Change.NONE);
      assert.equal(vendor.things.size, 1);
    });
  }
});

describe("a create whose answer was lost", () => {
  it("is in doubt no more once its instance was found and deleted", async () => {
    const { ask } = hostWith();
    vendor.faults.push({ method: "POST", when: "after", effect: reset });
    assert.equal((await failure(ask.ensure())).outcome, "UNKNOWN");
    assert.equal((await ask.delete()).state, RemovalState.DELETED);
    assert.equal((await failure(ask.delete())).reason, "NOT_FOUND");
  });
});

describe("a create that the vendor is slow to show", () => {
  it("is answered with its id, provisioning, and never made twice", async () => {
    const { ask } = hostWith({ visibilityLagMs: 300 });
    vendor.newThing = { isUnlisted: true, isInvisible: true };
    const asking = ask.ensure();
    // The look after the create, twice: at once and when the lag has passed.
    await eventually(() => clock.pendingTimerCount === 1 && readsOf("t1") === 1);
    await clock.advance(300);
    const { change, instance, pollAfter } = await asking;
    assert.equal(change, Change.CREATED);
    assert.equal(readsOf("t1"), 2);
    assert.ok(pollAfter !== undefined);
    const [thing] = vendor.things.values();
    assert.equal(instance?.providerId, thing?.id);
    for (let i = 0; i < 3; i += 1) {
      assert.equal((await failure(ask.ensure())).reason, "IN_DOUBT");
    }
    assert.ok(thing !== undefined);
    thing.isInvisible = false;
    assert.equal((await ask.ensure()).change, Change.NONE);
    assert.equal(vendor.things.size, 1);
  });
});

describe("a failed change says what it did:", () => {
  it("nothing, when the vendor refuses", async () => {
    for (const [code, reason] of [
      [422, "INVALID_FIELD"],
      [429, "THROTTLED"],
      [402, "BILLING_STOPPED"],
      [401, "BAD_CREDENTIAL"],
      [403, "MISSING_SCOPE"],
    ] as const) {
      const { ask } = hostWith();
      vendor.faults.push({ method: "POST", when: "before", effect: status(code) });
      const error = await failure(ask.ensure());
      assert.equal(error.reason, reason);
      assert.equal(error.outcome, "NOT_APPLIED");
    }
    assert.equal(vendor.things.size, 0);
  });

  it("nothing, when the adapter itself refuses before it asks", async () => {
    const refusal = new ProviderError("INVALID_FIELD", "no such voice");
    const { ask } = hostWith({}, { create: () => Promise.reject(refusal) });
    const error = await failure(ask.ensure());
    assert.equal(error.reason, "INVALID_FIELD");
    assert.equal(error.outcome, "NOT_APPLIED");
  });

  it("nothing, when time ran out between the decision and the first byte", async () => {
    const { create } = testAdapter();
    const { ask } = hostWith(
      { mutationDeadlineMs: 120_000 },
      {
        create: async (call, wanted) => {
          await clock.advance(61_000);
          return create(call, wanted);
        },
      },
    );
    const error = await failure(ask.ensure());
    assert.equal(error.reason, "TOO_LATE");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.equal(vendor.mutationCount, 0);
  });

  it("nothing, when the instance vanished between look and change: not NOT_FOUND", async () => {
    const { ask } = hostWith();
    await ask.ensure();
    const gone = status(404, { error: "not_found" });
    vendor.faults.push({ method: "PATCH", when: "before", effect: gone });
    const error = await failure(ask.ensure({ spec: { parameters: { size: "2" } } }));
    assert.equal(error.reason, "BUSY");
    assert.equal(error.outcome, "NOT_APPLIED");
  });

  it("all of it, when what fails is the look after it", async () => {
    const { ask } = hostWith();
    const spec = { parameters: { size: "2" } };
    await ask.ensure();
    const failing = hostWith(
      {},
      {
        update: async (call, { id }) => {
          const body = { parameters: { size: "2" } };
          const path = `/things/${id}`;
          await call.http.send({ method: "PATCH", path, body, isMutation: true });
          vendor.faults.push({ method: "GET", when: "before", effect: status(500) });
        },
      },
    );
    const error = await failure(failing.ask.ensure({ spec }));
    assert.equal(error.reason, "VENDOR_ERROR");
    assert.equal(error.outcome, "APPLIED");
    assert.equal(error.facts.providerId, [...vendor.things.keys()][0]);
  });

  it("a part of it, when a later step of a create is refused", async () => {
    const { ask } = hostWith(
      {},
      {
        create: async (call) => {
          const stamp = makeStamp(key, owner, "");
          const body = { stamp, parameters: {} };
          await call.http.send({ method: "POST", path: "/things", body, isMutation: true });
          vendor.faults.push({ method: "POST", when: "before", effect: status(422) });
          await call.http.send({ method: "POST", path: "/things/t1/publish", isMutation: true });
          return "t1";
        },
      },
    );
    const error = await failure(ask.ensure());
    assert.equal(error.outcome, "PARTIAL");
    await ask.delete();
    assert.equal(vendor.things.size, 0);
  });
});

describe("a read that fails", () => {
  for (const code of [401, 403, 429, 500, 404]) {
    it(`with ${code} never becomes NOT_FOUND, and nothing is created`, async () => {
      const { ask } = hostWith();
      for (let i = 0; i < 2; i += 1) {
        vendor.faults.push({ method: "GET", when: "before", effect: status(code) });
      }
      const read = await failure(ask.describe());
      assert.notEqual(read.code, "NOT_FOUND");
      const change = await failure(ask.ensure());
      assert.equal(change.outcome, "NOT_APPLIED");
      assert.equal(vendor.mutationCount, 0);
    });
  }
});
