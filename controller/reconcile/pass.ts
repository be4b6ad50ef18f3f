/**
 * One pass over one object: decide, act, decide again, publish. The thin half of the reconciler;
 * what is decided here is decided by decide.ts.
 */
import { assertNever } from "../../services/process/assert-never.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import { chooseClass } from "../resource/class-choice.ts";
import { cleanupFinalizer, firstPlacementAnnotation } from "../resource/names.ts";
import { firstPlacementValue, isSamePlace } from "../resource/placement.ts";
import type { Placement } from "../resource/placement.ts";
import type { Outcome } from "./conditions.ts";
import { decide, noFacts } from "./decide.ts";
import type { RestReason, Step } from "./decide.ts";
import type { Memory } from "./memory.ts";
import { describePlace, ensurePlacement, observePlacement } from "./provision.ts";
import { removePlacement } from "./removal.ts";
import type { PassResult, PassState } from "./pass-state.ts";
import { doubtUntilMs } from "./reconciler-parts.ts";
import type { ReconcilerParts } from "./reconciler-parts.ts";
import { statusWithRecord } from "./status-patch.ts";

/** A pass that takes more steps than any object can need is a bug, not work. */
const stepsMax = 64;

export async function runPass(
  parts: ReconcilerParts,
  object: DigitalHumanProvider,
  memory: { readonly last: Memory | undefined; readonly isSettled: boolean },
  signal: AbortSignal,
): Promise<PassResult> {
  const choice = chooseClass(object, parts.objects.classes());
  const state: PassState = {
    object,
    choice,
    signal,
    facts: noFacts(),
    outcome: undefined,
    record: object.record,
    removalWaits: new Map(memory.last?.removalWaits),
    pollAfterMs: undefined,
    removalPollMs: undefined,
    answered: undefined,
  };
  try {
    return await takeSteps(parts, state, memory);
  } catch (error) {
    doubtUnrecorded(parts, state);
    throw error;
  }
}

async function takeSteps(
  parts: ReconcilerParts,
  state: PassState,
  memory: { readonly last: Memory | undefined; readonly isSettled: boolean },
): Promise<PassResult> {
  for (let count = 0; count < stepsMax; count++) {
    state.signal.throwIfAborted();
    const step = decide({
      object: state.object,
      choice: state.choice,
      isSettled: memory.isSettled,
      isInDoubt: (realm) => doubtUntilMs(parts, state.object.key, realm) > 0,
      facts: state.facts,
    });
    if (step.kind === "rest") return finish(parts, state, step.why, memory.last);
    const isGone = await act(parts, state, step);
    if (isGone) return { ...finish(parts, state, "not-ours", undefined), object: undefined };
  }
  throw new Error(`pass over "${state.object.key}" did not come to rest within ${stepsMax} steps`);
}

/**
 * Rule 4: an Ensure that answered, but whose id does not reach the record, leaves doubt: whoever
 * looks next must not create.
 */
export function doubtUnrecorded(
  parts: ReconcilerParts,
  pass: Pick<PassResult, "answered" | "record"> & { readonly object: DigitalHumanProvider },
): void {
  const { answered, object, record } = pass;
  if (answered === undefined) return;
  const { realm, notAfterMs, settling } = answered;
  const idIn = (placements: readonly Placement[]) =>
    placements.find((placement) => placement.realm === realm)?.providerID;
  if (idIn(object.record) === idIn(record)) return;
  parts.doubts.begin(object.key, realm, notAfterMs, settling);
}

/** Acts on one step; true when the object is gone. */
async function act(
  parts: ReconcilerParts,
  state: PassState,
  step: Exclude<Step, { kind: "rest" }>,
): Promise<boolean> {
  switch (step.kind) {
    case "remove-finalizer":
      return removeFinalizer(parts, state);
    case "restore-finalizer":
      await patchMetadata(parts, state, { finalizers: withFinalizer(state.object) });
      return false;
    case "remove":
      await removePlacement(parts, state, step.placement);
      return false;
    case "drop":
    case "record":
    case "clear-id":
      await writeRecord(parts, state, step.record);
      return false;
    case "describe":
      await describePlace(parts, state, step.place);
      return false;
    case "record-first":
      await patchMetadata(parts, state, {
        finalizers: withFinalizer(state.object),
        annotations: {
          [firstPlacementAnnotation]: firstPlacementValue(step.placement, state.object.uid),
        },
      });
      return false;
    case "confirm":
      await confirm(parts, state);
      return false;
    case "observe":
      await observePlacement(parts, state, step.placement);
      return false;
    case "ensure":
      await ensurePlacement(parts, state, step);
      return false;
    default:
      return assertNever(step);
  }
}

