/**
 * Delete and Release: find what is ours, end it or let it go, and believe it only when a look at the
 * vendor agrees. Nothing of another cluster's is touched, and "not there" is the vendor's word alone.
 */
import { create } from "@bufbuild/protobuf";

import {
  DeleteResponseSchema,
  ReleaseResponseSchema,
  RemovalState,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  DeleteResponse,
  ReleaseResponse,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../contract/provider-error.ts";
import type { CapabilityName, FoundInstance, Stamp } from "./adapter.ts";
import { pollAfterField } from "./instance-message.ts";
import { findByKey, readKnown } from "./locate.ts";
import { clusterOf, wordsOfOwner } from "./ownership-checks.ts";
import type { MutationQuestion } from "./request-checks.ts";
import type { Run } from "./run.ts";
import { makeStamp, ownershipOf } from "./stamp.ts";

/** Runs with the key held. Errors carry their outcome. */
export async function deleteInstance(
  run: Run,
  question: MutationQuestion,
): Promise<DeleteResponse> {
  const { adapter } = run;
  requireCapability(run, "DELETE");
  run.site.requireInTime();
  const found = await findOwn(run, question);
  if (found.state === "DELETING") return deleting(run);
  const effect = await run.mutate((call) => adapter.delete(call, found), found.id);
  if (effect === "absent") {
    run.nothingRemains();
    throw notFound(run, question);
  }
  run.flights.forget(run.flightKey);
  const rest = await run.after(found.id, () => rests(run, question, found.id));
  if (rest > 0) return deleting(run);
  const { realm } = run;
  return create(DeleteResponseSchema, { state: RemovalState.DELETED, realm });
}

/** Runs with the key held. Errors carry their outcome. */
export async function releaseInstance(
  run: Run,
  question: MutationQuestion,
): Promise<ReleaseResponse> {
  const { adapter, realm, site } = run;
  const { release } = adapter;
  requireCapability(run, "RELEASE");
  if (release === undefined) throw unsupported("RELEASE");
  site.requireInTime();
  const found = await findOwn(run, question);
  if (found.stamp !== undefined) {
    await run.mutate((call) => release.call(adapter, call, found), found.id);
  }
  const again = await run.after(found.id, () => site.read((call) => adapter.read(call, found.id)));
  const isStillOurs = again !== undefined && isOwn(again, stampOf(question), "");
  if (!isStillOurs) return create(ReleaseResponseSchema, { state: RemovalState.DELETED, realm });
  const state = RemovalState.DELETING;
  return create(ReleaseResponseSchema, {
    state,
    realm,
    ...pollAfterField(run.pollAfterMs.deleting),
  });
}

/** How many of ours are still there; more than one where two creates once met. */
async function rests(run: Run, question: MutationQuestion, deletedId: string): Promise<number> {
  const { adapter, lists, site } = run;
  const stamp = stampOf(question);
  return site.read(async (call) => {
    if ((await adapter.read(call, deletedId)) !== undefined) return 1;
    const others = await findByKey(adapter, call, stamp, lists);
    // The id is the better witness: a list may still show what is gone.
    return others.filter((found) => found.id !== deletedId && isOwn(found, stamp, "")).length;
  });
}

/** Ours, or an error that says what the vendor says: NOT_FOUND, NOT_OURS; IN_DOUBT if it may lie. */
async function findOwn(run: Run, question: MutationQuestion): Promise<FoundInstance> {
  const { adapter, flightKey, flights, lists, site } = run;
  const stamp = stampOf(question);
  const recordedId = question.recorded.providerId;
  const found = await site.read(async (call) => {
    const rememberedId = flights.rememberedId(flightKey);
    const known = await readKnown(adapter, call, { stamp, recordedId, rememberedId });
    if (known !== undefined && isOwn(known, stamp, recordedId)) return [known];
    return findByKey(adapter, call, stamp, lists);
  });
  const own = found.filter((instance) => isOwn(instance, stamp, recordedId));
  const next = own.find(({ state }) => state !== "DELETING") ?? own[0];
  if (next !== undefined) return next;
  const [foreign] = found;
  if (foreign !== undefined) throw notOurs(run, foreign);
  const doubtMs = flights.doubtMs(flightKey);
  if (doubtMs !== undefined) {
    const message = "an earlier create may still show its instance";
    throw new ProviderError("IN_DOUBT", message, { retryAfterMs: doubtMs });
  }
  throw notFound(run, question);
}

/** Without a stamp only the recorded id vouches: an id that our key leads to may be a newcomer's. */
function isOwn(found: FoundInstance, stamp: Stamp, recordedId: string): boolean {
  const ownership = ownershipOf(found, stamp);
  if (ownership === "unowned") return found.id === recordedId;
  return ownership !== "foreign";
}

function stampOf(question: MutationQuestion): Stamp {
  return makeStamp(question.key, question.owner, "");
}

function deleting(run: Run): DeleteResponse {
  const state = RemovalState.DELETING;
  const { realm } = run;
  return create(DeleteResponseSchema, {
    state,
    realm,
    ...pollAfterField(run.pollAfterMs.deleting),
  });
}

function notFound(run: Run, question: MutationQuestion): ProviderError {
  const message = `the vendor says that it does not exist in ${run.realm}`;
  return new ProviderError("NOT_FOUND", message, { resource: question.key, realm: run.realm });
}

function notOurs(run: Run, found: FoundInstance): ProviderError {
  return new ProviderError("NOT_OURS", `${wordsOfOwner(found)}; it was not touched`, {
    resource: found.id,
    owner: clusterOf(found),
    realm: run.realm,
  });
}

function requireCapability(run: Run, name: CapabilityName): void {
  if (!run.adapter.info.capabilities.includes(name)) throw unsupported(name);
}

function unsupported(name: CapabilityName): ProviderError {
  const message = `this vendor cannot do that through its API: ${name}`;
  return new ProviderError("UNSUPPORTED", message, { resource: name });
}
