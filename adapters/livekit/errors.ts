/** The table of LiveKit's errors: Twirp's {code, msg} under an HTTP status, to the contract's reasons. */
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { Reason } from "../../services/contract/provider-error.ts";
import type { VendorResponse } from "../../services/vendor-http/vendor-http.ts";

/** Twirp codes that say something of the request; all others are the server's failures. */
const reasonOfCode: Readonly<Record<string, Reason>> = {
  not_found: "NOT_FOUND",
  unauthenticated: "BAD_CREDENTIAL",
  permission_denied: "MISSING_SCOPE",
  invalid_argument: "INVALID_FIELD",
  out_of_range: "INVALID_FIELD",
  malformed: "INVALID_FIELD",
  resource_exhausted: "THROTTLED",
  already_exists: "BUSY",
  failed_precondition: "BUSY",
  aborted: "BUSY",
  canceled: "VENDOR_ERROR",
  deadline_exceeded: "VENDOR_TIMEOUT",
  unavailable: "VENDOR_ERROR",
  // A wrong path or method: our endpoint leads elsewhere. Nothing is known of any room.
  bad_route: "VENDOR_UNREADABLE",
  unimplemented: "VENDOR_UNREADABLE",
};

/** What stands without a Twirp body comes from a proxy or from no LiveKit at all. */
const reasonOfStatus: Readonly<Record<number, Reason>> = {
  401: "BAD_CREDENTIAL",
  403: "MISSING_SCOPE",
  413: "INVALID_FIELD",
  429: "THROTTLED",
};

const wordsMax = 300;

/** See the file comment; `undefined` for a success. */
export function classifyTwirp(response: VendorResponse): ProviderError | undefined {
  const { status, json } = response;
  if (status >= 200 && status < 300) return undefined;
  const { code, msg } = twirpError(json);
  if (code === undefined) {
    // Above all a 404 in plain text: a wrong path, not a missing room.
    const reason = reasonOfStatus[status] ?? (status < 500 ? "VENDOR_UNREADABLE" : "VENDOR_ERROR");
    return new ProviderError(reason, `status ${status} without a Twirp error`);
  }
  const reason = reasonOfCode[code] ?? "VENDOR_ERROR";
  const words = msg === "" ? code : `${code}: ${msg.slice(0, wordsMax)}`;
  return new ProviderError(reason, words, reason === "BUSY" ? { retryAfterMs: 1000 } : {});
}

function twirpError(json: unknown): { readonly code: string | undefined; readonly msg: string } {
  if (typeof json !== "object" || json === null || !("code" in json)) {
    return { code: undefined, msg: "" };
  }
  const msg = "msg" in json && typeof json.msg === "string" ? json.msg : "";
  return { code: typeof json.code === "string" ? json.code : undefined, msg };
}
