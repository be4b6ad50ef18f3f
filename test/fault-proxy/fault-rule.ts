/** What a fault proxy is told: plain data, so that a script of faults can be printed and sent. */

/** Which requests a rule means; what is absent matches all. */
export interface RequestMatch {
  /** HTTP methods: ["PATCH", "PUT"]. */
  readonly methods?: readonly string[];
  /** Regular expression of the path without its query. */
  readonly path?: string;
  /** Regular expression of the query as sent, without "?". */
  readonly query?: string;
  readonly isWatch?: boolean;
  /** Only the nth of the requests that match all the rest, from 1 on. */
  readonly nth?: number;
  /** Only the nth of them and later ones. */
  readonly from?: number;
}

export interface FaultRule {
  readonly match: RequestMatch;
  readonly fault: Fault;
  /** How many requests it befalls; absent: all, until the rules change. */
  readonly times?: number;
}

/** How a connection, and with it all its requests, ends or falls silent. */
export type Fault =
  /** The request goes on after `ms`. */
  | { readonly kind: "delay"; readonly ms: number }
  /** The request is not passed on, and nothing answers it. */
  | { readonly kind: "drop" }
  /** The connection is closed after so many bytes of the answer's body. */
  | { readonly kind: "cut"; readonly afterBytes: number }
  /** RST_STREAM with this code (RFC 9113, section 7) after so many bytes of the answer's body. */
  | { readonly kind: "reset"; readonly code: number; readonly afterBytes: number }
  /** GOAWAY with this code; this request is served on the old connection. */
  | { readonly kind: "goaway"; readonly code: number }
  /** The connection carries nothing in either direction from now on, and is not closed. */
  | { readonly kind: "half-open" }
  /** An answer in the API server's place: a metav1.Status. */
  | {
      readonly kind: "status";
      readonly status: number;
      readonly reason: string;
      /** As header Retry-After and in the Status' details. */
      readonly retryAfterSeconds?: number;
    }
  /** A watch that is accepted, and then says ERROR with this Status. */
  | { readonly kind: "watch-error"; readonly status: number; readonly reason: string }
  /** The API server has done what was asked and answered; the client never hears it. */
  | { readonly kind: "lose-answer"; readonly how: "reset" | "cut" | "silence" }
  /** Passed on as always; until the rules change, the answer is kept under this name. */
  | { readonly kind: "record"; readonly as: string }
  /**
   * The recorded answer is sent. "end": and nothing else. "hold": the stream then stays open and
   * silent. "live": then what the API server answers to the request itself.
   */
  | { readonly kind: "replay"; readonly of: string; readonly afterwards: "end" | "hold" | "live" }
  /** A watch's lines wait, in order, for as long as the rule stands, also on watches open before. */
  | { readonly kind: "hold-events" }
  /** A watch's bookmarks are left out, the one that ends a streaming list as well where it is told. */
  | { readonly kind: "drop-bookmarks"; readonly which: "all" | "later" }
  /** One text stands in for another in answers, wherever it is not cut by the end of a chunk. */
  | { readonly kind: "rewrite"; readonly text: string; readonly by: string }
  /** Each chunk of the answer is cut inside its first character of several bytes, else in halves. */
  | { readonly kind: "split" };

export type FaultKind = Fault["kind"];

/** Requests that change something. */
export const writeMethods: readonly string[] = ["POST", "PUT", "PATCH", "DELETE"];
