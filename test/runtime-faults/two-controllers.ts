/**
 * Two controllers of one fleet on one cluster, told apart at the vendor: each has a fault proxy of its
 * own, which puts the address of its own adapter in place of the class's, and that adapter's way to
 * the vendor leads through a gate of its own.
 */
import assert from "node:assert/strict";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import type { FaultRule } from "../fault-proxy/fault-rule.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";
import { GatedAdapter } from "./gated-adapter.ts";
import { ProxiedController } from "./proxied-controller.ts";
import type { VendorGate } from "./vendor-gate.ts";
import type { Change } from "./vendor-gate.ts";

export const leaseMs = 3_000;
/** Long enough that a change of leaders falls among calls that are under way. */
const answerMs = 100;
/** Within what the adapter says of the vendor (10 s): a successor that trusts a list makes duplicates. */
const listLagMs = 5_000;

/** One controller and what is its alone. */
export interface Seat {
  readonly controller: ProxiedController;
  readonly gate: VendorGate;
  /** Rules that stand besides those of a test. */
  readonly ownRules: readonly FaultRule[];
}

export class TwoControllers {
  readonly stack: Stack;
  readonly #seats: Seat[] = [];
  readonly #adapters: GatedAdapter[] = [];

  private constructor(stack: Stack) {
    this.stack = stack;
  }

  /** Once one of them leads and the other is ready. */
  static async start(): Promise<TwoControllers> {
    const stack = await startStack({ withController: false, withElevenLabs: { answerMs } });
    const two = new TwoControllers(stack);
    try {
      await stack.elevenLabs.script({ do: "set", settings: { listLagMs } });
      for (const name of ["first", "second"]) {
        await two.#seat(name);
        await two.leader();
      }
      return two;
    } catch (error) {
      await two.stop();
      throw error;
    }
  }

  /** Waits until exactly one leads. */
  leader(): Promise<Seat> {
    return eventually(async () => {
      const [leader, ...others] = await this.#leaders();
      assert.ok(leader !== undefined && others.length === 0);
      return leader;
    });
  }

  other(seat: Seat): Seat {
    const other = this.#seats.find((candidate) => candidate !== seat);
    assert.ok(other);
    return other;
  }

  /** Of both, by their beginning; none from before `sinceMs` on the monotonic scale. */
  changes(sinceMs: number): readonly Change[] {
    return this.#seats
      .flatMap(({ gate }) => gate.changes)
      .filter(({ beganMs }) => beganMs >= sinceMs)
      .sort((one, next) => one.beganMs - next.beganMs);
  }

  async stop(): Promise<void> {
    for (const { controller } of this.#seats) await controller.stop();
    await Promise.all(this.#adapters.map((adapter) => adapter.stop()));
    await this.stack.stop();
  }

  async #leaders(): Promise<readonly Seat[]> {
    const leading = await Promise.all(
      this.#seats.map(async (seat) => {
        // One that is dead or stopped answers nothing, and leads nobody.
        const isLeading = await seat.controller.isLeading().catch(() => false);
        return isLeading ? [seat] : [];
      }),
    );
    return leading.flat();
  }

  async #seat(name: string): Promise<void> {
    const { elevenLabs } = this.stack;
    const adapter = await GatedAdapter.start(name, elevenLabs.emulator);
    this.#adapters.push(adapter);
    const ownRules: readonly FaultRule[] = [
      { match: {}, fault: { kind: "rewrite", text: elevenLabs.address, by: adapter.address } },
    ];
    const flags = [`--lease-duration=${leaseMs}ms`];
    const controller = await ProxiedController.start(this.stack, flags, ownRules);
    this.#seats.push({ controller, gate: adapter.gate, ownRules });
  }
}
