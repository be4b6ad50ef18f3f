/** A world told what to do, one thing after the other, for tests of one rule. */
import assert from "node:assert/strict";
import { conditionOf } from "../../resource/digital-human-provider.ts";
import type { Condition, DigitalHumanProvider } from "../../resource/digital-human-provider.ts";
import type { JsonObject } from "../../resource/json-door.ts";
import { progressEvents, specAt } from "./schedule.ts";
import type { WorldEvent } from "./schedule.ts";
import { World } from "./world.ts";
import type { SimulatedPlace, WorldOptions } from "./world.ts";

const placeA: SimulatedPlace = {
  endpoint: "https://a.example.com/api",
  className: "class-a",
  address: "adapter-a:1",
  realm: "realm-1",
};
const placeB: SimulatedPlace = {
  endpoint: "https://b.example.com/api",
  className: "class-b",
  address: "adapter-b:1",
  realm: "realm-2",
};
/** Another way to the account and region of A. */
const placeA2: SimulatedPlace = { ...placeA, endpoint: "https://a2.example.com/api" };
export const places = { a: placeA, a2: placeA2, b: placeB };

const stepsMax = 500;

export class Scenario {
  readonly world: World;

  /** An object at place A, applied and looked at by nobody yet. */
  constructor(spec: JsonObject = {}, options: Partial<WorldOptions> = {}) {
    this.world = new World({ seed: 1, places: Object.values(places), ...options });
    this.world.api.create({ ...specAt(places.a.endpoint), ...spec });
    this.world.startLeader();
  }

  /** @throws AssertionError when the object is gone */
  get object(): DigitalHumanProvider {
    const { object } = this.world.api;
    assert.ok(object, "the object is gone");
    return object;
  }

  condition(type: string): Condition {
    const condition = conditionOf(this.object.status, type);
    assert.ok(condition, `there is no condition ${type}`);
    return condition;
  }

  /** "True ProviderReady" */
  brief(type: string): string {
    const { status, reason } = this.condition(type);
    return `${status} ${reason}`;
  }

  /** How often an RPC was called. */
  calls(rpc: string): number {
    return this.world.wire.counts.get(rpc) ?? 0;
  }

  /** Until nothing goes on by itself any more; no time passes. */
  async settle(): Promise<void> {
    await this.settleBut(() => false);
  }

  /** As `settle`, but what is held back does not happen. */
  async settleBut(isHeldBack: (label: string) => boolean): Promise<void> {
    for (let count = 0; count < stepsMax; count++) {
      const event = progressEvents(this.world).find(({ label }) => !isHeldBack(label));
      if (event === undefined) return;
      await this.#happen(event);
    }
    assert.fail(`no rest after ${stepsMax} steps: ${this.world.trace.slice(-12).join("; ")}`);
  }

  /** Until something of that name is about to happen. */
  async settleUntil(label: string): Promise<void> {
    for (let count = 0; count < stepsMax; count++) {
      const events = progressEvents(this.world);
      if (events.some((event) => event.label.includes(label))) return;
      const [event] = events;
      assert.ok(event, `"${label}" never happens: ${this.world.trace.slice(-12).join("; ")}`);
      await this.#happen(event);
    }
    assert.fail(`"${label}" does not happen`);
  }

  /** Time passes, the leader renews its lease, and all that follows happens. */
  async later(durationMs: number, isHeldBack = (_label: string) => false): Promise<void> {
    await this.world.advance(durationMs);
    this.world.leader?.renew();
    await this.settleBut(isHeldBack);
  }

  /** To the next pass that nobody asked for; its wait in ms. */
  async untilDue(): Promise<number> {
    const waitMs = (this.world.leader?.dueMs ?? 0) - this.world.clock.now();
    assert.ok(waitMs > 0 && waitMs < Infinity, `no pass is due: ${waitMs}`);
    await this.later(waitMs);
    return waitMs;
  }

  /** Comes to READY, from the begin. */
  async provisioned(): Promise<void> {
    await this.settle();
    while (this.brief("Ready") !== "True ProviderReady") await this.untilDue();
  }

  async #happen(event: WorldEvent): Promise<void> {
    this.world.trace.push(event.label);
    await event.run();
    await this.world.flush();
  }
}
