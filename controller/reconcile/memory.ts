/**
 * What one process remembers of an object between passes. All of it can be lost: a fresh process
 * asks the vendor again. It keeps a settled object free of requests, and a failed one from being
 * asked again before its time by an event that changes nothing.
 */
import type { ClassChoice } from "../resource/class-choice.ts";
import { conditionOf } from "../resource/digital-human-provider.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import { cleanupFinalizer, reconcileRequestedAnnotation } from "../resource/names.ts";
import { isSamePlace, placementToJson } from "../resource/placement.ts";
import type { Place } from "../resource/placement.ts";
import type { Outcome } from "./conditions.ts";
import { holdMsMax, rateLimitedFailure } from "./failure.ts";
import type { Failure } from "./failure.ts";

export interface Memory {
  /** The incarnation it is about: a name can come back while it is remembered. */
  readonly uid: string;
  /** Everything the last pass depended on; another value calls for a new pass. */
  readonly fingerprint: string;
  readonly outcome: Outcome;
  readonly removalWaits: RemovalWaits;
  /** Epoch ms of the next pass that asks the vendor, if nothing changes before. */
  readonly dueMs: number;
  /** Epoch ms before which the vendor asked not to be called, changed or not; 0: none. */
  readonly holdUntilMs: number;
  /** The place the hold is about; absent: the recorded ones, which are being removed. */
  readonly holdPlace?: Place;
  /** Failures in a row, for the back-off. */
  readonly failures: number;
}

/** Removals that failed, by placement identity. */
export type RemovalWaits = ReadonlyMap<string, RemovalWait>;

/** Why a placement is not removed yet, and when that is tried again. */
export interface RemovalWait {
  readonly failure: Failure;
  /** Failures in a row. */
  readonly failures: number;
  /** Epoch ms of the next attempt. */
  readonly dueMs: number;
  /** Epoch ms before which the vendor asked not to be called, deletion or not; 0: none. */
  readonly holdUntilMs: number;
}

export class Memories {
  readonly #byKey = new Map<string, Memory>();
  /** Ids an Ensure answered that could not be recorded yet, by key and realm. */
  readonly #answeredIds = new Map<string, ReadonlyMap<string, string>>();

  get(key: string): Memory | undefined {
    return this.#byKey.get(key);
  }

  set(key: string, memory: Memory): void {
    this.#byKey.set(key, memory);
  }

  /** The next pass asks the vendor, though nothing of the object has changed. */
  lookAgain(key: string): void {
    const memory = this.#byKey.get(key);
    if (memory !== undefined) this.#byKey.set(key, { ...memory, fingerprint: "" });
  }

  answeredId(key: string, realm: string): string {
    return this.#answeredIds.get(key)?.get(realm) ?? "";
  }

  rememberAnsweredId(key: string, realm: string, providerID: string): void {
    this.#answeredIds.set(
      key,
      new Map([...(this.#answeredIds.get(key) ?? []), [realm, providerID]]),
    );
  }

  forgetAnsweredId(key: string, realm: string): void {
    const ids = new Map(this.#answeredIds.get(key) ?? []);
    ids.delete(realm);
    if (ids.size === 0) this.#answeredIds.delete(key);
    else this.#answeredIds.set(key, ids);
  }

  forget(key: string): void {
    this.#byKey.delete(key);
    this.#answeredIds.delete(key);
  }
}

/**
 * What the status still says of a vendor that asked to be left alone: a fresh process heeds it too.
 * Undefined: nothing, or it may be about another place than the object's.
 */
export function recordedHold(
  object: DigitalHumanProvider,
  choice: ClassChoice,
  nowMs: number,
): Memory | undefined {
  const { status, record } = object;
  const limited = conditionOf(status, "RateLimited");
  const untilMs = Date.parse(status.rateLimitedUntil ?? "");
  // Beyond what a hint is believed for somebody else has written it.
  const isHolding = nowMs < untilMs && untilMs <= nowMs + holdMsMax;
  if (!isHolding || limited?.status !== "True" || choice.kind !== "chosen") return undefined;
  // Nobody calls for it, and what it shows is not a failure.
  if (object.spec.isSuspended) return undefined;
  const isAboutPlace =
    limited.observedGeneration === object.generation ||
    record.some((placement) => isSamePlace(placement, choice.place));
  if (!isAboutPlace) return undefined;
  const failure = rateLimitedFailure(limited.message, untilMs);
  return {
    uid: object.uid,
    fingerprint: "",
    outcome: { kind: "failed", failure },
    removalWaits: new Map(),
    dueMs: untilMs,
    holdUntilMs: untilMs,
    holdPlace: choice.place,
    failures: 0,
  };
}

/** True while the vendor that this object has to do with is to be left alone, whatever changed. */
export function isHeld(
  { holdUntilMs, holdPlace }: Memory,
  now: {
    readonly ms: number;
    readonly choice: ClassChoice;
    readonly object: Pick<DigitalHumanProvider, "isDeleting">;
  },
): boolean {
  if (now.ms >= holdUntilMs) return false;
  if (now.object.isDeleting || holdPlace === undefined) return true;
  return now.choice.kind === "chosen" && isSamePlace(now.choice.place, holdPlace);
}

/** What a pass depends on: the object's wishes, its record, its class. Not its conditions. */
export function fingerprintOf(object: DigitalHumanProvider, choice: ClassChoice): string {
  return JSON.stringify([
    object.uid,
    object.generation,
    object.isDeleting,
    object.finalizers.includes(cleanupFinalizer),
    object.annotations[reconcileRequestedAnnotation] ?? "",
    object.record.map(placementToJson),
    choice.kind === "chosen"
      ? [choice.class.uid, choice.class.generation]
      : [choice.reason, choice.message],
  ]);
}
