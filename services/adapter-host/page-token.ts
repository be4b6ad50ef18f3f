/**
 * Page tokens of List: opaque to callers, bound to their question, checked when they come back. The
 * place within a vendor's page is the last instance given, not a count: what is deleted meanwhile
 * shifts nothing.
 */
import { createHash } from "node:crypto";

/** Where the next page starts. */
export interface ListPosition {
  /** The vendor's token of the page; absent: its first. */
  readonly vendorToken?: string;
  /** The last instance given from that page; absent: none yet. */
  readonly after?: { readonly createdAtMs: number; readonly id: string };
}

const version = 1;
const checksumCharacters = 22;

/** @param question what the token is only good for: target and filter in one text */
export function writePageToken(position: ListPosition, question: string): string {
  const { vendorToken, after } = position;
  const fields = [vendorToken ?? null, after?.createdAtMs ?? null, after?.id ?? null];
  const body = JSON.stringify([version, ...fields]);
  return Buffer.from(checksum(body, question) + body, "utf8").toString("base64url");
}

/** `undefined`: not a token that this adapter gave for this question. */
export function readPageToken(token: string, question: string): ListPosition | undefined {
  const text = Buffer.from(token, "base64url").toString("utf8");
  const body = text.slice(checksumCharacters);
  if (checksum(body, question) !== text.slice(0, checksumCharacters)) return undefined;
  const fields: unknown = JSON.parse(body);
  if (!Array.isArray(fields)) return undefined;
  const [found, vendorToken, createdAtMs, id]: unknown[] = fields;
  if (found !== version) return undefined;
  return {
    ...(typeof vendorToken === "string" ? { vendorToken } : {}),
    ...(typeof createdAtMs === "number" && typeof id === "string"
      ? { after: { createdAtMs, id } }
      : {}),
  };
}

/** Tells our tokens from others and slips of the pen; tokens open no doors, so it is no secret. */
function checksum(body: string, question: string): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([question, body]))
    .digest("base64url");
  return digest.slice(0, checksumCharacters);
}
