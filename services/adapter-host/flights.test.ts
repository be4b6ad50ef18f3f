import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { ProviderError } from "../contract/provider-error.ts";
import { FakeClock } from "../process/fake-clock.ts";
import { Flights } from "./flights.ts";

const options = { busyRetryMs: 700, aftermathsMax: 3 };
const waiting = { signal: new AbortController().signal, isCommitted: () => false };

async function reasonOf(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof ProviderError, String(error));
    return error.reason;
  }
  return undefined;
}

describe("flights", () => {
  it("let one in on a key and refuse the next; other keys are free", async () => {
    const flights = new Flights(new FakeClock(), options);
    const first = Promise.withResolvers<string>();
    const running = flights.run("a", waiting, () => first.promise);
    await assert.rejects(
      flights.run("a", waiting, async () => "never"),
      { reason: "BUSY", facts: { outcome: "NOT_APPLIED", retryAfterMs: 700 } },
    );
    assert.equal(await flights.run("b", waiting, async () => "b"), "b");
    first.resolve("a");
    assert.equal(await running, "a");
    assert.equal(await flights.run("a", waiting, async () => "again"), "again");
  });

  it("free the key when the work fails", async () => {
    const flights = new Flights(new FakeClock(), options);
    const failing = flights.run("a", waiting, () => Promise.reject(new Error("bug")));
    await assert.rejects(failing, /bug/);
    assert.equal(flights.heldCount, 0);
  });

  it("keep the key of a committed change after its caller has left, until it ends", async () => {
    const flights = new Flights(new FakeClock(), options);
    const work = Promise.withResolvers<void>();
    const caller = new AbortController();
    const running = flights.run(
      "a",
      { signal: caller.signal, isCommitted: () => true },
      () => work.promise,
    );
    caller.abort();
    await assert.rejects(running, { reason: "VENDOR_TIMEOUT", facts: { outcome: "UNKNOWN" } });
    assert.equal(await reasonOf(flights.run("a", waiting, async () => "x")), "BUSY");
    const idle = flights.idle(new AbortController().signal);
    work.reject(new Error("late failure"));
    await idle;
    assert.equal(flights.heldCount, 0);
  });

  it("let work end by itself whose caller leaves before anything is committed", async () => {
    const flights = new Flights(new FakeClock(), options);
    const caller = new AbortController();
    const { signal } = caller;
    const running = flights.run(
      "a",
      { signal, isCommitted: () => false },
      () =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new Error("ended by its own signal")));
        }),
    );
    caller.abort();
    await assert.rejects(running, /its own signal/);
  });

  it("stop waiting for the last when told so", async () => {
    const flights = new Flights(new FakeClock(), options);
    const never = flights.run("a", waiting, () => new Promise(() => undefined));
    void never.catch(() => undefined);
    const over = new AbortController();
    const idle = flights.idle(over.signal);
    over.abort();
    await idle;
    assert.equal(flights.heldCount, 1);
  });

  it("remember a create until it must show, and no longer", async () => {
    const clock = new FakeClock();
    const flights = new Flights(clock, options);
    flights.remember("a", { id: "x", isSeen: false, untilMs: clock.monotonicMs() + 1000 });
    assert.equal(flights.rememberedId("a"), "x");
    await clock.advance(400);
    assert.equal(flights.doubtMs("a"), 600);
    flights.remember("a", { id: "x", isSeen: true, untilMs: clock.monotonicMs() + 600 });
    assert.equal(flights.doubtMs("a"), undefined);
    assert.equal(flights.rememberedId("a"), "x");
    await clock.advance(600);
    assert.equal(flights.rememberedId("a"), "");
  });

  it("remember so many and no more", () => {
    const clock = new FakeClock();
    const flights = new Flights(clock, options);
    for (const key of ["a", "b", "c", "d"]) {
      flights.remember(key, { id: key, isSeen: false, untilMs: 1000 });
    }
    assert.equal(flights.rememberedId("a"), "");
    assert.equal(flights.rememberedId("d"), "d");
    flights.forget("d");
    assert.equal(flights.rememberedId("d"), "");
  });
});
