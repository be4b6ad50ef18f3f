/** The stamp's short form: what finds an instance at a vendor and tells its owner. Pure. */
import { createHash } from "node:crypto";

const keyCharacters = 16;
const clusterCharacters = 8;
/** "dhp-" and 16 base32 characters of SHA-256(key). @param key fleet/namespace/name */
export function keyStamp(key: string): string {
  return `dhp-${base32Digest(key).slice(0, keyCharacters)}`;
}

/** 8 base32 characters of SHA-256(cluster): the owner's part, behind a "-". */
export function clusterStamp(cluster: string): string {
  return base32Digest(cluster).slice(0, clusterCharacters);
}

const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

/** SHA-256 in base32 (RFC 4648, lower case, no padding). */
function base32Digest(text: string): string {
  let encoded = "";
  let bits = 0;
  let bitCount = 0;
  for (const byte of createHash("sha256").update(text, "utf8").digest()) {
    bits = (bits << 8) | byte;
    bitCount += 8;
    for (; bitCount >= 5; bitCount -= 5) encoded += alphabet[(bits >> (bitCount - 5)) & 31] ?? "";
    bits &= (1 << bitCount) - 1;
  }
  return bitCount === 0 ? encoded : encoded + (alphabet[(bits << (5 - bitCount)) & 31] ?? "");
}
