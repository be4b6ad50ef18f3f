/**
 * The acting side of rule 3: one recorded placement is deleted (or released), and its answer is
 * believed only outside doubt.
 */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { RemovalState } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  DeleteResponse,
  ReleaseResponse,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { ConnectedProvider } from "../providers/providers.ts";
import type { Placement } from "../resource/placement.ts";
import type { ProviderClass } from "../resource/provider-class.ts";
import { deletionPolicyOf } from "../resource/wanted.ts";
import { identity } from "./decide.ts";
import type { RemovalAnswer } from "./decide.ts";
import { failureOf, leavesDoubt } from "./failure.ts";
import type { Failure } from "./failure.ts";
import type { RemovalWait } from "./memory.ts";
import { deleteRequest, releaseRequest } from "./provider-requests.ts";
import { callOptions, classOf, recordedOf, wrongRealm } from "./provision.ts";
import type { PassState } from "./pass-state.ts";
import { doubtUntilMs, fencedUntilMs } from "./reconciler-parts.ts";
import type { ReconcilerParts } from "./reconciler-parts.ts";
import { dueAfterFailure } from "./schedule.ts";

export async function removePlacement(
  parts: ReconcilerParts,
  state: PassState,
  placement: Placement,
): Promise<void> {
  const wait = state.removalWaits.get(identity(placement));
  if (wait !== undefined && isTooEarly(parts, state, wait)) {
    return stillOpen(state, placement, wait.failure);
  }
  const removal: Removal = { parts, state, placement };
  const served = classOf(parts, placement);
  if (served === undefined) return failed(removal, missingClass(state, placement));
  let provider: ConnectedProvider;
  try {
    provider = await parts.providers.connected(served.adapter);
  } catch (error) {
    return failed(removal, failureFrom(error, doing("remove", removal), parts.clock.now()));
  }
  parts.inherited.resolve(state.object.key, placement.realm, provider.settling);
  const verb = isRetained(state, placement, served, provider) ? "release" : "delete";
  const waitMs = verb === "delete" ? brakeMs(removal, served) : 0;
  if (waitMs > 0) return waits(removal, brakeWords(served), waitMs);
  const notAfterMs = fencedUntilMs(parts);
  try {
    tookAnswer(removal, await callRemoval(removal, { provider, verb, notAfterMs }));
  } catch (error) {
    if (attestsAbsence(error, placement)) return tookAbsence(removal, error);
    if (!(error instanceof ProviderError) || leavesDoubt(error)) {
      parts.doubts.begin(state.object.key, placement.realm, notAfterMs, provider.settling);
    }
    if (isNotYet(error)) return waits(removal, error.message, retryMs(removal, error));
    const said = sameRealm(error, placement);
    failed(removal, failureFrom(said, doing(verb, removal), parts.clock.now()));
  }
}

interface Removal {
  readonly parts: ReconcilerParts;
  readonly state: PassState;
  readonly placement: Placement;
}

/** A new deletion does not wait for our own patience with a former place, only for the vendor's. */
function isTooEarly(parts: ReconcilerParts, state: PassState, wait: RemovalWait): boolean {
  return parts.clock.now() < (state.object.isDeleting ? wait.holdUntilMs : wait.dueMs);
}

function doing(verb: "delete" | "release" | "remove", { state, placement }: Removal): string {
  return `${verb} "${state.object.key}" at ${placement.endpoint}`;
}

/**
 * Retain holds for where the object lives. A former place is cleaned up, unless the vendor cannot
 * delete: then the stamp comes off, so that the move comes to its end.
 */
function isRetained(
  state: PassState,
  placement: Placement,
  served: ProviderClass,
  provider: ConnectedProvider,
): boolean {
  if (deletionPolicyOf(state.object.spec, served) !== "Retain") return false;
  return placement.state !== "Retiring" || !provider.canDelete;
}

async function callRemoval(
  { parts, state, placement }: Removal,
  call: {
    readonly provider: ConnectedProvider;
    readonly verb: "delete" | "release";
    readonly notAfterMs: number;
  },
): Promise<DeleteResponse | ReleaseResponse> {
  const { provider, verb, notAfterMs } = call;
  const recorded = recordedOf(parts, state.object.key, placement);
  const ask = { place: placement, recorded, notAfterMs };
  const options = callOptions(parts, state);
  return verb === "release"
    ? provider.client.release(releaseRequest(parts.identity, state.object, ask), options)
    : provider.client.delete(deleteRequest(parts.identity, state.object, ask), options);
}

function tookAnswer(removal: Removal, answer: DeleteResponse | ReleaseResponse): void {
  const { parts, state, placement } = removal;
  // Something was removed, but not in the realm that the record speaks of.
  if (answer.realm !== placement.realm) throw wrongRealm(placement, answer.realm);
  if (answer.state === RemovalState.DELETED) {
    gone(removal);
    return;
  }
  const { pollAfter } = answer;
  const pollMs = pollAfter === undefined ? parts.options.pollMs : durationMs(pollAfter);
  askAgainIn(state, pollMs);
  state.removalWaits.delete(identity(placement));
  answered(state, placement, "open");
}

