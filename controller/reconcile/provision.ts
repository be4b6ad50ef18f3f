/** The acting side of making an instance: Describe, Ensure, and what their answers mean. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { Change } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { EnsureResponse } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Instance } from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { ConnectedProvider } from "../providers/providers.ts";
import type { ProviderClass } from "../resource/provider-class.ts";
import type { Place, Placement } from "../resource/placement.ts";
import { deletionPolicyOf, wantedSpec } from "../resource/wanted.ts";
import { recordAfterEnsure } from "./decide.ts";
import type { SettlingTimes } from "./doubt.ts";
import { failureOf, leavesDoubt } from "./failure.ts";
import { observeInstance } from "./observed-instance.ts";
import type { ObservedInstance } from "./observed-instance.ts";
import { describeRequest, ensureRequest } from "./provider-requests.ts";
import type { PassState } from "./pass-state.ts";
import { fencedUntilMs } from "./reconciler-parts.ts";
import type { ReconcilerParts } from "./reconciler-parts.ts";

/** Describe at a place that is not recorded: only the vendor's answer may lead to a record. */
export async function describePlace(
  parts: ReconcilerParts,
  state: PassState,
  place: Place,
): Promise<void> {
  const chosen = chosenClass(state);
  const doing = `describe "${state.object.key}" at ${place.endpoint}`;
  try {
    const provider = await parts.providers.connected(chosen.adapter);
    const refusal = refusalOf(state, chosen, provider);
    if (refusal !== undefined) {
      state.outcome = { kind: "refused", message: refusal };
      state.facts = { ...state.facts, isEnsured: true };
      return;
    }
    if (!(await mayRecordWith(parts, chosen))) {
      state.outcome = { kind: "no-class", reason: "NoClass", message: beingDeleted(chosen) };
      state.facts = { ...state.facts, isEnsured: true };
      return;
    }
    const wanted = wantedSpec(state.object.spec, chosen);
    const recorded = { providerId: "", realm: "" };
    const request = describeRequest(parts.identity, state.object, { place, wanted, recorded });
    const answer = await provider.client.describe(request, callOptions(parts, state));
    tookDescribed(parts, state, place, namedInstance("Describe", answer.instance));
  } catch (error) {
    const realm = absentRealm(error);
    if (realm !== undefined) state.facts = { ...state.facts, described: { realm } };
    else failed(parts, state, error, doing);
  }
}

/** A class that goes takes nothing new; another one stays from now on until nobody uses it. */
async function mayRecordWith(parts: ReconcilerParts, chosen: ProviderClass): Promise<boolean> {
  if (chosen.isDeleting) return false;
  if (chosen.isProtected) return true;
  return (await parts.objects.protectClass(chosen.name)) === "protected";
}

function beingDeleted({ name }: ProviderClass): string {
  return `class "${name}" is being deleted and takes no new instance: name another one in spec.className`;
}

function tookDescribed(
  parts: ReconcilerParts,
  state: PassState,
  place: Place,
  instance: Instance,
): void {
  const owner = foreignOwner(parts, instance);
  state.facts = {
    ...state.facts,
    described: {
      realm: instance.realm,
      ...(owner === undefined ? {} : { foreignOwner: owner }),
    },
  };
  if (owner !== undefined) {
    state.outcome = { kind: "owned-by-another", owner, endpoint: place.endpoint };
  }
}

/** The other cluster that an instance belongs to; undefined: ours, or nobody's. */
function foreignOwner(parts: ReconcilerParts, instance: Instance): string | undefined {
  const cluster = instance.owner?.cluster ?? "";
  return cluster === "" || cluster === parts.identity.cluster ? undefined : cluster;
}

/** The realm in which the vendor attested absence; undefined: it attested nothing. */
function absentRealm(error: unknown): string | undefined {
  if (!(error instanceof ProviderError) || error.reason !== "NOT_FOUND") return undefined;
  const { realm } = error.facts;
  return realm === undefined || realm === "" ? undefined : realm;
}

/** What cannot be taken back is not made: refused before creating, unless the policy fits. */
function refusalOf(
  state: PassState,
  chosen: ProviderClass,
  provider: ConnectedProvider,
): string | undefined {
  const policy = deletionPolicyOf(state.object.spec, chosen);
  if (policy === "Delete" && !provider.canDelete) {
    return `adapter "${provider.name}" cannot delete instances: set spec.deletionPolicy to Retain to have one that stays and may be billed`;
  }
  if (policy === "Retain" && !provider.canRelease) {
    return `adapter "${provider.name}" cannot release instances: spec.deletionPolicy has to be Delete`;
  }
  return undefined;
}

