/**
 * The table of ElevenLabs' errors, to the contract's reasons.
 *
 * A body carries `detail`: an object {type, code, message, status, request_id}, in older answers
 * {status, message}; a list [{loc, msg, type}] for fields that are refused; or a text, which the
 * framework writes for a wrong path. The word counts before the status: 401 may mean "credits used
 * up", and only a missing agent is NOT_FOUND.
 */
import { ProviderError } from "../../services/contract/provider-error.ts";
import type {
  FieldViolation,
  ProviderErrorFacts,
  Reason,
} from "../../services/contract/provider-error.ts";
import { redactText } from "../../services/process/redaction.ts";
import type { VendorResponse } from "../../services/vendor-http/vendor-http.ts";
import { fieldAt, fieldOfPlace } from "./translate.ts";

/** By `code` or `status` of the detail. */
const reasonOfWord: Readonly<Record<string, Reason>> = {
  invalid_api_key: "BAD_CREDENTIAL",
  needs_authorization: "BAD_CREDENTIAL",
  missing_permissions: "MISSING_SCOPE",
  "only_for_creator+": "MISSING_SCOPE",
  quota_exceeded: "QUOTA_EXHAUSTED",
  payment_required: "BILLING_STOPPED",
  paid_plan_required: "BILLING_STOPPED",
  max_character_limit_exceeded: "INVALID_FIELD",
  too_many_concurrent_requests: "THROTTLED",
  system_busy: "BUSY",
};

/** Whatever the body says. */
const reasonOfStatus: Readonly<Record<number, Reason>> = {
  401: "BAD_CREDENTIAL",
  402: "BILLING_STOPPED",
  403: "MISSING_SCOPE",
  408: "VENDOR_TIMEOUT",
  429: "THROTTLED",
};

/** Only with a detail of the vendor's own: without one, something on the way answered. */
const reasonOfStatusWithDetail: Readonly<Record<number, Reason>> = {
  400: "INVALID_FIELD",
  409: "BUSY",
  412: "BUSY",
  413: "INVALID_FIELD",
  422: "INVALID_FIELD",
  423: "BUSY",
};

/** Nouns in "..._not_found" that mean the agent itself; none at all does too. */
const agentNouns: readonly (string | undefined)[] = [
  undefined,
  "agent",
  "convai_agent",
  "document",
];
/** Nouns whose absence is one parameter's fault. */
const fieldOfNoun: Readonly<Record<string, string>> = {
  voice: "parameters.voiceId",
  model: "parameters.voiceModel",
  llm: "parameters.llm",
};

const wordsMax = 300;
const fieldsMax = 20;
const busyRetryMs = 5_000;

/** See the file comment; `undefined` for a success. */
export function classifyElevenLabs(response: VendorResponse): ProviderError | undefined {
  const { status, json } = response;
  if (status >= 200 && status < 300) return undefined;
  const detail = fieldAt(json, ["detail"]);
  if (Array.isArray(detail) && status < 500) return refusedFields(status, detail);
  const code = wordAt(detail, "code");
  const word = wordAt(detail, "status");
  const message = wordAt(detail, "message") ?? (typeof detail === "string" ? detail : "no detail");
  const words = safe([code ?? word ?? `status ${status}`, message].join(": "));
  const missing = status === 404 || status === 400 ? missingNoun(detail, [code, word]) : undefined;
  if (missing !== undefined) return missingError(missing.noun, words);
  const reason =
    named(reasonOfWord, code) ??
    named(reasonOfWord, word) ??
    reasonOfStatus[status] ??
    ((code ?? word) ? reasonOfStatusWithDetail[status] : undefined) ??
    (status < 500 ? "VENDOR_UNREADABLE" : "VENDOR_ERROR");
  return new ProviderError(reason, words, factsOf(reason, response, words));
}

function factsOf(reason: Reason, response: VendorResponse, words: string): ProviderErrorFacts {
  switch (reason) {
    case "INVALID_FIELD":
      return { fields: [{ path: "parameters", description: words }] };
    case "THROTTLED":
      return { quota: "concurrent requests of the account's plan" };
    case "QUOTA_EXHAUSTED":
      return { quota: "credits of the account's plan" };
    case "BILLING_STOPPED":
      return { preconditions: [{ type: "BILLING", subject: "subscription", description: words }] };
    case "BUSY":
      return { retryAfterMs: response.retryAfterMs ?? busyRetryMs };
    default:
      return {};
  }
}

/** What is missing, where the answer says that something is; noun absent: it does not say what. */
function missingNoun(
  detail: unknown,
  words: readonly (string | undefined)[],
): { readonly noun: string | undefined } | undefined {
  for (const word of words) {
    const match = /^(?:(\w+)_)?not_found$/.exec(word ?? "");
    if (match !== null) return { noun: match[1] };
  }
  return wordAt(detail, "type") === "not_found" ? { noun: undefined } : undefined;
}

function missingError(noun: string | undefined, words: string): ProviderError {
  if (agentNouns.includes(noun)) return new ProviderError("NOT_FOUND", words);
  const path = named(fieldOfNoun, noun) ?? "parameters";
  return new ProviderError("INVALID_FIELD", words, { fields: [{ path, description: words }] });
}

function refusedFields(status: number, detail: readonly unknown[]): ProviderError {
  const fields = detail.slice(0, fieldsMax).map((entry): FieldViolation => {
    const loc = fieldAt(entry, ["loc"]);
    const [, ...at] = Array.isArray(loc) ? loc.map(String) : [];
    return {
      path: safe(fieldOfPlace(at)),
      description: safe(wordAt(entry, "msg") ?? "is refused"),
    };
  });
  const words = fields.map(({ path, description }) => `${path}: ${description}`).join("; ");
  return new ProviderError("INVALID_FIELD", safe(words || `status ${status}`), { fields });
}

function named<T>(table: Readonly<Record<string, T>>, name: string | undefined): T | undefined {
  return name !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}

function wordAt(json: unknown, name: string): string | undefined {
  const value = fieldAt(json, [name]);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A vendor may repeat what it was sent, the key included. */
function safe(words: string): string {
  return redactText(words).slice(0, wordsMax);
}