async function removeFinalizer(parts: ReconcilerParts, state: PassState): Promise<boolean> {
  const finalizers = state.object.finalizers.filter((name) => name !== cleanupFinalizer);
  const after = await parts.objects.patchMetadata(state.object, { finalizers });
  if (state.object.record.length > 0) {
    parts.objects.event(state.object, {
      type: "Normal",
      reason: "Deleted",
      action: "Delete",
      note: `nothing is left at ${state.object.record.map(({ endpoint }) => endpoint).join(", ")}`,
    });
  }
  // Other finalizers may keep the object; it is not ours any more.
  if (after !== undefined) state.object = after;
  return after === undefined;
}

function withFinalizer(object: DigitalHumanProvider): readonly string[] {
  return object.finalizers.includes(cleanupFinalizer)
    ? object.finalizers
    : [...object.finalizers, cleanupFinalizer];
}

async function patchMetadata(
  parts: ReconcilerParts,
  state: PassState,
  change: Parameters<ReconcilerParts["objects"]["patchMetadata"]>[1],
): Promise<void> {
  const after = await parts.objects.patchMetadata(state.object, change);
  if (after === undefined) throw new Error(`object "${state.object.key}" is gone`);
  took(state, after);
}

async function writeRecord(
  parts: ReconcilerParts,
  state: PassState,
  record: readonly Placement[],
): Promise<void> {
  took(
    state,
    await parts.objects.patchStatus(state.object, statusWithRecord(state.object, record)),
  );
}

/** A live read before a create: whatever the cache missed ends the pass. */
async function confirm(parts: ReconcilerParts, state: PassState): Promise<void> {
  const live = await parts.objects.readLive(state.object.key);
  if (live === undefined || live.resourceVersion !== state.object.resourceVersion) {
    throw new CacheBehindError(state.object.key);
  }
  took(state, live);
}

function took(state: PassState, object: DigitalHumanProvider): void {
  state.object = object;
  state.record = object.record;
  state.facts = { ...state.facts, isFresh: true };
}

/** The cache is behind the API server; its next event brings the pass that sees more. */
export class CacheBehindError extends Error {
  override readonly name = "CacheBehindError";

  constructor(key: string) {
    super(`the watch cache is behind the API server for "${key}"`);
  }
}

function finish(
  parts: ReconcilerParts,
  state: PassState,
  why: RestReason,
  last: Memory | undefined,
): PassResult {
  const { object, choice, record, removalWaits, pollAfterMs, removalPollMs, answered } = state;
  return {
    object,
    choice,
    record,
    outcome: outcomeOf(parts, state, why, last),
    removalWaits,
    isSettled: why === "settled",
    pollAfterMs,
    removalPollMs,
    answered,
  };
}

function outcomeOf(
  parts: ReconcilerParts,
  state: PassState,
  why: RestReason,
  last: Memory | undefined,
): Outcome | undefined {
  switch (why) {
    case "settled":
      return settledOutcome(state, last);
    case "not-ours":
      return undefined;
    case "no-class":
      return state.choice.kind === "none"
        ? { kind: "no-class", reason: state.choice.reason, message: state.choice.message }
        : undefined;
    case "suspended":
    case "protected":
    case "retiring":
      return { kind: why };
    case "record-full":
      return {
        kind: "refused",
        message: "too many former places are still being removed: see condition CleanupPending",
      };
    case "in-doubt":
      return inDoubt(parts, state);
    case "removing":
      return state.outcome ?? { kind: "removing" };
    case "owned-by-another":
    case "ensured":
      return state.outcome;
    default:
      return assertNever(why);
  }
}

/** What is remembered, said of what the object is now: a wait can span the begin of its deletion. */
function settledOutcome({ object }: PassState, last: Memory | undefined): Outcome | undefined {
  if (last === undefined || last.uid !== object.uid) return undefined;
  const { outcome } = last;
  return object.isDeleting && outcome.kind === "failed"
    ? { kind: "removing", failure: outcome.failure }
    : outcome;
}

function inDoubt(parts: ReconcilerParts, state: PassState): Outcome {
  const place = state.choice.kind === "chosen" ? state.choice.place : undefined;
  const placement = state.object.record.find(
    (candidate) => place !== undefined && isSamePlace(candidate, place),
  );
  return {
    kind: "in-doubt",
    endpoint: place?.endpoint ?? "",
    untilMs: doubtUntilMs(parts, state.object.key, placement?.realm ?? ""),
  };
}
