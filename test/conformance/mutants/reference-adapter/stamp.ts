/** The stamp in the vendor's tags: short form, full key, owner and hash. */
import { createHash } from "node:crypto";
import type { Mutations } from "./mutations.ts";

export interface Stamp {
  /** "dhp-" + 16 + "-" + 8. */
  readonly short: string;
  readonly key: string;
  readonly cluster: string;
  readonly uid: string;
  readonly specHash: string;
}

export type Tags = Readonly<Record<string, string>>;

const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

export function stampOf(
  key: string,
  owner: { readonly cluster: string; readonly uid: string },
  { specHash, mutations }: { readonly specHash: string; readonly mutations: Mutations },
): Stamp {
  const { cluster, uid } = owner;
  const named = mutations.has("folds-keys") ? key.replaceAll(/[/.-]+/g, "-") : key;
  const ownerPart = mutations.has("stamp-without-owner") ? "" : cluster;
  const short = `dhp-${digest(named).slice(0, 16)}-${digest(ownerPart).slice(0, 8)}`;
  return { short, key: named, cluster, uid, specHash };
}

export function tagsOf({ short, key, cluster, uid, specHash }: Stamp): Tags {
  return {
    dhp: short,
    "dhp-key": key,
    "dhp-cluster": cluster,
    "dhp-uid": uid,
    "dhp-hash": specHash,
  };
}

/** undefined: the tags hold no stamp of ours. */
export function stampIn(tags: Tags): Stamp | undefined {
  const { dhp: short = "" } = tags;
  if (!/^dhp-[a-z2-7]{16}-[a-z2-7]{8}$/.test(short)) return undefined;
  return {
    short,
    key: tags["dhp-key"] ?? "",
    cluster: tags["dhp-cluster"] ?? "",
    uid: tags["dhp-uid"] ?? "",
    specHash: tags["dhp-hash"] ?? "",
  };
}

/** Made for the same key, whoever owns it. */
export function hasKeyOf(found: Stamp | undefined, wanted: Stamp): boolean {
  return found?.short.slice(0, 20) === wanted.short.slice(0, 20);
}

/** SHA-256 in base32 (RFC 4648), lower case. */
function digest(text: string): string {
  const bytes = createHash("sha256").update(text).digest();
  let [encoded, bits, count] = ["", 0, 0];
  for (const byte of bytes) {
    bits = ((bits << 8) | byte) & 0xffff;
    count += 8;
    while (count >= 5) {
      count -= 5;
      encoded += alphabet[(bits >> count) & 31] ?? "";
    }
  }
  return encoded;
}
