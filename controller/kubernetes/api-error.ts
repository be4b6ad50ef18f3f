import { isRawObject } from "./raw-object.ts";
import { retryAfterHeaderMs, retryAfterSecondsMs } from "./retry-after.ts";

/**
 * Why a call to the API server failed, as callers decide by it.
 * - conflict: the resourceVersion or uid sent is not the current one; nothing was changed
 * - gone: the resourceVersion or continue token is too old; list again
 * - timeout: no answer within the deadline, or the server's own 504; a write may have happened
 * - network: no connection, or it broke; a write may have happened
 * - aborted: the caller's own signal; a write may have happened
 * - unreadable: an answer that is not what an API server says, or is too large
 */
export type ApiErrorKind =
  | "already-exists"
  | "conflict"
  | "not-found"
  | "gone"
  | "unauthorized"
  | "forbidden"
  | "throttled"
  | "invalid"
  | "server"
  | "timeout"
  | "network"
  | "aborted"
  | "unreadable";

export interface ApiErrorFields {
  readonly kind: ApiErrorKind;
  /** HTTP status, 0 where no answer came. */
  readonly status: number;
  /** metav1.Status reason such as "Expired", empty where none was given. */
  readonly reason: string;
  readonly message: string;
  /** How long the server asks to wait before the next attempt. */
  readonly retryAfterMs?: number | undefined;
  /** Reasons of the status's causes, such as "ResourceVersionTooLarge". */
  readonly causes?: readonly string[];
  readonly cause?: unknown;
}

/** Every failure of a call to the API server; foreign errors are kept in `cause`. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly kind: ApiErrorKind;
  readonly status: number;
  readonly reason: string;
  readonly retryAfterMs: number | undefined;
  readonly causes: readonly string[];

  constructor(fields: ApiErrorFields) {
    super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.kind = fields.kind;
    this.status = fields.status;
    this.reason = fields.reason;
    this.retryAfterMs = fields.retryAfterMs;
    this.causes = fields.causes ?? [];
  }
}

/** True for an ApiError, of one of the kinds where kinds are given. */
export function isApiError(error: unknown, ...kinds: readonly ApiErrorKind[]): error is ApiError {
  return error instanceof ApiError && (kinds.length === 0 || kinds.includes(error.kind));
}

export interface FailedAnswer {
  /** What was tried, as in `PATCH /api/v1/...`. */
  readonly what: string;
  readonly status: number;
  readonly retryAfterHeader: string | undefined;
  /** Parsed body, undefined where it was not JSON. */
  readonly body: unknown;
  readonly nowMs: number;
}

/** Turns an answer outside 2xx into an ApiError; the body is a metav1.Status or anything. */
export function apiErrorFromAnswer(answer: FailedAnswer): ApiError {
  const status = readStatus(answer.body);
  const retryAfterMs =
    retryAfterHeaderMs(answer.retryAfterHeader, answer.nowMs) ?? status.retryAfterMs;
  return new ApiError({
    kind: kindOf(answer.status, status),
    status: answer.status,
    reason: status.reason,
    message: `cannot ${answer.what}: ${answer.status} ${status.message}`.trimEnd(),
    retryAfterMs,
    causes: status.causes,
  });
}

/** Turns the metav1.Status of a watch's ERROR event into an ApiError. */
export function apiErrorFromStatus(what: string, body: unknown): ApiError {
  const status = readStatus(body);
  return new ApiError({
    kind: kindOf(status.code, status),
    status: status.code,
    reason: status.reason,
    message: `cannot ${what}: ${status.code} ${status.message}`.trimEnd(),
    retryAfterMs: status.retryAfterMs,
    causes: status.causes,
  });
}

interface ReadStatus {
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  readonly retryAfterMs: number | undefined;
  readonly causes: readonly string[];
}

function readStatus(body: unknown): ReadStatus {
  const isStatus = isRawObject(body) && body["kind"] === "Status";
  const raw = isStatus ? body : {};
  const details = isRawObject(raw["details"]) ? raw["details"] : {};
  const causes = Array.isArray(details["causes"]) ? details["causes"] : [];
  return {
    code: typeof raw["code"] === "number" ? raw["code"] : 0,
    reason: text(raw["reason"]),
    message: text(raw["message"]).slice(0, messageCharactersMax),
    retryAfterMs: retryAfterSecondsMs(details["retryAfterSeconds"]),
    causes: causes
      .slice(0, causesMax)
      .map((cause: unknown) => (isRawObject(cause) ? text(cause["reason"]) : ""))
      .filter((reason) => reason !== ""),
  };
}

function kindOf(code: number, status: ReadStatus): ApiErrorKind {
  if (status.reason === "AlreadyExists") return "already-exists";
  if (status.reason === "Expired" || status.reason === "Gone") return "gone";
  const kind = kindsByCode.get(code);
  if (kind !== undefined) return kind;
  if (code >= 500) return "server";
  return code >= 400 ? "invalid" : "unreadable";
}

const kindsByCode: ReadonlyMap<number, ApiErrorKind> = new Map([
  [401, "unauthorized"],
  [403, "forbidden"],
  [404, "not-found"],
  [409, "conflict"],
  [410, "gone"],
  [429, "throttled"],
  [504, "timeout"],
]);

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Admission messages can quote whole objects. */
const messageCharactersMax = 2_000;
const causesMax = 20;
