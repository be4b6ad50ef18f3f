/** The short stamp as the contract states it; computed here anew, not by what is under test. */
import { createHash } from "node:crypto";

const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

/** "dhp-" and 16 base32 characters of SHA-256(key): finds an instance. */
export function keyStamp(key: string): string {
  return `dhp-${base32Digest(key, 16)}`;
}

/** With "-" and 8 base32 characters of SHA-256(cluster): tells the owner too. */
export function ownedStamp(key: string, cluster: string): string {
  return `${keyStamp(key)}-${base32Digest(cluster, 8)}`;
}

function base32Digest(text: string, characters: number): string {
  let bits = "";
  for (const byte of createHash("sha256").update(text).digest()) {
    bits += byte.toString(2).padStart(8, "0");
  }
  return Array.from(
    { length: characters },
    (_, at) => alphabet[Number.parseInt(bits.slice(at * 5, at * 5 + 5), 2)] ?? "",
  ).join("");
}
