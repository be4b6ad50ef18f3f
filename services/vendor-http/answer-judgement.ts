/** What an exchange with a vendor comes to: an error in our words, its outcome, the breaker's verdict. */
import { ProviderError } from "../contract/provider-error.ts";
import type { MutationEffect } from "../contract/provider-error.ts";
import { assertNever } from "../process/assert-never.ts";
import type { Verdict } from "./breaker.ts";
import type { VendorRequest, VendorResponse } from "./vendor-http.ts";
import { WireError } from "./wire.ts";

/** Where an error happened. */
export interface WireErrorContext {
  readonly origin: string;
  readonly isMutation: boolean;
  /** The exchange had lasted long enough that even a caller's leaving tells against the vendor. */
  readonly wasPatient: boolean;
}

/** No answer: the error, and whether it counts against the vendor. Bugs are thrown on. */
export function judgeWireError(
  error: unknown,
  context: WireErrorContext,
): { readonly error: ProviderError; readonly verdict: Verdict } {
  if (!(error instanceof WireError)) throw error;
  const { origin, isMutation, wasPatient } = context;
  const outcome: MutationEffect = error.isSent ? "UNKNOWN" : "NOT_APPLIED";
  const facts = { cause: error, ...(isMutation ? { outcome } : {}) };
  const make = (reason: VendorReason, words: string): ProviderError =>
    new ProviderError(reason, `${words}: ${error.message}`, facts);
  switch (error.kind) {
    case "stopped":
      if (error.cause instanceof ProviderError) return { error: error.cause, verdict: "none" };
      throw error.cause;
    case "address-refused":
      return { error: make("ENDPOINT_NOT_ALLOWED", `cannot use ${origin}`), verdict: "none" };
    case "cancelled":
      return {
        error: make("VENDOR_TIMEOUT", `no answer from ${origin}`),
        verdict: wasPatient ? "failure" : "none",
      };
    case "unreachable":
      return { error: make("VENDOR_UNREACHABLE", `cannot reach ${origin}`), verdict: "failure" };
    case "timeout":
      return { error: make("VENDOR_TIMEOUT", `no answer from ${origin}`), verdict: "failure" };
    case "unreadable":
      return { error: make("VENDOR_UNREADABLE", `cannot read ${origin}`), verdict: "failure" };
    default:
      return assertNever(error.kind);
  }
}

type VendorReason =
  | "ENDPOINT_NOT_ALLOWED"
  | "VENDOR_UNREACHABLE"
  | "VENDOR_TIMEOUT"
  | "VENDOR_UNREADABLE";

/** What is needed to judge an answer. */
export interface AnswerContext {
  readonly origin: string;
  readonly request: VendorRequest;
  readonly classify: (response: VendorResponse) => ProviderError | undefined;
  /** What THROTTLED says where the vendor gives no hint; ms. */
  readonly throttledRetryMs: number;
}

/** What is wrong with an answer; `undefined`: it is a success. A mutation's error has an outcome. */
export function judgeAnswer(
  response: VendorResponse,
  context: AnswerContext,
): ProviderError | undefined {
  const { origin, request, throttledRetryMs } = context;
  const error = firstFault(response, context);
  if (error?.reason === undefined) return undefined;
  const defaultMs = error.reason === "THROTTLED" ? throttledRetryMs : undefined;
  const waitMs = error.facts.retryAfterMs ?? response.retryAfterMs ?? defaultMs;
  return new ProviderError(error.reason, `${origin}: ${error.message}`, {
    ...error.facts,
    code: error.code,
    ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }),
    ...(request.isMutation ? { outcome: outcomeOf(error, response.status) } : {}),
  });
}

/** True when an error tells against the vendor, not against caller, credential or quota. */
export function isVendorsFault(error: ProviderError): boolean {
  switch (error.reason) {
    case "VENDOR_UNREACHABLE":
    case "VENDOR_TIMEOUT":
    case "VENDOR_ERROR":
    case "VENDOR_UNREADABLE":
      return true;
    default:
      return false;
  }
}

function firstFault(response: VendorResponse, context: AnswerContext): ProviderError | undefined {
  const { status, json, text } = response;
  if (status >= 300 && status < 400) {
    return new ProviderError("VENDOR_ERROR", `redirect (status ${status}) is not followed`);
  }
  const error = context.classify(response);
  if (error !== undefined) return error;
  const isJsonMissing = json === undefined && text.trim() !== "";
  if (isJsonMissing && context.request.expects !== "any") {
    return new ProviderError("VENDOR_UNREADABLE", `answer (status ${status}) is not JSON`);
  }
  return undefined;
}

/** The vendor's refusal leaves nothing behind; its failures, and answers nobody understood, may. */
function outcomeOf(error: ProviderError, status: number): MutationEffect {
  if (error.facts.outcome !== undefined) return error.facts.outcome;
  return status >= 500 || isVendorsFault(error) ? "UNKNOWN" : "NOT_APPLIED";
}
