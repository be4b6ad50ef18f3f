/** A change of leaders in the middle of creations and deletions, and what must hold whatever made it. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import {
  applyMany,
  deleteMany,
  expectInstanceEach,
  numbered,
  untilOnlyReady,
} from "./many-objects.ts";
import { readRuntimeFaults } from "./runtime-faults-options.ts";
import { leaseMs } from "./two-controllers.ts";
import type { Seat, TwoControllers } from "./two-controllers.ts";

const half = Math.ceil(readRuntimeFaults().leaderObjects / 2);
const speech = { endpoint: elevenLabsEndpoint, region: "global" };
/** Doubt after a take-over: the lease, 20 s of a mutation, 10 s of lag and the skew allowance. */
const convergeMs = 90_000;
/** So many changes at the vendor into the work. */
const changesBefore = 5;
/** Beyond the lease: the look that finds it expired, and the reading of what is recorded. */
const takeOverMs = leaseMs + 4_000;

export type Act = (seat: Seat) => Promise<unknown> | void;

export class HandOver {
  readonly #two: TwoControllers;
  #names: readonly string[] = [];
  #round = 0;

  constructor(two: TwoControllers) {
    this.#two = two;
  }

  /** What the first round deletes. */
  async prepare(): Promise<void> {
    this.#names = numbered("round-0", half);
    await applyMany(this.#two.stack.cluster, this.#names, speech);
    await untilOnlyReady(this.#two.stack.cluster, this.#names, convergeMs);
  }

  /**
   * Half of the objects are deleted, as many others made; in the midst of it `strike` befalls the
   * leader. The other one takes over and finishes, and then `heal` may bring the first one back.
   */
  async round(context: TestContext, strike: Act, heal: Act): Promise<void> {
    const { cluster } = this.#two.stack;
    const old = await this.#two.leader();
    const startMs = performance.now();
    const removed = this.#names;
    this.#round += 1;
    this.#names = numbered(`round-${this.#round}`, half);
    const asked = Promise.all([
      applyMany(cluster, this.#names, speech),
      deleteMany(cluster, removed),
    ]);
    const [struckMs] = await Promise.all([this.#strike(old, startMs, strike), asked]);
    await this.#untilLeading(this.#two.other(old));
    const tookOverMs = performance.now() - struckMs;
    await untilOnlyReady(cluster, this.#names, convergeMs);
    const seconds = Math.round((performance.now() - struckMs) / 1_000);
    await heal(old);
    await this.#expectInTurn(old, startMs);
    const objects = await untilOnlyReady(cluster, this.#names, convergeMs);
    await expectInstanceEach(this.#two.stack, objects);
    const changes = this.#two.changes(startMs);
    const created = changes.filter(({ path }) => path.endsWith("/agents/create")).length;
    const before = changes.filter(({ gate }) => gate === old.gate.name).length;
    const shares = { before, after: changes.length - before };
    context.diagnostic(JSON.stringify({ tookOverMs: Math.round(tookOverMs), seconds, ...shares }));
    assert.equal(created, half, "each was made once");
  }

  /** Among calls, not before or after all of them. Answers when. */
  async #strike(leader: Seat, sinceMs: number, strike: Act): Promise<number> {
    await eventually(async () => {
      assert.ok(this.#two.changes(sinceMs).length >= changesBefore);
    }, convergeMs);
    await strike(leader);
    return performance.now();
  }

  async #untilLeading(seat: Seat): Promise<void> {
    await eventually(async () => assert.equal(await seat.controller.isLeading(), true), takeOverMs);
  }

  /** First the old leader's changes, then its successor's, and none of both at once. */
  async #expectInTurn(old: Seat, sinceMs: number): Promise<void> {
    const changes = this.#two.changes(sinceMs);
    const before = changes.filter(({ gate }) => gate === old.gate.name);
    const after = changes.filter(({ gate }) => gate !== old.gate.name);
    assert.ok(before.length > 0 && after.length > 0, "both had work to do");
    const lastEndMs = Math.max(...before.map(({ endedMs }) => endedMs ?? Infinity));
    const firstBeginMs = Math.min(...after.map(({ beganMs }) => beganMs));
    assert.ok(lastEndMs < firstBeginMs, `${lastEndMs} ms is not before ${firstBeginMs} ms`);
  }
}
