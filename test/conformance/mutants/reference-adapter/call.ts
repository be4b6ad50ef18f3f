/** One call that reaches the vendor: where, for whom, until when, and how far it came. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { Owner, Recorded, Target } from "../../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Place } from "./accounts.ts";
import { Failure } from "./failure.ts";
import type { Progress } from "./flights.ts";
import type { Question } from "./locate.ts";
import { checkTarget } from "./request-checks.ts";
import { stampOf } from "./stamp.ts";
import { VendorApi } from "./vendor-api.ts";
import type { VendorRecord } from "./vendor-record.ts";
import { limits } from "./world.ts";
import type { CapabilityName, World } from "./world.ts";

export interface CallRequest {
  readonly instanceKey: string;
  readonly owner?: Owner | undefined;
  readonly target?: Target | undefined;
  readonly recorded?: Recorded | undefined;
  readonly specHash?: string;
}

/** Where a request leads to, once it is clear that the caller means that realm. */
export function questionOf(world: World, request: CallRequest, signal: AbortSignal): Question {
  const { instanceKey: key, owner, recorded, specHash = "" } = request;
  const place = world.accounts.placeOf(checkTarget(request.target));
  requireRealm(world, place, recorded?.realm ?? "");
  return {
    world,
    api: new VendorApi(world, place, signal),
    stamp: stampOf(
      key,
      { cluster: owner?.cluster ?? "", uid: owner?.uid ?? "" },
      {
        specHash,
        mutations: world.mutations,
      },
    ),
    recordedId: recorded?.providerId ?? "",
    flightKey: `${place.realm} ${key}`,
  };
}

function requireRealm({ mutations }: World, { realm }: Place, recorded: string): void {
  if (recorded === "" || recorded === realm || mutations.has("ignores-recorded-realms")) return;
  throw new Failure("WRONG_REALM", `the target leads to ${realm}, not to the recorded realm`, {
    outcome: "NOT_APPLIED",
    realm,
    precondition: { type: "REALM", subjects: [realm] },
  });
}

/** A mutation may be sent until then, less what clocks may differ by. */
export function requireInTime({ mutations }: World, notAfter: Timestamp | undefined): void {
  if (mutations.has("ignores-not-after")) return;
  const untilMs = notAfter === undefined ? 0 : timestampMs(notAfter) - limits.clockSkewMs;
  if (Date.now() < untilMs) return;
  throw new Failure("TOO_LATE", "not_after is missing or has passed", { outcome: "NOT_APPLIED" });
}

/** Sends one change, and keeps the book on it. */
export async function change<T>(progress: Progress, work: () => Promise<T>): Promise<T> {
  progress.outcome = "UNKNOWN";
  try {
    const result = await work();
    progress.outcome = "APPLIED";
    return result;
  } catch (error) {
    const isLost = error instanceof Failure && error.facts.outcome === "UNKNOWN";
    progress.outcome = isLost ? "UNKNOWN" : "NOT_APPLIED";
    throw error;
  }
}

export function requireCapability({ capabilities, mutations }: World, name: CapabilityName): void {
  const isLie = mutations.has("declares-what-it-lacks") && name === "DELETE";
  const isServed = capabilities.includes(name) || mutations.has("serves-undeclared");
  if (isServed && !isLie) return;
  throw new Failure("UNSUPPORTED", `this vendor cannot do that: ${name}`, {
    outcome: "NOT_APPLIED",
  });
}

export function notFound({ api, stamp }: Question): Failure {
  const { realm } = api.place;
  const message = `the vendor says that it does not exist in ${realm}`;
  return new Failure("NOT_FOUND", message, { outcome: "NOT_APPLIED", realm, resource: stamp.key });
}

/** True when another cluster owns it. */
export function isForeign({ stamp }: VendorRecord, wanted: Question["stamp"]): boolean {
  return stamp !== undefined && stamp.cluster !== wanted.cluster;
}
