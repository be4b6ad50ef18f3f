/** The stamp: whose an instance is, in forms that fit the vendors' short fields. Pure. */
import { clusterStamp, keyStamp } from "../contract/short-stamp.ts";
import type { FoundInstance, Stamp } from "./adapter.ts";

/** Who asks. */
export interface Owner {
  readonly cluster: string;
  readonly uid: string;
}

const keyShortCharacters = "dhp-".length + 16;

/** @param key fleet/namespace/name */
export function makeStamp(key: string, owner: Owner, specHash: string): Stamp {
  const keyShort = keyStamp(key);
  return { keyShort, short: `${keyShort}-${clusterShort(owner.cluster)}`, key, ...owner, specHash };
}

/** The owner's part of the short form: 8 base32 characters of SHA-256(cluster). */
export function clusterShort(cluster: string): string {
  return clusterStamp(cluster);
}

/** True for what `Stamp.short` looks like. */
export function isShortStamp(text: string): boolean {
  return /^dhp-[a-z2-7]{16}-[a-z2-7]{8}$/.test(text);
}

/** The parts of a short stamp, with everything that it cannot hold left empty. */
export function readShortStamp(text: string): Stamp | undefined {
  if (!isShortStamp(text)) return undefined;
  const keyShort = text.slice(0, keyShortCharacters);
  return { keyShort, short: text, key: "", cluster: "", uid: "", specHash: "" };
}

/** True when `found` is stamped with the same instance key. */
export function hasKeyOf(found: Stamp, wanted: Stamp): boolean {
  return found.keyShort === wanted.keyShort && (found.key === "" || found.key === wanted.key);
}

/** True when `found` says the same cluster; the short form serves where there is no long one. */
export function isOwnedByCluster(found: Stamp, cluster: string): boolean {
  if (found.cluster !== "") return found.cluster === cluster;
  return found.short === `${found.keyShort}-${clusterShort(cluster)}`;
}

/**
 * How an instance with our key stands to us: "ours"; "predecessor" is ours under the uid of an
 * object that is gone (names are unique in a cluster); "unowned" carries no readable stamp.
 */
export type Ownership = "ours" | "predecessor" | "unowned" | "foreign";

export function ownershipOf(found: FoundInstance, wanted: Stamp): Ownership {
  const { stamp } = found;
  if (stamp === undefined) return "unowned";
  if (!hasKeyOf(stamp, wanted) || !isOwnedByCluster(stamp, wanted.cluster)) return "foreign";
  return stamp.uid === "" || stamp.uid === wanted.uid ? "ours" : "predecessor";
}
