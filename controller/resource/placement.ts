/**
 * The record of where a vendor instance may exist. status.placements is authoritative; before it is
 * first written, the annotation first-placement stands in for it, if its uid is the object's own
 * (a clone or a restored backup carries a foreign one, which counts as nothing).
 */
import { arrayAt, definedOnly, isJsonObject, objectAt, stringAt } from "./json-door.ts";
import type { JsonObject } from "./json-door.ts";
import { placementVersion } from "./names.ts";

/** A place an instance can be asked for. */
export interface Place {
  readonly class: string;
  readonly endpoint: string;
  readonly region: string;
  /** Empty: the adapter's default account. */
  readonly account: string;
}

/** A place an instance may exist at. */
export interface Placement extends Place {
  /** Vendor-side account and region; ids and absences hold within it. */
  readonly realm: string;
  /** Empty: not known (yet). */
  readonly providerID: string;
  /** The id of an instance that was here and vanished; absent: there was none, or one is here. */
  readonly lastProviderID?: string;
  /** Retiring placements are never ensured again. */
  readonly state: "Recorded" | "Retiring";
  /** Fields of a newer version, kept as they are. */
  readonly unknown: JsonObject;
}

const knownFields = new Set([
  "version",
  "realm",
  "class",
  "endpoint",
  "region",
  "account",
  "providerID",
  "lastProviderID",
  "state",
]);

export function isSamePlace(left: Place, right: Place): boolean {
  return (
    left.class === right.class &&
    left.endpoint === right.endpoint &&
    left.region === right.region &&
    left.account === right.account
  );
}

/** The effective record: status.placements, else the object's own first-placement, else nothing. */
export function effectiveRecord(
  status: unknown,
  annotation: string | undefined,
  uid: string,
): readonly Placement[] {
  const written = arrayAt(status, "placements").filter(isJsonObject).map(parsePlacement);
  if (written.length > 0) return written;
  const first = annotation === undefined ? undefined : parseFirstPlacement(annotation, uid);
  return first === undefined ? [] : [first];
}

export function newPlacement(place: Place, realm: string): Placement {
  return { ...place, realm, providerID: "", state: "Recorded", unknown: {} };
}

/** As it stands in status.placements. */
export function placementToJson(placement: Placement): JsonObject {
  const { unknown, providerID, lastProviderID, account, ...rest } = placement;
  return {
    ...unknown,
    version: placementVersion,
    ...rest,
    ...(account === "" ? {} : { account }),
    ...(providerID === "" ? {} : { providerID }),
    ...(providerID === "" && lastProviderID !== undefined ? { lastProviderID } : {}),
  };
}

/** Value of the annotation first-placement. */
export function firstPlacementValue(placement: Placement, uid: string): string {
  return JSON.stringify({ uid, placement: placementToJson(placement) });
}

function parseFirstPlacement(annotation: string, uid: string): Placement | undefined {
  let value: unknown;
  try {
    value = JSON.parse(annotation);
  } catch (_notJson) {
    // Only the controller writes a valid one; anything else records nothing.
    return undefined;
  }
  if (stringAt(value, "uid") !== uid || uid === "") return undefined;
  return parsePlacement(objectAt(value, "placement"));
}

function parsePlacement(json: JsonObject): Placement {
  return {
    ...definedOnly({ lastProviderID: stringAt(json, "lastProviderID") }),
    class: stringAt(json, "class") ?? "",
    endpoint: stringAt(json, "endpoint") ?? "",
    region: stringAt(json, "region") ?? "",
    account: stringAt(json, "account") ?? "",
    realm: stringAt(json, "realm") ?? "",
    providerID: stringAt(json, "providerID") ?? "",
    state: stringAt(json, "state") === "Retiring" ? "Retiring" : "Recorded",
    unknown: Object.fromEntries(Object.entries(json).filter(([field]) => !knownFields.has(field))),
  };
}
