/**
 * What to do next for one object: pure, one step at a time, in the order of the record's rules.
 * The pass acts on the step, adds what it learned to `Facts`, and asks again.
 *
 * The rules (each was found necessary by a model checker; change none without one):
 *  1. First creation: read the vendor first; then one write adds finalizer and first-placement.
 *  2. Move: read B first; in the same realm one write replaces A by B; elsewhere record both, ensure
 *     B, and retire A only when B is READY. A retiring placement is finished, never ensured again.
 *  3. Delete visits each recorded placement; it leaves the record on the vendor's word alone.
 *  4. In doubt nobody creates, and no absence is believed.
 *  5. Create follows only a successful optimistic write or a live read in the same pass; what has
 *     vanished first loses its recorded id.
 */
import type { ClassChoice } from "../resource/class-choice.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import { cleanupFinalizer } from "../resource/names.ts";
import { isSamePlace } from "../resource/placement.ts";
import type { Place, Placement } from "../resource/placement.ts";

/** What one pass has learned so far; starts empty. */
export interface Facts {
  /** The object was read live, or written with its resourceVersion, in this pass. */
  readonly isFresh: boolean;
  /** Answer of Describe at a place that is not recorded yet. */
  readonly described?: Described;
  /** Ensure without may_create said: not there. */
  readonly isAbsent: boolean;
  /** Ensure has answered, well or not; its pass part is over. */
  readonly isEnsured: boolean;
  /** Removal answers by placement identity. */
  readonly removals: ReadonlyMap<string, RemovalAnswer>;
}

export interface Described {
  readonly realm: string;
  /** The instance found there belongs to this other cluster. */
  readonly foreignOwner?: string;
}

/** "gone": attested and outside doubt. "open": not finished, failed, or not believed yet. */
export type RemovalAnswer = "gone" | "open";

export interface View {
  readonly object: DigitalHumanProvider;
  readonly choice: ClassChoice;
  /** Memory says that nothing changed since the vendor's last answer, and none is due. */
  readonly isSettled: boolean;
  readonly isInDoubt: (realm: string) => boolean;
  readonly facts: Facts;
}

export type Step =
  /** Nothing more in this pass: publish what is known. */
  | { readonly kind: "rest"; readonly why: RestReason }
  | { readonly kind: "remove-finalizer" }
  | { readonly kind: "restore-finalizer" }
  | { readonly kind: "remove"; readonly placement: Placement }
  /** Write the record without the placements that are gone. */
  | { readonly kind: "drop"; readonly record: readonly Placement[] }
  | { readonly kind: "describe"; readonly place: Place }
  | { readonly kind: "record-first"; readonly placement: Placement }
  | { readonly kind: "record"; readonly record: readonly Placement[] }
  /** Read the object live before a create. */
  | { readonly kind: "confirm" }
  | { readonly kind: "clear-id"; readonly record: readonly Placement[] }
  | { readonly kind: "observe"; readonly placement: Placement }
  | { readonly kind: "ensure"; readonly placement: Placement; readonly mayCreate: boolean };

export type RestReason =
  | "settled"
  | "no-class"
  | "suspended"
  | "protected"
  | "not-ours"
  | "owned-by-another"
  | "in-doubt"
  | "ensured"
  | "retiring"
  | "removing"
  | "record-full";

/** Former places wait to be finished before more are recorded. */
export const placementsMax = 16;

export function noFacts(): Facts {
  return { isFresh: false, isAbsent: false, isEnsured: false, removals: new Map() };
}

export function decide(view: View): Step {
  const { object, isSettled } = view;
  if (object.isDeleting && !object.finalizers.includes(cleanupFinalizer)) return rest("not-ours");
  if (object.isDeleting && object.record.length === 0) return { kind: "remove-finalizer" };
  if (isSettled) return rest("settled");
  return object.isDeleting ? decideDeletion(view) : decideProvision(view);
}

function decideDeletion({ object, facts }: View): Step {
  if (object.spec.isDeletionProtected) return rest("protected");
  const next = object.record.find((placement) => !facts.removals.has(identity(placement)));
  if (next !== undefined) return { kind: "remove", placement: next };
  const left = withoutGone(object.record, facts);
  if (left.length === 0) return { kind: "remove-finalizer" };
  return left.length < object.record.length ? { kind: "drop", record: left } : rest("removing");
}

