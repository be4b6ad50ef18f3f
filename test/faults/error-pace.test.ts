/**
 * What failures cost a vendor: an hour of simulated time over the real reconciler, host and emulator,
 * without circuit breakers, so that the controller's own patience is what is counted.
 */
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { Random } from "../../controller/reconcile/simulation/random.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { ProviderHandlers } from "../../services/contract/provider-handlers.ts";
import { FakeClock } from "../../services/process/fake-clock.ts";
import { VendorLine } from "./vendor-line.ts";
import type { LineOptions } from "./vendor-line.ts";

const hourMs = 3_600_000;
const objectsCount = 10;
const passesMax = 5_000;
/** First hour of one failing object: the ramp of the back-off, then one pass each five minutes. */
const passesOfObjectMax = 22;

interface Hour {
  readonly vendorCalls: number;
  readonly passes: number;
}

/** New objects and their first hour. `effect` befalls each call of the vendor. */
async function firstHour(effect: object | undefined, options: LineOptions = {}): Promise<Hour> {
  const clock = new FakeClock();
  const chance = new Random(7);
  const line = await VendorLine.start({ clock, random: () => chance.next(), ...options });
  try {
    if (effect !== undefined) await line.bench.script({ do: "fault", times: 10_000, effect });
    const passes = await runUntil(line, clock, clock.now() + hourMs);
    return { vendorCalls: (await line.bench.requests()).length, passes };
  } finally {
    await line.stop();
  }
}

/** Runs each object when its last pass asked for it; how many passes that were. */
async function runUntil(line: VendorLine, clock: FakeClock, endMs: number): Promise<number> {
  const dueMs = new Map<string, number>();
  for (let i = 0; i < objectsCount; i += 1) dueMs.set(line.apply(`object-${i}`), clock.now());
  for (let passes = 0; passes < passesMax; passes += 1) {
    const [key, atMs] = [...dueMs].reduce((first, next) => (next[1] < first[1] ? next : first));
    if (atMs >= endMs) return passes;
    await clock.advance(Math.max(0, atMs - clock.now()));
    const result = await line.pass(key);
    assert.notEqual(result.kind, "done");
    const waitMs = result.kind === "done" ? hourMs : result.afterMs;
    dueMs.set(key, Math.ceil(clock.now() + waitMs) + 1);
  }
  return assert.fail(`more than ${passesMax} passes in an hour`);
}

/** Does what it was asked, and then answers with an error that carries nothing of ours. */
function failingAfterwards({ ensure, describe, ...rest }: ProviderHandlers): ProviderHandlers {
  return {
    ...rest,
    ensure: async (...asked) => {
      await ensure?.(...asked);
      throw ProviderError.foreign("INTERNAL", "something went wrong");
    },
    describe: async (...asked) => {
      // Whatever the vendor says: this adapter tells nobody.
      await describe?.(...asked).catch(() => undefined);
      throw ProviderError.foreign("INTERNAL", "something went wrong");
    },
  };
}

const failures: readonly (readonly [string, object])[] = [
  ["500", { kind: "error", name: "internal_error" }],
  ["401", { kind: "error", name: "invalid_api_key" }],
  ["429 without a hint", { kind: "error", name: "too_many_concurrent_requests" }],
  ["429, it is busy itself", { kind: "error", name: "system_busy" }],
  ["402", { kind: "error", name: "payment_required" }],
  ["a proxy's HTML", { kind: "answer", status: 200, text: "<html>busy</html>" }],
  ["a reset", { kind: "reset" }],
];

describe("in an hour", () => {
  let healthy: Hour;
  before(async () => {
    healthy = await firstHour(undefined);
    assert.ok(healthy.vendorCalls > objectsCount);
  });

  for (const [what, effect] of failures) {
    it(`a vendor that answers ${what} is called no more often than one that is well`, async () => {
      const { vendorCalls, passes } = await firstHour(effect);
      assert.ok(vendorCalls > objectsCount, "nobody asked");
      assert.ok(
        vendorCalls <= healthy.vendorCalls,
        `${vendorCalls} calls, ${healthy.vendorCalls} when all is well`,
      );
      assert.ok(passes <= objectsCount * passesOfObjectMax, `${passes} passes`);
    });
  }

  it("an adapter that answers generic errors is not asked more often for it", async () => {
    const { passes } = await firstHour(undefined, { handlers: failingAfterwards });
    assert.ok(passes > objectsCount && passes <= objectsCount * passesOfObjectMax, `${passes}`);
  });
});