export async function ensurePlacement(
  parts: ReconcilerParts,
  state: PassState,
  ask: { readonly placement: Placement; readonly mayCreate: boolean },
): Promise<void> {
  const { placement, mayCreate } = ask;
  const chosen = chosenClass(state);
  const doing = `ensure "${state.object.key}" at ${placement.endpoint}`;
  const { key } = state.object;
  let provider: ConnectedProvider;
  try {
    provider = await parts.providers.connected(chosen.adapter);
  } catch (error) {
    return failed(parts, state, error, doing);
  }
  // Doubt inherited from an earlier process ends with the adapter's own times, known only now.
  parts.inherited.resolve(key, placement.realm, provider.settling);
  const notAfterMs = fencedUntilMs(parts);
  const wanted = wantedSpec(state.object.spec, chosen);
  const recorded = recordedOf(parts, key, placement);
  const request = ensureRequest(parts.identity, state.object, {
    place: placement,
    wanted,
    recorded,
    mayCreate,
    notAfterMs,
  });
  try {
    const answer = await provider.client.ensure(request, callOptions(parts, state));
    state.answered = { realm: placement.realm, notAfterMs, settling: provider.settling };
    tookEnsured(parts, state, placement, { answer, settling: provider.settling });
  } catch (error) {
    // To a call that may create, it is a refusal like any other.
    if (!mayCreate && error instanceof ProviderError && error.reason === "IN_DOUBT") {
      state.facts = { ...state.facts, isAbsent: true };
      return;
    }
    const isLost = !(error instanceof ProviderError) || leavesDoubt(error);
    if (mayCreate && isLost) {
      parts.doubts.begin(key, placement.realm, notAfterMs, provider.settling);
      tookPart(parts, state, placement, error);
    }
    failed(parts, state, error, doing);
  }
}

/**
 * Records the id of an instance that a failed create left behind: it may carry no stamp yet, and then
 * nothing else leads to it. Not of an adoption, whose instance may be a stranger's still.
 */
function tookPart(
  parts: ReconcilerParts,
  state: PassState,
  placement: Placement,
  error: unknown,
): void {
  const providerID = error instanceof ProviderError ? (error.facts.providerId ?? "") : "";
  if (providerID === "" || state.object.spec.adopt !== undefined) return;
  parts.memories.rememberAnsweredId(state.object.key, placement.realm, providerID);
  state.record = recordAfterEnsure(state.object.record, placement, { providerID, isReady: false });
}

/** Reads alone: for driftPolicy Observe. */
export async function observePlacement(
  parts: ReconcilerParts,
  state: PassState,
  placement: Placement,
): Promise<void> {
  const chosen = chosenClass(state);
  const doing = `describe "${state.object.key}" at ${placement.endpoint}`;
  try {
    const provider = await parts.providers.connected(chosen.adapter);
    parts.inherited.resolve(state.object.key, placement.realm, provider.settling);
    const request = describeRequest(parts.identity, state.object, {
      place: placement,
      wanted: wantedSpec(state.object.spec, chosen),
      recorded: recordedOf(parts, state.object.key, placement),
    });
    const answer = await provider.client.describe(request, callOptions(parts, state));
    const instance = namedInstance("Describe", answer.instance);
    if (instance.realm !== placement.realm) throw wrongRealm(placement, instance.realm);
    const owner = foreignOwner(parts, instance);
    if (owner === undefined) return settle(state, placement, observeInstance(instance));
    state.outcome = { kind: "owned-by-another", owner, endpoint: placement.endpoint };
    state.facts = { ...state.facts, isEnsured: true };
  } catch (error) {
    if (absentRealm(error) === placement.realm) state.facts = { ...state.facts, isAbsent: true };
    else failed(parts, state, error, doing);
  }
}

