/** Delete and Release: what is ours, and believed only when a look agrees. */
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  DeleteResponseSchema,
  ReleaseResponseSchema,
  RemovalState,
} from "../../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  DeleteRequest,
  DeleteResponse,
  ReleaseRequest,
  ReleaseResponse,
} from "../../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import {
  change,
  isForeign,
  notFound,
  questionOf,
  requireCapability,
  requireInTime,
} from "./call.ts";
import { Failure } from "./failure.ts";
import type { Progress } from "./flights.ts";
import { locate } from "./locate.ts";
import type { Question } from "./locate.ts";
import { checkInstance } from "./request-checks.ts";
import { hasKeyOf } from "./stamp.ts";
import type { VendorRecord } from "./vendor-record.ts";
import type { World } from "./world.ts";

const pollMs = 500;

type Removal<Name extends "DELETE" | "RELEASE"> = Name extends "DELETE"
  ? DeleteRequest
  : ReleaseRequest;

export async function remove(
  world: World,
  request: DeleteRequest,
  signal: AbortSignal,
): Promise<DeleteResponse> {
  return await removal({ name: "DELETE", world, request, signal }, async (question, progress) => {
    const { realm } = question.api.place;
    const found = await own(question, "takes-from-other-clusters-in-delete");
    if (found === undefined && world.mutations.has("absent-is-deleted")) {
      return create(DeleteResponseSchema, { state: RemovalState.DELETED, realm });
    }
    if (found === undefined) throw notFound(question);
    if (found.state !== "deleting") {
      requireInTime(world, request.notAfter);
      const wasThere = await change(progress, () => question.api.remove(found.id));
      world.flights.forget(question.flightKey);
      if (!wasThere) throw notFound(question);
    }
    const isGone = !(await rests(question, found.id)) || world.mutations.has("deleted-at-once");
    return isGone
      ? create(DeleteResponseSchema, { state: RemovalState.DELETED, realm })
      : create(DeleteResponseSchema, {
          state: RemovalState.DELETING,
          realm,
          pollAfter: durationFromMs(pollMs),
        });
  });
}

export async function release(
  world: World,
  request: ReleaseRequest,
  signal: AbortSignal,
): Promise<ReleaseResponse> {
  return await removal({ name: "RELEASE", world, request, signal }, async (question, progress) => {
    const { realm } = question.api.place;
    const found = await own(question, "takes-from-other-clusters-in-release");
    if (found === undefined) throw notFound(question);
    requireInTime(world, request.notAfter);
    const { tags } = found;
    const kept = Object.entries(tags).filter(([name]) => !name.startsWith("dhp"));
    const isKept = world.mutations.has("release-keeps-the-stamp");
    await change(progress, async () => {
      if (world.mutations.has("release-removes")) await question.api.remove(found.id);
      else await question.api.update(found.id, { tags: isKept ? tags : Object.fromEntries(kept) });
    });
    world.flights.forget(question.flightKey);
    return create(ReleaseResponseSchema, { state: RemovalState.DELETED, realm });
  });
}

async function removal<Name extends "DELETE" | "RELEASE", T>(
  call: {
    readonly name: Name;
    readonly world: World;
    readonly request: Removal<Name>;
    readonly signal: AbortSignal;
  },
  work: (question: Question, progress: Progress) => Promise<T>,
): Promise<T> {
  const { name, world, request, signal } = call;
  checkInstance(request, world.mutations);
  requireCapability(world, name);
  const question = questionOf(world, request, signal);
  requireInTime(world, request.notAfter);
  return await world.flights.run(question.flightKey, signal, (progress) =>
    work(question, progress),
  );
}

/** Ours; undefined: attested absence. Without a stamp the recorded id alone vouches for it. */
async function own(
  question: Question,
  mutation: "takes-from-other-clusters-in-delete" | "takes-from-other-clusters-in-release",
): Promise<VendorRecord | undefined> {
  const { world, stamp, api } = question;
  const { found, unstamped } = await locate(question);
  if (found === undefined || !isForeign(found, stamp) || world.mutations.has(mutation)) {
    return found ?? unstamped;
  }
  const owner = found.stamp?.cluster ?? "";
  throw new Failure("NOT_OURS", `instance ${found.id} belongs to cluster ${owner}`, {
    outcome: "NOT_APPLIED",
    resource: found.id,
    owner,
    realm: api.place.realm,
  });
}

/** It, or another instance of this key and cluster, is still there. */
async function rests({ api, stamp }: Question, removedId: string): Promise<boolean> {
  if ((await api.read(removedId)) !== undefined) return true;
  for (const { id, stamp: found } of await api.scan()) {
    const isTwin = id !== removedId && hasKeyOf(found, stamp) && found?.cluster === stamp.cluster;
    if (isTwin && (await api.read(id)) !== undefined) return true;
  }
  return false;
}
