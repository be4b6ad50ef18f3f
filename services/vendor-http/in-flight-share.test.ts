import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { FakeClock } from "../process/fake-clock.ts";
import { InFlightShare } from "./in-flight-share.ts";

const never = new AbortController().signal;
const options = { inFlightMax: 2, waitMsMax: 1_000 };

describe("an account's share of requests in flight", () => {
  it("lets so many in, and the others in the order in which they came", async () => {
    const clock = new FakeClock();
    const share = new InFlightShare(clock, options);
    const first = await share.enter(never);
    const second = await share.enter(never);
    const entered: number[] = [];
    const enter = async (number: number): Promise<() => void> => {
      const leave = await share.enter(never);
      entered.push(number);
      return leave;
    };
    const third = enter(3);
    const fourth = enter(4);
    await clock.advance(500);
    assert.deepEqual(entered, []);
    first();
    const leaveThird = await third;
    assert.deepEqual(entered, [3]);
    // Giving back twice gives nothing.
    first();
    await clock.advance(100);
    assert.deepEqual(entered, [3]);
    second();
    leaveThird();
    (await fourth)();
    await Promise.all([share.enter(never), share.enter(never)]);
  });

  it("refuses whoever waits too long with BUSY, and nothing was sent", async () => {
    const clock = new FakeClock();
    const share = new InFlightShare(clock, options);
    const first = await share.enter(never);
    await share.enter(never);
    const refused = assert.rejects(share.enter(never), {
      reason: "BUSY",
      facts: { outcome: "NOT_APPLIED", retryAfterMs: 1_000 },
    });
    await clock.advance(1_000);
    await refused;
    // Its place is not kept.
    first();
    (await share.enter(never))();
  });

  it("lets a waiter leave with its caller", async () => {
    const share = new InFlightShare(new FakeClock(), { ...options, inFlightMax: 1 });
    const first = await share.enter(never);
    const leaving = new AbortController();
    const left = assert.rejects(share.enter(leaving.signal), /the caller left/);
    leaving.abort(new Error("the caller left"));
    await left;
    await assert.rejects(share.enter(leaving.signal), /the caller left/);
    first();
    await share.enter(never);
  });
});
