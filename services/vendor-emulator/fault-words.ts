/**
 * What a vendor's emulator can be asked to do, in words that hold for every vendor. The conformance
 * suite speaks them and each emulator translates them into its vendor's own answers. HTTP and JSON
 * on loopback:
 *
 *     GET  /conformance                   Vocabulary: which of the words this emulator knows
 *     POST /conformance/faults            Fault; waits for the requests it befalls
 *     POST /conformance/switches          Switches; those that are named change
 *     POST /conformance/edits             Edit, as somebody at the vendor's console; {"ids": [...]}
 *     POST /conformance/reset             {}: takes back all faults and switches; instances stay
 *     GET  /conformance/instances         {"instances": EmulatedInstance[]}: the truth, without lag
 *     GET  /conformance/requests?since=N  {"requests": EmulatedRequest[], "next": N}; N begins at 0
 *
 * A word that the emulator does not know, or a body that is wrong, answers 400 {"error": text}.
 */

/** What a request to the vendor is for. A request that fits none is only befallen by "any". */
export const operations = ["create", "update", "delete", "read", "list", "any"] as const;
export type Operation = (typeof operations)[number];

/** What the network does to a request. */
export const networkEffects = [
  /** TCP reset without an answer. */
  "reset",
  /** Half of the true answer, then the end of the connection. */
  "cut",
  /** No answer for `delayMs`, then the true one. */
  "slow",
  /** No answer at all. */
  "hang",
  /** 200 with a page of HTML. */
  "html",
  /** 200 with a body of 64 MiB: blanks, and behind them the true answer where there is one ("after"). */
  "oversized",
  /** 302 to another host. */
  "redirect",
  /** 500 that repeats the request's headers, credentials with them, as careless proxies do. */
  "echo",
  /** The true answer to the first request that the fault befell, each time: pages without an end. */
  "again",
] as const;
export type NetworkEffect = (typeof networkEffects)[number];

/** What the vendor says, in its own words and statuses. */
export const vendorEffects = [
  /** A value it does not take (400, 422). */
  "bad-value",
  /** 404 on a path or a thing other than the instance that is asked for. */
  "wrong-path",
  /** The instance is busy or in the wrong state (409, 423). */
  "busy",
  /** Too many requests, with `retryAfterMs` where given, else without a hint. */
  "throttled",
  /** The period's quota or the credits are gone. */
  "quota-exhausted",
  /** An invoice is overdue, or the account is stopped. */
  "billing-stopped",
  /** 401. */
  "bad-credential",
  /** 403. */
  "missing-scope",
  /** 500. */
  "server-error",
  /** 502 with a proxy's HTML. */
  "bad-gateway",
] as const;
export type VendorEffect = (typeof vendorEffects)[number];

/** What befalls requests. */
export interface Fault {
  readonly operation: Operation;
  /** "after": the request has taken effect, and its answer is replaced. */
  readonly moment: "before" | "after";
  readonly effect: NetworkEffect | VendorEffect;
  /** How many requests it befalls, 1 to 10,000. */
  readonly times: number;
  /** So many fitting requests go by first; 0 when absent. */
  readonly skip?: number;
  /** With "slow"; 1 to 60,000. */
  readonly delayMs?: number;
  /** With "throttled". */
  readonly retryAfterMs?: number;
}

/** How the vendor behaves from now on. */
export interface Switches {
  /** How old lists are: they show the world of then. 0 at first. */
  readonly listLagMs?: number;
  /** Deleted instances are shown as being deleted for so long. 0 at first. */
  readonly deletionMs?: number;
  /** Instances made from now on are not ready for so long. 0 at first. */
  readonly provisionMs?: number;
  /** Instances made from now on wait for a person. False at first. */
  readonly awaitsHuman?: boolean;
  /** Most instances in one page of a list. */
  readonly pageSize?: number;
  /** What the vendor thinks of every credential. "good" at first. */
  readonly credential?: "good" | "wrong" | "scopeless";
  /** How the account stands. "current" at first. */
  readonly billing?: "current" | "overdue" | "exhausted";
}

export const switchNames = [
  "listLagMs",
  "deletionMs",
  "provisionMs",
  "awaitsHuman",
  "pageSize",
  "credential",
  "billing",
] as const satisfies readonly (keyof Switches)[];
export type SwitchName = (typeof switchNames)[number];

/** What somebody does to one instance at the vendor's console. Ids are those the adapter answers. */
export const editNames = [
  /** Another display name. */
  "rename",
  /** Another value in a field that spec.parameters names. */
  "change",
  /** The same values in another notation of the vendor: no drift. */
  "normalise",
  /** Gone. */
  "remove",
  /** Our stamp is taken off. */
  "unstamp",
  /** A second instance with the same fields and stamp, younger; answers its id. */
  "twin",
  /** It no longer works. */
  "break",
  /** It works again. */
  "mend",
  /** An instance without a stamp, as another tenant has; `id` is empty; answers its id. */
  "stranger",
] as const;
export type EditName = (typeof editNames)[number];

export interface Edit {
  readonly edit: EditName;
  readonly id: string;
}

/** One instance as it is at the vendor. */
export interface EmulatedInstance {
  readonly id: string;
  /** Its whole record as JSON: stamps are found in it. */
  readonly text: string;
  readonly createdAtMs: number;
}

/** One request as it ended. Never holds a credential. */
export interface EmulatedRequest {
  readonly operation: Operation;
  readonly atMs: number;
  readonly change: "created" | "updated" | "deleted" | "none";
  /** Which instance it changed; empty: none. */
  readonly id: string;
}

/** The words that an emulator knows. */
export interface Vocabulary {
  readonly operations: readonly Operation[];
  readonly effects: readonly (NetworkEffect | VendorEffect)[];
  readonly switches: readonly SwitchName[];
  readonly edits: readonly EditName[];
}
