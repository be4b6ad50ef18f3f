/**
 * The reconciler: a name in, a result out. It reads the object from the cache, runs one pass, writes
 * the difference of status, and remembers when to look again.
 */
import { chooseClass } from "../resource/class-choice.ts";
import type { ClassChoice } from "../resource/class-choice.ts";
import { conditionOf } from "../resource/digital-human-provider.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import { stallsAtMs } from "./conditions.ts";
import type { ConditionInput, Outcome } from "./conditions.ts";
import { identity } from "./decide.ts";
import { untilBelievedMs, withHealth } from "./health-overlay.ts";
import { unwatched } from "./health-view.ts";
import { holdMsMax } from "./failure.ts";
import { fingerprintOf, isHeld, recordedHold } from "./memory.ts";
import type { Memory } from "./memory.ts";
import { doubtUnrecorded, runPass } from "./pass.ts";
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
    const choice = chooseClass(object, objects.classes());
    const nowMs = clock.now();
    const last = memories.get(key) ?? recordedHold(object, choice, nowMs);
    const isSettled =
      last !== undefined &&
      (isHeld(last, { ms: nowMs, choice, object }) ||
        (last.fingerprint === fingerprintOf(object, choice) && nowMs < last.dueMs));
    const result = await runPass(this.#parts, object, { last, isSettled }, signal);
    return this.#publish(key, result, last);
  }

  async #publish(
    key: string,
    result: PassResult,
    last: Memory | undefined,
  ): Promise<ReconcileResult> {
    const { memories, clock } = this.#parts;
    const { object, outcome, choice } = result;
    if (object === undefined) {
      memories.forget(key);
      return { kind: "done" };
    }
    if (outcome === undefined) return this.#wait(result, last);
    const health = this.#parts.health?.view(object, choice) ?? unwatched;
    const input: ConditionInput = {
      object,
      record: result.isSettled ? object.record : result.record,
      outcome: withHealth(outcome, health),
      health,
      ...adviceOf(choice),
      place: choice.kind === "chosen" ? choice.place : undefined,
      removalWaits: result.removalWaits,
      provisioningMs: provisioningMs(result),
      nowMs: clock.now(),
    };
    const pass = { result, input, last };
    const written = await this.#writeStatus(key, pass);
    this.#forgetRecordedIds(written);
    this.#tellTransition(object, written, outcome);
    return this.#remember(key, written, pass);
  }

  /** What the vendor said stands, written or not: above all when it may be asked again. */
  async #writeStatus(key: string, pass: FinishedPass): Promise<DigitalHumanProvider> {
    const { result, input } = pass;
    const { object, record } = input;
    try {
      return await this.#parts.objects.patchStatus(object, nextStatus(input, result.choice));
    } catch (error) {
      doubtUnrecorded(this.#parts, { object, record, answered: result.answered });
      this.#remember(key, undefined, pass);
      throw error;
    }
  }

  /** Nothing to publish: not ours, or a hold that an earlier object of this name brought about. */
  #wait(result: PassResult, last: Memory | undefined): ReconcileResult {
    if (!result.isSettled || last === undefined) return { kind: "done" };
    return { kind: "requeue", afterMs: Math.max(0, last.holdUntilMs - this.#parts.clock.now()) };
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

  /** One throttled object speaks for all of its account. */
  #tellAccount({ place, nowMs }: ConditionInput, outcome: Outcome): void {
    const { accounts } = this.#parts;
    if (accounts === undefined || place === undefined) return;
    const failure = outcome.kind === "failed" ? outcome.failure : undefined;
    if (outcome.kind === "ensured") accounts.serves(place);
    else if (failure?.condition === "RateLimited" && failure.retryAtMs !== undefined) {
      accounts.refuses(place, Math.min(failure.retryAtMs - nowMs, holdMsMax));
    }
  }

  /** `object` undefined: the status could not be written, so the next pass is no settled one. */
  #remember(
    key: string,
    object: DigitalHumanProvider | undefined,
    { result, input, last }: FinishedPass,
  ): ReconcileResult {
    const { memories, clock } = this.#parts;
    const nowMs = clock.now();
    // What the pass itself came to: health is laid over it anew each time.
    const outcome = result.outcome ?? input.outcome;
    const healthMs = untilBelievedMs(outcome, input.health ?? unwatched) ?? Infinity;
    if (result.isSettled && last !== undefined) {
      const dueMs = Math.max(last.dueMs, last.holdUntilMs);
      return { kind: "requeue", afterMs: Math.min(Math.max(0, dueMs - nowMs), healthMs) };
    }
    const failures =
      outcome.kind === "failed" || isFailedRemoval(outcome) ? (last?.failures ?? 0) + 1 : 0;
    const due = nextDue(
      {
        outcome,
        failures,
        nowMs,
        pollAfterMs: result.pollAfterMs,
        removalPollMs: result.removalPollMs,
        stallsAtMs: stallsAtMs(input),
        cleanupAtMs: cleanupAtMs(result, nowMs),
      },
      this.#parts,
    );
    memories.set(key, {
      uid: input.object.uid,
      // With the class as this pass knew it: one that has changed since calls for another pass.
      fingerprint: object === undefined ? "" : fingerprintOf(object, result.choice),
      outcome,
      removalWaits: result.removalWaits,
      dueMs: due.dueMs,
      holdUntilMs: due.holdUntilMs,
      ...(input.place === undefined || outcome.kind !== "failed" ? {} : { holdPlace: input.place }),
      failures,
    });
    this.#tellAccount(input, outcome);
    const afterMs = Math.max(0, due.dueMs - nowMs);
    const failure = "failure" in outcome ? outcome.failure : undefined;
    return failure === undefined
      ? { kind: "requeue", afterMs: Math.min(afterMs, healthMs) }
      : {
          kind: "failed",
          message: failure.message,
          isTerminal: failure.retry === "terminal",
          afterMs,
        };
  }
}

/** A pass that came to rest, on its way into status and memory. */
interface FinishedPass {
  readonly result: PassResult;
  readonly input: ConditionInput;
  readonly last: Memory | undefined;
}

/** Epoch ms of the next attempt at a former place: at once, where there was none yet. */
function cleanupAtMs(result: PassResult, nowMs: number): number | undefined {
  const retiring = result.record.filter((placement) => placement.state === "Retiring");
  const times = retiring.map(
    (placement) =>
      result.removalWaits.get(identity(placement))?.dueMs ?? nowMs + (result.removalPollMs ?? 0),
  );
  return times.length === 0 ? undefined : Math.min(...times);
}

function isFailedRemoval(outcome: Outcome): boolean {
  return outcome.kind === "removing" && outcome.failure !== undefined;
}

function adviceOf(choice: ClassChoice): Pick<ConditionInput, "scaleOutAtPercent"> {
  if (choice.kind !== "chosen") return {};
  const { scaleOutAtPercent } = choice.class;
  return scaleOutAtPercent === undefined ? {} : { scaleOutAtPercent };
}

function provisioningMs(result: PassResult): number {
  return result.choice.kind === "chosen"
    ? result.choice.class.provisioningSeconds * 1000
    : Number.POSITIVE_INFINITY;
}
