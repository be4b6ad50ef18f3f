/** What error details may carry at most, shared by both directions, and how they are named. */

/** ErrorInfo.domain of each error that is ours. */
export const errorDomain = "dhp.example.com";

/** Trailers have a limit, 8 KiB in some gRPC libraries: base64 of this and the message fit into it. */
export const detailBytesMax = 4_608;
export const messageBytesMax = 512;
export const textBytesMax = 200;
export const identityBytesMax = 512;
export const violationsMax = 8;
export const retryAfterMsMax = 24 * 3_600_000;

/** An error as gRPC carries it: number, text, and grpc-status-details-bin. */
export interface WireStatus {
  readonly code: number;
  readonly message: string;
  /** google.rpc.Status in binary; absent when the peer sent none. */
  readonly details: Uint8Array | undefined;
}

/** A wait within 0 and one day; what is no number is no wait. */
export function clampRetryMs(retryAfterMs: number): number {
  return Number.isFinite(retryAfterMs) ? Math.min(Math.max(retryAfterMs, 0), retryAfterMsMax) : 0;
}

/** Years 1 to 9999, which google.protobuf.Timestamp can hold. */
export function isTimestampMs(epochMs: number): boolean {
  return epochMs >= -62_135_596_800_000 && epochMs <= 253_402_300_799_999;
}

/** The text, cut at a character's end to at most `bytesMax` bytes of UTF-8. */
export function cutToBytes(text: string, bytesMax: number): string {
  const wellFormed = text.toWellFormed();
  const bytes = Buffer.from(wellFormed);
  if (bytes.length <= bytesMax) return wellFormed;
  // A multi-byte character that the cut splits decodes to U+FFFD: drop it.
  const kept = bytes.subarray(0, bytesMax - 3).toString();
  return `${kept.replace(/\uFFFD$/u, "")}...`;
}

/** Ids and realms are compared, so half of one would be a lie: too long means absent. */
export function wholeOrAbsent(text: string | undefined): string | undefined {
  if (text === undefined || Buffer.byteLength(text) > identityBytesMax) return undefined;
  return text.toWellFormed();
}
