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
import { deleteRequest, releaseRequest } from "./provider-requests.ts";
import { callOptions, classOf, recordedOf } from "./provision.ts";
import type { PassState } from "./pass-state.ts";
import { doubtUntilMs } from "./reconciler-parts.ts";
import type { ReconcilerParts } from "./reconciler-parts.ts";

export async function removePlacement(
  parts: ReconcilerParts,
  state: PassState,
  placement: Placement,
): Promise<void> {
  const isRetain = isRetained(parts, state, placement);
  const doing = `${isRetain ? "release" : "delete"} "${state.object.key}" at ${placement.endpoint}`;
  const served = classOf(parts, placement);
  if (served === undefined) {
    return open(state, placement, missingClass(placement, doing));
  }
  const notAfterMs = parts.certainUntilMs();
  let provider: ConnectedProvider;
  try {
    provider = await parts.providers.connected(served.adapter);
  } catch (error) {
    return open(state, placement, failureFrom(error, doing));
  }
  parts.inherited.resolve(state.object.key, placement.realm, provider.settling);
  try {
    const answer = await callRemoval(parts, state, { placement, provider, isRetain, notAfterMs });
    tookAnswer(parts, state, placement, answer);
  } catch (error) {
    if (attestsAbsence(error, placement)) return gone(parts, state, placement);
    if (!(error instanceof ProviderError) || leavesDoubt(error)) {
      parts.doubts.begin(state.object.key, placement.realm, notAfterMs, provider.settling);
    }
    open(state, placement, failureFrom(error, doing));
  }
}

/** Retain holds for where the object lives; a former place is always cleaned up. */
function isRetained(parts: ReconcilerParts, state: PassState, placement: Placement): boolean {
  if (placement.state === "Retiring") return false;
  const served: ProviderClass | undefined = classOf(parts, placement);
  return served !== undefined && deletionPolicyOf(state.object.spec, served) === "Retain";
}

async function callRemoval(
  parts: ReconcilerParts,
  state: PassState,
  call: {
    readonly placement: Placement;
    readonly provider: ConnectedProvider;
    readonly isRetain: boolean;
    readonly notAfterMs: number;
  },
): Promise<DeleteResponse | ReleaseResponse> {
  const { placement, provider, notAfterMs } = call;
  const ask = {
    place: placement,
    recorded: recordedOf(parts, state.object.key, placement),
    notAfterMs,
  };
  const options = callOptions(parts, state);
  return call.isRetain
    ? provider.client.release(releaseRequest(parts.identity, state.object, ask), options)
    : provider.client.delete(deleteRequest(parts.identity, state.object, ask), options);
}

function tookAnswer(
  parts: ReconcilerParts,
  state: PassState,
  placement: Placement,
  answer: DeleteResponse | ReleaseResponse,
): void {
  if (answer.state === RemovalState.DELETED && answer.realm === placement.realm) {
    return gone(parts, state, placement);
  }
  if (answer.pollAfter !== undefined) state.pollAfterMs = durationMs(answer.pollAfter);
  answered(state, placement, "open");
}

/** NOT_FOUND in the recorded realm, or a foreign owner there: nothing of ours is left. */
function attestsAbsence(error: unknown, placement: Placement): boolean {
  if (!(error instanceof ProviderError)) return false;
  if (error.reason !== "NOT_FOUND" && error.reason !== "NOT_OURS") return false;
  return error.facts.realm === placement.realm;
}

function gone(parts: ReconcilerParts, state: PassState, placement: Placement): void {
  const untilMs = doubtUntilMs(parts, state.object.key, placement.realm);
  if (untilMs === 0) {
    parts.memories.forgetAnsweredId(state.object.key, placement.realm);
    return answered(state, placement, "gone");
  }
  answered(state, placement, "open");
  if (state.object.isDeleting && state.outcome === undefined) {
    state.outcome = { kind: "removing", untilMs };
  }
  const waitMs = untilMs - parts.clock.now();
  state.pollAfterMs = Math.min(state.pollAfterMs ?? waitMs, waitMs);
}

function open(state: PassState, placement: Placement, failure: Failure): void {
  answered(state, placement, "open");
  state.cleanupFailures.set(placement.endpoint, failure.message);
  if (state.object.isDeleting) state.outcome = { kind: "removing", failure };
}

function answered(state: PassState, placement: Placement, answer: RemovalAnswer): void {
  const removals = new Map(state.facts.removals).set(identity(placement), answer);
  state.facts = { ...state.facts, removals };
}

function failureFrom(error: unknown, doing: string): Failure {
  if (!(error instanceof ProviderError)) throw error;
  return failureOf(error, doing);
}

function missingClass(placement: Placement, doing: string): Failure {
  return {
    readyReason: "DeleteBlocked",
    readyEffect: "refused",
    retry: "terminal",
    needsPerson: true,
    message: `cannot ${doing}: class "${placement.class}" does not exist any more; create it again, or abandon the instance (annotation dhp.example.com/abandon)`,
    reason: undefined,
  };
}