/** NOT_FOUND in the recorded realm, or a foreign owner there: nothing of ours is left. */
function attestsAbsence(error: unknown, placement: Placement): error is ProviderError {
  return isAbsence(error) && error.facts.realm === placement.realm;
}

function isAbsence(error: unknown): error is ProviderError {
  if (!(error instanceof ProviderError)) return false;
  return error.reason === "NOT_FOUND" || error.reason === "NOT_OURS";
}

/** An absence that another realm attests says that the way there leads elsewhere now. */
function sameRealm(error: unknown, placement: Placement): unknown {
  const realm = isAbsence(error) ? error.facts.realm : undefined;
  return realm === undefined ? error : wrongRealm(placement, realm);
}

function tookAbsence(removal: Removal, error: ProviderError): void {
  const { parts, state, placement } = removal;
  if (gone(removal) && error.reason === "NOT_OURS") {
    parts.objects.event(state.object, {
      type: "Warning",
      reason: "NotOurs",
      action: "Delete",
      note: `the instance at ${placement.endpoint} belongs to "${error.facts.owner ?? "another cluster"}": it was left alone, and the record of it is dropped`,
    });
  }
}

/** True when the placement may leave the record: absence is believed outside doubt alone. */
function gone({ parts, state, placement }: Removal): boolean {
  state.removalWaits.delete(identity(placement));
  const untilMs = doubtUntilMs(parts, state.object.key, placement.realm);
  if (untilMs === 0) {
    parts.memories.forgetAnsweredId(state.object.key, placement.realm);
    answered(state, placement, "gone");
    return true;
  }
  answered(state, placement, "open");
  if (state.object.isDeleting && state.outcome === undefined) {
    state.outcome = { kind: "removing", untilMs };
  }
  askAgainIn(state, untilMs - parts.clock.now());
  return false;
}

function brakeMs({ parts, state, placement }: Removal, served: ProviderClass): number {
  const id = `${state.object.key} ${identity(placement)}`;
  const limit = { perMinute: served.maxDeletionsPerMinute, nowMs: parts.clock.now() };
  return parts.deletions.take(served.name, id, limit);
}

/** It names no time: many objects wait, and each would be written to again and again. */
function brakeWords(served: ProviderClass): string {
  return `class "${served.name}" removes at most ${served.maxDeletionsPerMinute} instances a minute (spec.maxDeletionsPerMinute); this one waits its turn`;
}

/** Nothing failed: the adapter itself still doubts an earlier create, or another call holds the key. */
function isNotYet(error: unknown): error is ProviderError {
  if (!(error instanceof ProviderError)) return false;
  return error.reason === "IN_DOUBT" || error.reason === "BUSY";
}

function retryMs({ parts }: Removal, error: ProviderError): number {
  return error.facts.retryAfterMs ?? parts.options.pollMs;
}

function waits({ state, placement }: Removal, why: string, waitMs: number): void {
  answered(state, placement, "open");
  askAgainIn(state, waitMs);
  if (!state.object.isDeleting || state.outcome !== undefined) return;
  state.outcome = { kind: "removing", why };
}

function failed({ parts, state, placement }: Removal, failure: Failure): void {
  const id = identity(placement);
  const failures = (state.removalWaits.get(id)?.failures ?? 0) + 1;
  const due = dueAfterFailure(failure, failures, parts.clock.now(), parts);
  state.removalWaits.set(id, { failure, failures, ...due });
  stillOpen(state, placement, failure);
}

function stillOpen(state: PassState, placement: Placement, failure: Failure): void {
  answered(state, placement, "open");
  if (state.object.isDeleting) state.outcome = { kind: "removing", failure };
}

function askAgainIn(state: PassState, waitMs: number): void {
  state.removalPollMs = Math.min(state.removalPollMs ?? waitMs, waitMs);
}

function answered(state: PassState, placement: Placement, answer: RemovalAnswer): void {
  const removals = new Map(state.facts.removals).set(identity(placement), answer);
  state.facts = { ...state.facts, removals };
}

function failureFrom(error: unknown, doing: string, nowMs: number): Failure {
  if (!(error instanceof ProviderError)) throw error;
  return failureOf(error, doing, nowMs);
}

function missingClass(state: PassState, placement: Placement): Failure {
  const what = `cannot remove "${state.object.key}" at ${placement.endpoint}`;
  const todo = "create it again, or abandon the instance (annotation dhp.example.com/abandon)";
  return {
    readyReason: "DeleteBlocked",
    readyEffect: "refused",
    retry: "terminal",
    needsPerson: true,
    message: `${what}: class "${placement.class}" does not exist any more; ${todo}`,
    reason: undefined,
  };
}