function tookEnsured(
  parts: ReconcilerParts,
  state: PassState,
  placement: Placement,
  { answer, settling }: { readonly answer: EnsureResponse; readonly settling: SettlingTimes },
): void {
  const instance = observeInstance(namedInstance("Ensure", answer.instance));
  if (instance.realm !== placement.realm) throw wrongRealm(placement, instance.realm);
  parts.memories.rememberAnsweredId(state.object.key, placement.realm, instance.providerID);
  // Lists may lag behind what this call has changed.
  const lagMs = answer.change === Change.NONE ? 0 : settling.visibilityLagMs;
  settle(state, placement, instance, lagMs);
  if (answer.pollAfter !== undefined) state.pollAfterMs = durationMs(answer.pollAfter);
  tellChange(parts, state, answer.change, instance, placement);
}

function settle(
  state: PassState,
  placement: Placement,
  instance: ObservedInstance,
  lagMs = 0,
): void {
  state.record = recordAfterEnsure(state.object.record, placement, {
    providerID: instance.providerID,
    isReady: instance.state === "READY",
  });
  const trustHealthAfterMs = (instance.observedAtMs ?? 0) + lagMs;
  const { endpoint } = placement;
  state.outcome = { kind: "ensured", instance, endpoint, trustHealthAfterMs };
  state.facts = { ...state.facts, isEnsured: true };
}

const changeEvents: ReadonlyMap<Change, readonly [string, string]> = new Map([
  [Change.CREATED, ["Created", "created"]],
  [Change.UPDATED, ["Updated", "updated"]],
  [Change.RESTAMPED, ["Restamped", "restamped"]],
  [Change.ADOPTED, ["Adopted", "adopted"]],
]);

function tellChange(
  parts: ReconcilerParts,
  state: PassState,
  change: Change,
  instance: ObservedInstance,
  place: Place,
): void {
  const words = changeEvents.get(change);
  if (words === undefined) return;
  const [reason, did] = words;
  const isAgain = reason === "Created" && state.facts.isAbsent;
  parts.objects.event(state.object, {
    type: "Normal",
    reason: isAgain ? "Recreated" : reason,
    action: "Ensure",
    note: isAgain
      ? `the instance was gone at the vendor; created ${instance.providerID} at ${place.endpoint}`
      : `${did} ${instance.providerID} at ${place.endpoint}`,
  });
}

/** Records a failure of the pass; a bug stays an error. */
function failed(parts: ReconcilerParts, state: PassState, error: unknown, doing: string): void {
  if (!(error instanceof ProviderError)) throw error;
  const failure = failureOf(error, doing, parts.clock.now());
  state.outcome = { kind: "failed", failure };
  state.facts = { ...state.facts, isEnsured: true };
}

export function callOptions(parts: ReconcilerParts, state: PassState) {
  return { deadlineMs: parts.options.callDeadlineMs, signal: state.signal };
}

/** The recorded id, or the one an earlier answer named that could not be recorded yet. */
export function recordedOf(parts: ReconcilerParts, key: string, placement: Placement) {
  const { providerID, realm } = placement;
  return { providerId: providerID || parts.memories.answeredId(key, realm), realm };
}

function chosenClass(state: PassState): ProviderClass {
  if (state.choice.kind === "chosen") return state.choice.class;
  throw new Error(`no class is chosen for "${state.object.key}"`);
}

/** The class that serves a recorded placement; undefined when it was deleted. */
export function classOf(parts: ReconcilerParts, placement: Placement): ProviderClass | undefined {
  return parts.objects.classes().find((candidate) => candidate.name === placement.class);
}

/** An answer from another vendor account or region than the recorded one: nothing it says counts. */
export function wrongRealm(placement: Placement, realm: string): ProviderError {
  return new ProviderError(
    "WRONG_REALM",
    `the adapter answers for "${realm}", the record says "${placement.realm}": the account behind ${placement.endpoint} has changed; give the class its old account back`,
    { outcome: "UNKNOWN" },
  );
}

/** What has no name, or no realm that the name holds in, could never be found again. */
function namedInstance(rpc: string, instance: Instance | undefined): Instance {
  if (instance === undefined) throw unreadable(`${rpc} answered without an instance`);
  const missing = instance.realm === "" ? "realm" : instance.providerId === "" ? "provider_id" : "";
  if (missing === "") return instance;
  throw unreadable(`${rpc} answered with an instance without ${missing}`);
}

function unreadable(message: string): ProviderError {
  return new ProviderError("VENDOR_UNREADABLE", message, { outcome: "UNKNOWN" });
}
