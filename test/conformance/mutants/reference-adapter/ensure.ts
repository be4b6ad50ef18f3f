/** Ensure: found and equal, one update, or one create; never more than one change in one call. */
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { InstanceSpecSchema, State } from "../../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type {
  Adopt,
  Instance,
  InstanceSpec,
} from "../../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { Change, EnsureResponseSchema } from "../../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  EnsureRequest,
  EnsureResponse,
} from "../../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { change, isForeign, questionOf, requireCapability, requireInTime } from "./call.ts";
import { differences, quotaFields } from "./differences.ts";
import type { Difference } from "./differences.ts";
import { Failure } from "./failure.ts";
import type { Progress } from "./flights.ts";
import { locate } from "./locate.ts";
import type { Question } from "./locate.ts";
import { isImmutable } from "./parameters.ts";
import { checkEnsure } from "./request-checks.ts";
import { hasKeyOf, tagsOf } from "./stamp.ts";
import { instanceOf } from "./vendor-record.ts";
import type { RecordFields, VendorRecord } from "./vendor-record.ts";
import { limits } from "./world.ts";
import type { World } from "./world.ts";

const pollMs = 1_000;

interface Wish extends Question {
  readonly request: EnsureRequest;
  readonly spec: InstanceSpec;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

export async function ensure(
  world: World,
  request: EnsureRequest,
  signal: AbortSignal,
): Promise<EnsureResponse> {
  const { mutations } = world;
  checkEnsure(request, mutations);
  const question = questionOf(world, request, signal);
  if (request.validateOnly) requireCapability(world, "VALIDATE_ONLY");
  else requireInTime(world, request.notAfter);
  if (request.adopt !== undefined) requireCapability(world, "ADOPT");
  const spec = request.spec ?? create(InstanceSpecSchema);
  return await world.flights.run(question.flightKey, signal, async (progress) => {
    const wish: Wish = { ...question, request, spec, progress, signal };
    const target = request.adopt === undefined ? undefined : await adoptable(wish, request.adopt);
    const { found, unstamped } =
      target === undefined ? await locate(question) : { found: target, unstamped: undefined };
    const present = found ?? unstamped;
    if (present === undefined) return await make(wish);
    const response = await put(wish, present);
    if (!mutations.has("memory-is-its-index")) world.flights.forget(question.flightKey);
    return response;
  });
}

/** What is at the id to adopt, where it may be taken. */
async function adoptable(wish: Wish, adopt: Adopt): Promise<VendorRecord | undefined> {
  const { api, world, stamp } = wish;
  const found = await api.read(adopt.providerId);
  if (found === undefined) {
    if (world.mutations.has("creates-instead-of-adopting")) return undefined;
    throw new Failure("INVALID_FIELD", "there is nothing to adopt", {
      fields: ["adopt.providerID"],
    });
  }
  const { takeOverFrom } = adopt;
  const isOurs = hasKeyOf(found.stamp, stamp) && !isForeign(found, stamp);
  const isExpected =
    takeOverFrom === undefined
      ? found.stamp === undefined
      : found.stamp?.cluster === takeOverFrom.cluster && found.stamp.uid === takeOverFrom.uid;
  if (isOurs || isExpected || world.mutations.has("adopts-from-anyone")) return found;
  throw ownedByAnother(found);
}

async function make(wish: Wish): Promise<EnsureResponse> {
  const { api, world, request, progress, flightKey } = wish;
  const { mutations } = world;
  const fields = fieldsOf(wish);
  if (request.validateOnly && !mutations.has("creates-for-validate-only")) {
    const instance = instanceOf(world, asAskedFor(wish, fields), {
      realm: api.place.realm,
      drift: [],
    });
    return create(EnsureResponseSchema, { instance, change: Change.NONE });
  }
  if (!request.mayCreate && !mutations.has("creates-without-leave")) {
    throw new Failure("IN_DOUBT", "it does not exist, and may_create is false", {
      outcome: "NOT_APPLIED",
      retryAfterMs: limits.mutationDeadlineMs + limits.visibilityLagMs,
    });
  }
  if (!mutations.has("ignores-not-after")) requireInTime(world, request.notAfter);
  const made = await change(progress, () => api.create(fields));
  progress.providerId = made.id;
  // Whoever still waits is told; for whoever left, the next call has to know.
  const isOwed = wish.signal.aborted && !mutations.has("forgets-results");
  if (isOwed || mutations.has("memory-is-its-index")) world.flights.remember(flightKey, made.id);
  if (mutations.has("creates-twice")) await api.create(fields);
  return await answer(wish, made.id, Change.CREATED);
}

async function put(wish: Wish, found: VendorRecord): Promise<EnsureResponse> {
  const { api, world, request, stamp, spec, progress } = wish;
  const { mutations } = world;
  const isAdopted = request.adopt !== undefined && !isMine(wish, found);
  if (!isAdopted && isForeign(found, stamp) && !mutations.has("takes-from-other-clusters")) {
    throw ownedByAnother(found);
  }
  const changes = differences(spec, found, mutations);
  refuseImmutable(world, changes);
  const isStampWrong = !isMine(wish, found) || found.stamp?.uid !== stamp.uid;
  if (mutations.has("predecessors-are-strangers") && found.stamp?.uid !== stamp.uid) {
    throw ownedByAnother(found);
  }
  const isDue = changes.length > 0 || (isStampWrong && !mutations.has("never-restamps"));
  const isHeld = request.validateOnly && !mutations.has("updates-for-validate-only");
  if (!isDue || isHeld) {
    const drift = isHeld ? changes : [];
    const instance = instanceOf(world, found, { realm: api.place.realm, drift });
    return response(instance, mutations.has("says-updated") ? Change.UPDATED : Change.NONE);
  }
  if (found.state === "deleting") {
    throw new Failure("BUSY", "the vendor is removing it", {
      retryAfterMs: pollMs,
      precondition: { type: "STATE", subjects: [found.state] },
    });
  }
  requireInTime(world, request.notAfter);
  await change(progress, () => api.update(found.id, { ...fieldsOf(wish, found) }));
  progress.providerId = found.id;
  const ownChange = changes.length > 0 ? Change.UPDATED : Change.RESTAMPED;
  return await answer(wish, found.id, isAdopted ? Change.ADOPTED : ownChange);
}

/** Stamped for this key by this cluster. */
function isMine({ stamp }: Question, found: VendorRecord): boolean {
  return hasKeyOf(found.stamp, stamp) && !isForeign(found, stamp);
}

function refuseImmutable({ capabilities, mutations }: World, changes: readonly Difference[]): void {
  const isFixed = !capabilities.includes("UPDATE");
  const subjects = changes
    .map(({ field }) => field)
    .filter((field) => isFixed || isImmutable(field.replace("parameters.", "")));
  if (subjects.length === 0 || mutations.has("tries-immutable-fields")) return;
  throw new Failure("IMMUTABLE_FIELD", `cannot be changed: ${subjects.join(", ")}`, {
    outcome: "NOT_APPLIED",
    precondition: { type: "IMMUTABLE", subjects },
  });
}

/** The record to write: what the spec names, else what is there. */
function fieldsOf({ spec, stamp }: Wish, found?: VendorRecord): RecordFields {
  const { displayName, parameters, quota } = spec;
  const limitsWanted = quotaFields.flatMap((name) => {
    const value = quota?.[name];
    return value === undefined ? [] : [[name, Number(value)] as const];
  });
  return {
    name: displayName ?? found?.name ?? "",
    parameters: { ...found?.parameters, ...parameters },
    limits: { ...found?.limits, ...Object.fromEntries(limitsWanted) },
    tags: { ...found?.tags, ...tagsOf(stamp) },
  };
}

/** The instance as the vendor would show it. */
function asAskedFor({ stamp }: Wish, fields: RecordFields): VendorRecord {
  return {
    ...fields,
    id: "",
    stamp,
    createdAtMs: Date.now(),
    works: true,
    state: "making",
    confirmUrl: "",
    billing: "current",
    streams: undefined,
    streamsMax: undefined,
    calls: undefined,
    callsResetAtMs: undefined,
  };
}

async function answer(wish: Wish, id: string, done: Change): Promise<EnsureResponse> {
  const { api, world, spec } = wish;
  const record = await api.read(id);
  if (record === undefined) {
    throw new Failure("VENDOR_ERROR", "the vendor does not show what it has just changed");
  }
  const drift = differences(spec, record, world.mutations);
  return response(instanceOf(world, record, { realm: api.place.realm, drift }), done);
}

function response(instance: Instance, done: Change): EnsureResponse {
  const isOpen = instance.state === State.PROVISIONING || instance.state === State.AWAITING_HUMAN;
  return create(EnsureResponseSchema, {
    instance,
    change: done,
    ...(isOpen ? { pollAfter: durationFromMs(pollMs) } : {}),
  });
}

function ownedByAnother({ id, stamp }: VendorRecord): Failure {
  const owner = stamp?.cluster ?? "";
  return new Failure("OWNED_BY_ANOTHER", `instance ${id} belongs to cluster ${owner}`, {
    outcome: "NOT_APPLIED",
    resource: id,
    owner,
  });
}
