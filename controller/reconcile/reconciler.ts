/**
 * The reconciler: a name in, a result out. It reads the object from the cache, runs one pass, writes
 * the difference of status, and remembers when to look again.
 */
import { chooseClass } from "../resource/class-choice.ts";
import { conditionOf } from "../resource/digital-human-provider.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import type { Placement } from "../resource/placement.ts";
import { stallsAtMs } from "./conditions.ts";
import type { ConditionInput, Outcome } from "./conditions.ts";
import { fingerprintOf } from "./memory.ts";
import type { Memory } from "./memory.ts";
import { runPass } from "./pass.ts";
import type { PassResult } from "./pass-state.ts";
import type { ReconcilerParts } from "./reconciler-parts.ts";
import { nextDue } from "./schedule.ts";
import { nextStatus } from "./status-patch.ts";

/** What the queue does with a name afterwards. */
export type ReconcileResult =
  | { readonly kind: "done" }
  | { readonly kind: "requeue"; readonly afterMs: number }
  /** The pass worked, the vendor or adapter did not: counted as an error, asked again later. */
  | {
      readonly kind: "failed";
      readonly message: string;
      readonly isTerminal: boolean;
      readonly afterMs: number;
    };

export class Reconciler {
  readonly #parts: ReconcilerParts;

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  /** @throws whatever the API server refuses; the queue backs off */
  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { objects, memories, clock } = this.#parts;
    // The write's own event brings the next pass.
    if (!objects.hasSeenOwnWrite(key)) return { kind: "done" };
    const object = objects.cached(key);
    if (object === undefined) {
      memories.forget(key);
      return { kind: "done" };
    }
    const last = memories.get(key);
    const fingerprint = fingerprintOf(object, chooseClass(object, objects.classes()));
    const nowMs = clock.now();
    const isHeld = last !== undefined && nowMs < last.holdUntilMs;
    const isSettled =
      isHeld || (last !== undefined && last.fingerprint === fingerprint && nowMs < last.dueMs);
    const result = await runPass(this.#parts, object, { last, isSettled }, signal);
    return this.#publish(key, result, last);
  }

  async #publish(
    key: string,
    result: PassResult,
    last: Memory | undefined,
  ): Promise<ReconcileResult> {
    const { memories, clock } = this.#parts;
    if (result.object === undefined) {
      memories.forget(key);
      return { kind: "done" };
    }
    if (result.outcome === undefined) return { kind: "done" };
    const input: ConditionInput = {
      object: result.object,
      record: result.isSettled ? result.object.record : result.record,
      outcome: result.outcome,
      cleanupFailures: result.cleanupFailures,
      provisioningMs: provisioningMs(result),
      nowMs: clock.now(),
    };
    const written = await this.#writeStatus(input, result);
    this.#forgetRecordedIds(written);
    this.#tellTransition(result.object, written, result.outcome);
    return this.#remember(key, written, { result, input, last });
  }

  /** An answer that cannot be recorded leaves doubt: whoever looks next must not create. */
  async #writeStatus(input: ConditionInput, result: PassResult): Promise<DigitalHumanProvider> {
    const { objects, doubts } = this.#parts;
    const { key, record } = input.object;
    try {
      return await objects.patchStatus(input.object, nextStatus(input, result.choice));
    } catch (error) {
      const { answered } = result;
      if (answered !== undefined && changedIds(record, input.record).length > 0) {
        doubts.begin(key, answered.realm, answered.notAfterMs, answered.settling);
      }
      throw error;
    }
  }

  #forgetRecordedIds(object: DigitalHumanProvider): void {
    for (const { realm, providerID } of object.record) {
      if (providerID !== "") this.#parts.memories.forgetAnsweredId(object.key, realm);
    }
  }

  #tellTransition(
    before: DigitalHumanProvider,
    after: DigitalHumanProvider,
    outcome: Outcome,
  ): void {
    const was = conditionOf(before.status, "Ready");
    const is = conditionOf(after.status, "Ready");
    if (is === undefined || was?.reason === is.reason) return;
    if (outcome.kind === "ensured" && is.status !== "False") return;
    const isQuiet = is.reason === "Provisioning" || is.reason === "Deleting";
    this.#parts.objects.event(after, {
      type: isQuiet || is.reason === "Suspended" ? "Normal" : "Warning",
      reason: is.reason,
      action: "Reconcile",
      note: is.message,
    });
  }

  #remember(
    key: string,
    object: DigitalHumanProvider,
    pass: {
      readonly result: PassResult;
      readonly input: ConditionInput;
      readonly last: Memory | undefined;
    },
  ): ReconcileResult {
    const { memories, clock, options, random, objects } = this.#parts;
    const { result, input, last } = pass;
    const nowMs = clock.now();
    if (result.isSettled && last !== undefined) {
      const dueMs = Math.max(last.dueMs, last.holdUntilMs);
      return { kind: "requeue", afterMs: Math.max(0, dueMs - nowMs) };
    }
    const { outcome } = input;
    const failures =
      outcome.kind === "failed" || isFailedRemoval(outcome) ? (last?.failures ?? 0) + 1 : 0;
    const due = nextDue({
      outcome,
      failures,
      nowMs,
      pollAfterMs: result.pollAfterMs,
      stallsAtMs: stallsAtMs(input),
      hasRetiring: object.record.some((placement) => placement.state === "Retiring"),
      hasCleanupFailed: result.cleanupFailures.size > 0,
      options,
      random,
    });
    memories.set(key, {
      fingerprint: fingerprintOf(object, chooseClass(object, objects.classes())),
      outcome,
      cleanupFailures: result.cleanupFailures,
      dueMs: due.dueMs,
      holdUntilMs: due.holdUntilMs,
      failures,
    });
    const afterMs = Math.max(0, due.dueMs - nowMs);
    const failure = "failure" in outcome ? outcome.failure : undefined;
    return failure === undefined
      ? { kind: "requeue", afterMs }
      : {
          kind: "failed",
          message: failure.message,
          isTerminal: failure.retry === "terminal",
          afterMs,
        };
  }
}

function isFailedRemoval(outcome: Outcome): boolean {
  return outcome.kind === "removing" && outcome.failure !== undefined;
}

function provisioningMs(result: PassResult): number {
  return result.choice.kind === "chosen"
    ? result.choice.class.provisioningSeconds * 1000
    : Number.POSITIVE_INFINITY;
}

/** Placements whose id the pass learned anew. */
function changedIds(
  before: readonly Placement[],
  after: readonly Placement[],
): readonly Placement[] {
  const known = new Set(before.map(({ realm, providerID }) => `${realm}\n${providerID}`));
  return after.filter(({ realm, providerID }) => !known.has(`${realm}\n${providerID}`));
}
