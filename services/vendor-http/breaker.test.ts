import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it, mock } from "node:test";

import { ProviderError } from "../contract/provider-error.ts";
import { systemClock } from "../process/clock.ts";
import { Breaker, Breakers, defaultBreakerOptions } from "./breaker.ts";
import type { BreakerContext, CircuitState, Verdict } from "./breaker.ts";

const name = { account: "main", endpoint: "https://api.example.com/", kind: "read" } as const;
const { openMs, verdictCountMin, windowMs } = defaultBreakerOptions;

let states: CircuitState[] = [];
const context: BreakerContext = {
  clock: { ...systemClock, monotonicMs: () => Date.now() },
  options: defaultBreakerOptions,
  onStateChange: (_name, state) => states.push(state),
};

async function report(breaker: Breaker, verdict: Verdict, count = 1): Promise<void> {
  for (let i = 0; i < count; i += 1) await breaker.admit().settle(verdict);
}

async function opened(): Promise<Breaker> {
  const breaker = new Breaker(name, context);
  await report(breaker, "failure", verdictCountMin);
  assert.equal(breaker.state, "open");
  return breaker;
}

async function halfOpened(): Promise<Breaker> {
  const breaker = await opened();
  mock.timers.tick(openMs);
  assert.equal(breaker.state, "half-open");
  return breaker;
}

describe("a circuit", () => {
  beforeEach(() => {
    states = [];
    mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
  });
  afterEach(() => mock.timers.reset());

  it("opens when most verdicts are failures", async () => {
    await opened();
    assert.deepEqual(states, ["open"]);
  });

  it("stays closed below the least number of verdicts", async () => {
    const breaker = new Breaker(name, context);
    await report(breaker, "failure", verdictCountMin - 1);
    assert.equal(breaker.state, "closed");
  });

  it("never opens on bad credentials alone", async () => {
    const breaker = new Breaker(name, context);
    await report(breaker, "none", 100);
    assert.equal(breaker.state, "closed");
  });

  it("opens on failures however many bad credentials are among them", async () => {
    const breaker = new Breaker(name, context);
    for (let i = 0; i < verdictCountMin; i += 1) {
      await report(breaker, "none", 10);
      await report(breaker, "failure");
    }
    assert.equal(breaker.state, "open");
  });

  it("forgets failures that are older than the window", async () => {
    const breaker = new Breaker(name, context);
    await report(breaker, "failure", verdictCountMin - 1);
    mock.timers.tick(windowMs + 1000);
    await report(breaker, "failure");
    assert.equal(breaker.state, "closed");
  });

  it("refuses while open and says how long, with nothing applied", async () => {
    const breaker = await opened();
    mock.timers.tick(1000);
    assert.throws(
      () => breaker.admit(),
      (error) =>
        error instanceof ProviderError &&
        error.reason === "CIRCUIT_OPEN" &&
        error.outcome === "NOT_APPLIED" &&
        error.facts.retryAfterMs === openMs - 1000,
    );
  });

  it("lets one call at a time try while half-open", async () => {
    const breaker = await halfOpened();
    const probe = breaker.admit();
    for (let i = 0; i < 10; i += 1) assert.throws(() => breaker.admit(), ProviderError);
    await probe.settle("success");
    assert.equal(breaker.state, "closed");
    breaker.admit();
    breaker.admit();
    assert.deepEqual(states, ["open", "half-open", "closed"]);
  });

  it("opens again when the try fails", async () => {
    const breaker = await halfOpened();
    await breaker.admit().settle("failure");
    assert.equal(breaker.state, "open");
    mock.timers.tick(openMs);
    assert.equal(breaker.state, "half-open");
  });

  it("is not closed by a try that says nothing about the vendor, and lets the next one try", async () => {
    const breaker = await halfOpened();
    await report(breaker, "none", 3);
    assert.equal(breaker.state, "half-open");
    await breaker.admit().settle("success");
    assert.equal(breaker.state, "closed");
  });

  it("ignores verdicts of calls that began in an earlier state", async () => {
    const breaker = new Breaker(name, context);
    const slow = [breaker.admit(), breaker.admit()];
    await report(breaker, "failure", verdictCountMin);
    mock.timers.tick(openMs);
    assert.equal(breaker.state, "half-open");
    for (const ticket of slow) await ticket.settle("success");
    assert.equal(breaker.state, "half-open");
    const probe = breaker.admit();
    await slow[0]?.settle("failure");
    assert.throws(() => breaker.admit(), ProviderError);
    await probe.settle("success");
    assert.equal(breaker.state, "closed");
  });

  it("counts a ticket once", async () => {
    const breaker = new Breaker(name, context);
    const ticket = breaker.admit();
    for (let i = 0; i < 2 * verdictCountMin; i += 1) await ticket.settle("failure");
    assert.equal(breaker.state, "closed");
  });
});

describe("circuits", () => {
  it("are separate by account, endpoint, and read or write", async () => {
    const breakers = new Breakers(context);
    await report(breakers.get(name), "failure", verdictCountMin);
    assert.equal(breakers.get({ ...name }).state, "open");
    assert.equal(breakers.get({ ...name, account: "other" }).state, "closed");
    assert.equal(breakers.get({ ...name, endpoint: "https://b.example.com/" }).state, "closed");
    assert.equal(breakers.get({ ...name, kind: "write" }).state, "closed");
    breakers.shutdown();
  });

  it("tell their state from their first use on, once", () => {
    const breakers = new Breakers(context);
    states = [];
    breakers.get(name);
    breakers.get(name);
    assert.deepEqual(states, ["closed"]);
    breakers.shutdown();
  });

  it("are bounded in number; the least recently used goes", async () => {
    const breakers = new Breakers(context, 2);
    await report(breakers.get(name), "failure", verdictCountMin);
    breakers.get({ ...name, account: "b" });
    assert.equal(breakers.get(name).state, "open");
    breakers.get({ ...name, account: "c" });
    breakers.get({ ...name, account: "d" });
    assert.equal(breakers.get(name).state, "closed");
    breakers.shutdown();
  });
});
