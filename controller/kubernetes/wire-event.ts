import { ApiError, apiErrorFromStatus } from "./api-error.ts";
import {
  isRawObject,
  readIdentity,
  readResourceVersion,
  withoutManagedFields,
} from "./raw-object.ts";
import type { ObjectIdentity, RawObject } from "./raw-object.ts";

/** An object with its identity read, without managedFields. */
export interface WireObject {
  readonly identity: ObjectIdentity;
  readonly raw: RawObject;
}

/** One line of a watch stream. */
export type WireEvent =
  | { readonly kind: "upsert"; readonly object: WireObject }
  | { readonly kind: "delete"; readonly object: WireObject }
  | {
      readonly kind: "bookmark";
      readonly resourceVersion: string;
      /** Ends the initial events of a streaming list. */
      readonly isInitialEventsEnd: boolean;
    }
  | { readonly kind: "error"; readonly error: ApiError };

/**
 * Reads one line of a watch.
 * @throws ApiError "unreadable" when it is no watch event
 */
export function parseWireEvent(line: unknown, what: string): WireEvent {
  const type = isRawObject(line) ? line["type"] : undefined;
  const object = isRawObject(line) ? line["object"] : undefined;
  switch (type) {
    case "ADDED":
    case "MODIFIED":
      return { kind: "upsert", object: parseWireObject(object, what) };
    case "DELETED":
      return { kind: "delete", object: parseWireObject(object, what) };
    case "BOOKMARK":
      return parseBookmark(object, what);
    case "ERROR":
      return { kind: "error", error: apiErrorFromStatus(what, object) };
    default:
      throw unreadable(what, `unknown event type ${JSON.stringify(type)}`);
  }
}

/** @throws ApiError "unreadable" when it is no object */
export function parseWireObject(value: unknown, what: string): WireObject {
  try {
    const identity = readIdentity(value);
    if (!isRawObject(value)) throw new Error("not an object");
    return { identity, raw: withoutManagedFields(value) };
  } catch (error) {
    throw unreadable(what, error instanceof Error ? error.message : String(error));
  }
}

function parseBookmark(object: unknown, what: string): WireEvent {
  const resourceVersion = readResourceVersion(object);
  if (resourceVersion === undefined) throw unreadable(what, "bookmark without resourceVersion");
  const metadata = isRawObject(object) ? object["metadata"] : undefined;
  const annotations = isRawObject(metadata) ? metadata["annotations"] : undefined;
  const isInitialEventsEnd =
    isRawObject(annotations) && annotations["k8s.io/initial-events-end"] === "true";
  return { kind: "bookmark", resourceVersion, isInitialEventsEnd };
}

function unreadable(what: string, problem: string): ApiError {
  const message = `cannot read ${what}: ${problem}`;
  return new ApiError({ kind: "unreadable", status: 200, reason: "", message });
}
