/** Acme's JSON and our instances: the door where what comes from outside is checked. Pure. */
import type { FoundInstance, Stamp, WantedInstance } from "../../services/adapter-host/adapter.ts";
import { isShortStamp, makeStamp, readShortStamp } from "../../services/adapter-host/stamp.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";

type Json = Readonly<Record<string, unknown>>;

/** Fill in: an instance as far as it is used here. */
export interface VendorInstance {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly voice: string | undefined;
  readonly speed: number | undefined;
  readonly tags: readonly string[];
  readonly createdAtMs: number;
}

/** All that is wanted, as a body of create or update, without tags. */
export function settingsBody({ displayName, parameters }: WantedInstance): Json {
  const { voice, speed } = parameters;
  return {
    ...(displayName === undefined ? {} : { name: displayName }),
    ...(voice === undefined ? {} : { voice }),
    ...(speed === undefined ? {} : { speed: Number(speed) }),
  };
}

/**
 * An instance in the host's words. A value that means the same has to read the same, whichever way
 * it was written: else it is drift for ever.
 */
export function foundInstance(instance: VendorInstance): FoundInstance {
  const { id, name, voice, speed, createdAtMs } = instance;
  const stamp = readStamp(instance.tags);
  return {
    id,
    ...(stamp === undefined ? {} : { stamp }),
    ...stateOf(instance.status),
    displayName: name,
    parameters: {
      ...(voice === undefined ? {} : { voice }),
      ...(speed === undefined ? {} : { speed: `${speed}` }),
    },
    createdAtMs,
  };
}

/** Fill in: the vendor's states. One that is not known is no reason to call an instance broken. */
function stateOf(status: string): Pick<FoundInstance, "state" | "availability" | "message"> {
  switch (status) {
    case "active":
      return { state: "READY", availability: "AVAILABLE" };
    case "broken":
      return { state: "READY", availability: "UNAVAILABLE", message: "the vendor says: broken" };
    default:
      return {
        state: "READY",
        availability: "UNKNOWN",
        message: `the vendor says: ${JSON.stringify(status.slice(0, 40))}`,
      };
  }
}

const labels = { key: "dhp-key=", cluster: "dhp-cluster=", uid: "dhp-uid=", specHash: "dhp-hash=" };
const labelled = ["key", "cluster", "uid", "specHash"] as const;

/** The tags to write: other people's first, then the stamp in its short and in its long form. */
export function tagsWith(stamp: Stamp, tags: readonly string[]): readonly string[] {
  const long = labelled.map((name) => labels[name] + stamp[name]);
  return [...tagsWithout(tags), stamp.short, ...long];
}

/** The tags that are not ours. */
export function tagsWithout(tags: readonly string[]): readonly string[] {
  const isOurs = (tag: string): boolean =>
    isShortStamp(tag) || labelled.some((name) => tag.startsWith(labels[name]));
  return tags.filter((tag) => !isOurs(tag));
}

/** Absent: no stamp. The long form counts only where it leads to the short one beside it. */
function readStamp(tags: readonly string[]): Stamp | undefined {
  const value = (name: (typeof labelled)[number]): string =>
    tags.find((tag) => tag.startsWith(labels[name]))?.slice(labels[name].length) ?? "";
  const owner = { cluster: value("cluster"), uid: value("uid") };
  const full = makeStamp(value("key"), owner, value("specHash"));
  return tags.includes(full.short) ? full : readShortStamp(tags.find(isShortStamp) ?? "");
}

/** Fill in: one instance. */
export function parseInstance(json: unknown): VendorInstance {
  const { id, name = "", status, voice, speed, tags = [], created_at: created } = objectOf(json);
  if (typeof id !== "string" || id === "") throw unreadable("an instance has no id");
  const isSound =
    typeof name === "string" &&
    typeof status === "string" &&
    (voice === undefined || typeof voice === "string") &&
    (speed === undefined || typeof speed === "number") &&
    isTexts(tags);
  if (!isSound) throw unreadable(`instance ${id} has a field of another kind than documented`);
  const createdAtMs = typeof created === "string" ? Date.parse(created) || 0 : 0;
  return { id, name, status, voice, speed, tags, createdAtMs };
}

/** Fill in: one page of a list. */
export function parsePage(json: unknown): {
  readonly instances: readonly VendorInstance[];
  readonly nextCursor: string | undefined;
} {
  const { data, next } = objectOf(json);
  if (!Array.isArray(data)) throw unreadable("a list has no data");
  if (next !== undefined && next !== null && typeof next !== "string") {
    throw unreadable("a list's next is no text");
  }
  return { instances: data.map(parseInstance), nextCursor: next ?? undefined };
}

/** Fill in: the id, as soon as the vendor names it. */
export function parseCreatedId(json: unknown): string {
  const { id } = objectOf(json);
  if (typeof id !== "string" || id === "") throw unreadable("create answered without an id");
  return id;
}

function objectOf(json: unknown): Json {
  if (typeof json === "object" && json !== null && !Array.isArray(json)) return { ...json };
  throw unreadable("an answer is no JSON object");
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function unreadable(what: string): ProviderError {
  return new ProviderError("VENDOR_UNREADABLE", what);
}
