/** The vendor's refusals by name, in either shape of its bodies. */
import type { EmulatorSettings } from "./settings.ts";

interface VendorError {
  readonly http: number;
  /** `detail.status`, and in the current shape `detail.code` where no other is given. */
  readonly word: string;
  readonly code?: string;
  readonly type: string;
  readonly message: string;
}

const request = "invalid_request_error";

/** Words and statuses as documented or seen; the messages are ours. */
const errors = {
  invalid_api_key: {
    http: 401,
    word: "invalid_api_key",
    type: "authentication_error",
    message: "The key is not valid.",
  },
  needs_authorization: {
    http: 401,
    word: "needs_authorization",
    type: "authentication_error",
    message: "No key was sent.",
  },
  missing_permissions: {
    http: 401,
    word: "missing_permissions",
    type: "authentication_error",
    message: "The key lacks a permission for this.",
  },
  quota_exceeded: {
    http: 401,
    word: "quota_exceeded",
    type: "quota_error",
    message: "This request exceeds your quota: 0 credits remain.",
  },
  payment_required: {
    http: 402,
    word: "payment_required",
    code: "paid_plan_required",
    type: "payment_error",
    message: "This needs a paid plan.",
  },
  "only_for_creator+": {
    http: 403,
    word: "only_for_creator+",
    type: "authorization_error",
    message: "Your plan does not include this.",
  },
  max_character_limit_exceeded: {
    http: 400,
    word: "max_character_limit_exceeded",
    type: request,
    message: "The text is too long.",
  },
  invalid_cursor: {
    http: 400,
    word: "invalid_cursor",
    type: request,
    message: "The cursor is not valid.",
  },
  too_many_concurrent_requests: {
    http: 429,
    word: "too_many_concurrent_requests",
    type: "rate_limit_error",
    message: "Too many requests at the same time for your plan.",
  },
  system_busy: {
    http: 429,
    word: "system_busy",
    type: "rate_limit_error",
    message: "We are busy; please try again.",
  },
  conflict: {
    http: 409,
    word: "conflict",
    type: "conflict_error",
    message: "The agent is being changed by somebody else.",
  },
  internal_error: {
    http: 500,
    word: "internal_error",
    type: "server_error",
    message: "Something went wrong.",
  },
} as const satisfies Readonly<Record<string, VendorError>>;

export type VendorErrorName = keyof typeof errors;

export function isVendorErrorName(name: unknown): name is VendorErrorName {
  return typeof name === "string" && Object.hasOwn(errors, name);
}

export interface ErrorAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** @param remark put behind the message */
export function errorAnswer(
  name: VendorErrorName,
  settings: EmulatorSettings,
  remark = "",
): ErrorAnswer {
  const error = errors[name];
  return shaped({ ...error, message: error.message + remark }, settings);
}

export function agentMissing(id: string, settings: EmulatorSettings): ErrorAnswer {
  const message = `No agent ${id}.`;
  return shaped(
    { http: 404, word: settings.agentMissingCode, type: "not_found", message },
    settings,
  );
}

export function voiceMissing(id: string, settings: EmulatorSettings): ErrorAnswer {
  const message = `No voice ${id}.`;
  const http = settings.voiceMissingStatus;
  return shaped({ http, word: "voice_not_found", type: "not_found", message }, settings);
}

/** One refused field, as the framework writes it. */
export interface Refusal {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

export function refused(refusals: readonly Refusal[]): ErrorAnswer {
  return { status: 422, body: { detail: refusals } };
}

/** What the framework says of a path or method that it does not know. */
export function noRoute(status: 404 | 405): ErrorAnswer {
  return { status, body: { detail: status === 404 ? "Not Found" : "Method Not Allowed" } };
}

let requests = 0;

function shaped(error: VendorError, settings: EmulatorSettings): ErrorAnswer {
  const { http, word, code = word, type, message } = error;
  if (settings.errorShape === "older") {
    return { status: http, body: { detail: { status: word, message } } };
  }
  requests += 1;
  const requestId = `req_${requests}`;
  return {
    status: http,
    body: { detail: { type, code, message, status: word, request_id: requestId } },
  };
}