function decideProvision(view: View): Step {
  const { object, choice, facts } = view;
  if (object.spec.isSuspended) return rest("suspended");
  const unfinished = finishRetiring(object.record, facts);
  if (unfinished !== undefined) return unfinished;
  if (choice.kind === "none") return rest("no-class");
  const placement = object.record.find((candidate) => isSamePlace(candidate, choice.place));
  if (placement === undefined) return decideRecord(view, choice.place);
  if (placement.state === "Retiring") return rest("retiring");
  if (!object.finalizers.includes(cleanupFinalizer)) return { kind: "restore-finalizer" };
  return decideEnsure(view, placement);
}

/** Rule 2, last part: a retiring placement is finished and dropped before anything else. */
function finishRetiring(record: readonly Placement[], facts: Facts): Step | undefined {
  const retiring = record.filter((placement) => placement.state === "Retiring");
  const next = retiring.find((placement) => !facts.removals.has(identity(placement)));
  if (next !== undefined) return { kind: "remove", placement: next };
  const left = withoutGone(record, facts);
  return left.length < record.length ? { kind: "drop", record: left } : undefined;
}

/** Rules 1 and 2: nothing is recorded at the wanted place yet. */
function decideRecord({ object, facts }: View, place: Place): Step {
  const { described } = facts;
  if (facts.isEnsured) return rest("ensured");
  if (described === undefined) return { kind: "describe", place };
  if (described.foreignOwner !== undefined && object.spec.adopt === undefined) {
    return rest("owned-by-another");
  }
  const placement: Placement = {
    ...place,
    realm: described.realm,
    providerID: "",
    state: "Recorded",
    unknown: {},
  };
  if (object.record.length === 0) return { kind: "record-first", placement };
  const inRealm = object.record.find((candidate) => candidate.realm === described.realm);
  if (inRealm?.state === "Retiring") return rest("retiring");
  if (inRealm !== undefined) {
    const moved = { ...placement, providerID: inRealm.providerID, unknown: inRealm.unknown };
    return {
      kind: "record",
      record: object.record.map((candidate) => (candidate === inRealm ? moved : candidate)),
    };
  }
  if (object.record.length >= placementsMax) return rest("record-full");
  return { kind: "record", record: [...object.record, placement] };
}

/** Rules 4 and 5: who may create, and after what. */
function decideEnsure(view: View, placement: Placement): Step {
  const { object, facts } = view;
  if (facts.isEnsured) return rest("ensured");
  const isInDoubt = view.isInDoubt(placement.realm);
  if (facts.isAbsent && isInDoubt) return rest("in-doubt");
  const mayBeThere = placement.providerID !== "" && !facts.isAbsent;
  if (isInDoubt || mayBeThere) {
    return isObserveOnly(object, placement, facts)
      ? { kind: "observe", placement }
      : { kind: "ensure", placement, mayCreate: false };
  }
  if (placement.providerID !== "") {
    const change = { providerID: "", lastProviderID: placement.providerID };
    return { kind: "clear-id", record: replaced(object.record, placement, change) };
  }
  if (!facts.isFresh) return { kind: "confirm" };
  return { kind: "ensure", placement, mayCreate: true };
}

/** driftPolicy Observe: an instance that already is as some generation asked is only read. */
function isObserveOnly(object: DigitalHumanProvider, placement: Placement, facts: Facts): boolean {
  return (
    object.spec.driftPolicy === "Observe" &&
    placement.providerID !== "" &&
    object.status.observedGeneration === object.generation &&
    !facts.isAbsent
  );
}

/**
 * The record after Ensure answered: the id as the vendor says, and, once READY, every other
 * placement marked as retiring (rule 2).
 */
export function recordAfterEnsure(
  record: readonly Placement[],
  at: Place,
  answer: { readonly providerID: string; readonly isReady: boolean },
): readonly Placement[] {
  return record.map((placement) => {
    if (isSamePlace(placement, at)) {
      return placement.providerID === answer.providerID
        ? placement
        : { ...placement, providerID: answer.providerID };
    }
    return answer.isReady && placement.state !== "Retiring"
      ? { ...placement, state: "Retiring" as const }
      : placement;
  });
}

/** Names a placement within one object's record. */
export function identity(placement: Placement): string {
  const { realm, class: className, endpoint, region, account } = placement;
  return JSON.stringify([realm, className, endpoint, region, account]);
}

function replaced(
  record: readonly Placement[],
  placement: Placement,
  change: Partial<Placement>,
): readonly Placement[] {
  return record.map((candidate) =>
    candidate === placement ? { ...candidate, ...change } : candidate,
  );
}

function withoutGone(record: readonly Placement[], facts: Facts): readonly Placement[] {
  return record.filter((placement) => facts.removals.get(identity(placement)) !== "gone");
}

function rest(why: RestReason): Step {
  return { kind: "rest", why };
}
