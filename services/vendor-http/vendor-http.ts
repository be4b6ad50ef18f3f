/** Requests to one vendor endpoint, as an adapter's primitives make them. */

/** One request. `path` is joined to the endpoint's own path; redirects are never followed. */
export interface VendorRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Begins with "/"; no query. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON when it is an object, as it is when a string. */
  readonly body?: unknown;
  /** True: the request may change something at the vendor. Decides breaker, deadline and outcome. */
  readonly isMutation: boolean;
  /**
   * What a success must look like; anything else is VENDOR_UNREADABLE. "json" (the default): a JSON
   * body, or none. "any": whatever comes.
   */
  readonly expects?: "json" | "any";
  /** A longer answer is VENDOR_UNREADABLE; 4 MiB when absent. For vendors that list without pages. */
  readonly answerBytesMax?: number;
}

/** One answer, whole and bounded. Header names are lower case. */
export interface VendorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body as text; limited in bytes. */
  readonly text: string;
  /** The body parsed as JSON; `undefined` when it is not JSON. */
  readonly json: unknown;
  /** Normalised Retry-After and kin, with a ceiling; `undefined`: no hint. */
  readonly retryAfterMs: number | undefined;
}

/**
 * Sends within limits. Resolves with a success as `classify` sees it; rejects with ProviderError:
 * what `classify` made of the answer, or VENDOR_UNREACHABLE, VENDOR_TIMEOUT, VENDOR_UNREADABLE,
 * CIRCUIT_OPEN, THROTTLED or BUSY (our own limits), ENDPOINT_NOT_ALLOWED (a private address).
 *
 * A mutation's error says its outcome: NOT_APPLIED only where nothing was sent or the vendor refused
 * it, UNKNOWN where it was sent and the answer is not known. `classify` may say more with a fact
 * `outcome` of its own. Without it, an answer below 500 counts as a refusal unless it was classified
 * as the vendor's own failure (VENDOR_...).
 */
export interface VendorHttp {
  send(request: VendorRequest): Promise<VendorResponse>;
}
