/**
 * The table of Anam's errors. Anam documents statuses and a text for each, and no form of the body:
 * the status decides alone, and what can be read of the text goes into the message.
 *
 * A 404 is only half a word: a deleted persona, a wrong path and a proxy all say it. It is NOT_FOUND
 * here and never leaves the folder so: adapter.ts looks twice before it believes an absence.
 */
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { FieldViolation, Reason } from "../../services/contract/provider-error.ts";
import type { VendorResponse } from "../../services/vendor-http/vendor-http.ts";

/** 429 is HTTP's own: Anam documents no limit of calls, and no hint when to come again. */
const reasonOfStatus: Readonly<Record<number, Reason>> = {
  400: "INVALID_FIELD",
  401: "BAD_CREDENTIAL",
  403: "MISSING_SCOPE",
  404: "NOT_FOUND",
  429: "THROTTLED",
};

/** What of a persona a text may blame, and where that stands in spec. */
const pathOfField: Readonly<Record<string, string>> = {
  name: "displayName",
  avatarId: "parameters.avatarId",
  avatarModel: "parameters.avatarModel",
  voiceId: "parameters.voiceId",
  llmId: "parameters.llmId",
  systemPrompt: "parameters.systemPrompt",
  skipGreeting: "parameters.skipGreeting",
};

const wordsMax = 300;

/** See the file comment; `undefined` for a success. */
export function classifyAnam(response: VendorResponse): ProviderError | undefined {
  const { status } = response;
  if (status >= 200 && status < 300) return undefined;
  const reason = reasonOfStatus[status] ?? (status >= 500 ? "VENDOR_ERROR" : "VENDOR_UNREADABLE");
  const text = textOf(response);
  const message = (text === "" ? `status ${status}` : `status ${status}: ${text}`).slice(
    0,
    wordsMax,
  );
  if (reason === "THROTTLED") return new ProviderError(reason, message, { quota: "API calls" });
  if (reason !== "INVALID_FIELD") return new ProviderError(reason, message);
  return new ProviderError(reason, message, { fields: blamed(text) });
}

/** Fields that the text names; Anam promises none. */
function blamed(text: string): readonly FieldViolation[] {
  const named = Object.keys(pathOfField).filter((field) => new RegExp(`\\b${field}\\b`).test(text));
  return named.map((field) => ({ path: pathOfField[field] ?? field, description: text }));
}

/** A plain text, or the one in JSON, wherever it is; a proxy's page tells people nothing. */
function textOf({ json, text, headers }: VendorResponse): string {
  if (typeof json === "object" && json !== null) {
    const { message, error } = recordOf(json);
    return (
      [message, recordOf(error)["message"], error].find((part) => typeof part === "string") ?? ""
    );
  }
  return headers["content-type"]?.startsWith("text/plain") === true ? text.trim() : "";
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
