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
const settledCount = 200;
/** For all to be made, and looked at once more. */
const settleMs = 1_200_000;
/** The account, and the instance by its id. */
const readsOfPassMax = 3;
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
    const passes = await new Keeper(line, clock, objectsCount).runFor(hourMs);
    return { vendorCalls: (await line.bench.requests()).length, passes };
  } finally {
    await line.stop();
  }
}

/** Runs objects when their last passes asked for it. */
class Keeper {
  readonly #line: VendorLine;
  readonly #clock: FakeClock;
  readonly #dueMs = new Map<string, number>();

  constructor(line: VendorLine, clock: FakeClock, count: number) {
    this.#line = line;
    this.#clock = clock;
    for (let i = 0; i < count; i += 1) this.#dueMs.set(line.apply(`object-${i}`), clock.now());
  }

  /** How many passes that were. */
  async runFor(ms: number): Promise<number> {
    const clock = this.#clock;
    const endMs = clock.now() + ms;
    for (let passes = 0; passes < passesMax; passes += 1) {
      const due = [...this.#dueMs].reduce((first, next) => (next[1] < first[1] ? next : first));
      const [key, atMs] = due;
      if (atMs >= endMs) {
        await clock.advance(Math.max(0, endMs - clock.now()));
        return passes;
      }
      await clock.advance(Math.max(0, atMs - clock.now()));
      const result = await this.#line.pass(key);
      assert.notEqual(result.kind, "done");
      const waitMs = result.kind === "done" ? hourMs : result.afterMs;
      this.#dueMs.set(key, Math.ceil(clock.now() + waitMs) + 1);
    }
    return assert.fail(`more than ${passesMax} passes`);
  }
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

describe("two hundred settled objects", () => {
  it("are not written in an hour, and read no more often than --resync says", async () => {
    const clock = new FakeClock();
    const chance = new Random(7);
    const line = await VendorLine.start({ clock, random: () => chance.next() });
    try {
      const keeper = new Keeper(line, clock, settledCount);
      await keeper.runFor(settleMs);
      const writes = line.objects.writeCount;
      const last = (await line.bench.requests()).at(-1)?.sequence ?? 0;
      const passes = await keeper.runFor(hourMs);
      assert.equal(line.objects.writeCount, writes);
      const asked = (await line.bench.requests()).filter(({ sequence }) => sequence > last);
      assert.deepEqual(
        asked.filter(({ method }) => method !== "GET"),
        [],
      );
      // Each ten minutes, give or take a tenth.
      assert.ok(passes >= settledCount * 5 && passes <= settledCount * 7, `${passes} passes`);
      assert.ok(asked.length <= passes * readsOfPassMax, `${asked.length} reads`);
    } finally {
      await line.stop();
    }
  });
});
