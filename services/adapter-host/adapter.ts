/**
 * What a vendor team writes: small primitives in the vendor's own words, never their order.
 *
 * The host owns everything else: request checks, Describe before Create, the diff, one call in
 * flight per key, ownership, realm, deadlines, breaker, retry hints, metrics and errors' details.
 * A primitive talks to the vendor through `call.http` alone, returns plain data, and throws nothing
 * but ProviderError (most come from `classify`, the table of the vendor's errors).
 */
import type { ProviderError } from "../contract/provider-error.ts";
import type { VendorHttp, VendorResponse } from "../vendor-http/vendor-http.ts";

/** Names of `Capability` in provider.proto, without prefix. */
export type CapabilityName =
  | "CREATE_IDEMPOTENT"
  | "UPDATE"
  | "DELETE"
  | "RELEASE"
  | "ADOPT"
  | "LIST_BY_OWNER"
  | "BULK_HEALTH"
  | "USAGE"
  | "QUOTA_SETTABLE"
  | "WATCH_HEALTH"
  | "VALIDATE_ONLY";

/** Who the adapter is; constant. Durations in ms. */
export interface AdapterInfo {
  /** DNS label, also the metrics' and the process's name: "livekit". */
  readonly name: string;
  readonly capabilities: readonly CapabilityName[];
  /** Where key and owner are kept: `StampPlace` without prefix. */
  readonly stampPlace: "ID" | "TAG" | "METADATA" | "NAME" | "DESCRIPTION";
  /** How long after a mutation the vendor's reads may still show the state before it. */
  readonly visibilityLagMs: number;
  /** True when the vendor's lists show each committed mutation at once. */
  readonly areListsConsistent: boolean;
  /**
   * True when `list` shows less of an instance than `read` does. What it leaves out is then read
   * one by one, in rotation, while health is watched.
   */
  readonly listsLackFields?: boolean;
  /** Regions that spec.region may name; empty: any. */
  readonly regions: readonly string[];
  /**
   * JSON Schema (draft 2020-12) of spec.parameters: an object of strings. Checked before each call
   * that brings a spec, one that adopts included, so `required` holds for these as well.
   */
  readonly parameterSchema: Readonly<Record<string, unknown>>;
  /** Fields (paths within spec) that the vendor cannot change after creation. */
  readonly immutableFields: readonly string[];
  readonly nameBytesMax?: number;
  /** What an account may do where the accounts file names no number. */
  readonly callsPerSecond?: number;
  /** Credential fields that are no secrets, such as the id of an API key; others are redacted. */
  readonly publicCredentialFields?: readonly string[];
  /** How long a mutation that was sent may still take effect. */
  readonly mutationDeadlineMs: number;
}

/** One place at the vendor together with what is needed to talk to it. */
export interface VendorCall {
  readonly target: { readonly endpoint: string; readonly region: string; readonly account: string };
  /** Fields of the account's credential file, read anew for each call. Secret: never in a message. */
  readonly credential: Readonly<Record<string, string>>;
  /** Requests to target.endpoint; breaker, time-outs, limits and counting are inside. */
  readonly http: VendorHttp;
  /** Aborts at the call's deadline (for a mutation: at the vendor's mutation deadline). */
  readonly signal: AbortSignal;
}

/** The mark that says whose an instance is. Adapters store it where `stampPlace` says. */
export interface Stamp {
  /** "dhp-" + 16 base32 characters of SHA-256(key): finds it. */
  readonly keyShort: string;
  /** keyShort + "-" + 8 base32 characters of SHA-256(cluster): finds it and tells the owner. */
  readonly short: string;
  /** fleet/namespace/name; empty where the vendor's field was too short. */
  readonly key: string;
  /** Owner's cluster and object uid; empty where the vendor's field was too short. */
  readonly cluster: string;
  readonly uid: string;
  /** The caller's hash of the wanted spec; empty where the vendor has no room. */
  readonly specHash: string;
}

/** What an instance shall be, defaults filled in. */
export interface WantedInstance {
  readonly stamp: Stamp;
  readonly displayName?: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly quota: Quota;
}

export interface Quota {
  readonly maxConcurrency?: number;
  readonly dailyCalls?: number;
  readonly monthlyCredits?: number;
}

/** An instance as the vendor shows it, in our words. Times are epoch ms. */
export interface FoundInstance {
  /** The vendor's id. */
  readonly id: string;
  /** Absent: it carries no stamp of ours. */
  readonly stamp?: Stamp;
  readonly state: "PROVISIONING" | "READY" | "AWAITING_HUMAN" | "FAILED" | "DELETING";
  /** What a person has to do, with AWAITING_HUMAN. */
  readonly action?: { readonly text: string; readonly url: string };
  /** Normalised so that equal means equal; a field the vendor does not show is absent. */
  readonly displayName?: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** Absent: the vendor does not show it. A limit that is absent from it: known to be unlimited. */
  readonly quota?: Quota;
  readonly availability: "AVAILABLE" | "DEGRADED" | "UNAVAILABLE" | "UNKNOWN";
  readonly billing?: "CURRENT" | "OVERDUE" | "EXHAUSTED";
  /** Plain words on its health, without secrets. */
  readonly message?: string;
  readonly usage?: FoundUsage;
  /** Decides which of several with one key is ours; 0: the vendor does not say. */
  readonly createdAtMs: number;
}

export interface FoundUsage {
  readonly calls?: {
    readonly used?: number;
    readonly limit?: number;
    readonly resetsAtMs?: number;
  };
  readonly concurrency?: { readonly used?: number; readonly limit?: number };
  readonly credits?: {
    readonly remaining?: number;
    readonly limit?: number;
    readonly expiresAtMs?: number;
  };
}

/** One page of the vendor's list. */
export interface FoundPage {
  /** All instances of the page, stamped or not: the host sorts out whose they are. */
  readonly instances: readonly FoundInstance[];
  /** Absent: this was the last page. */
  readonly nextToken?: string;
}

/** One field that differs; paths within spec: "displayName", "parameters.maxParticipants". */
export interface FieldChange {
  readonly field: string;
  readonly want: string | undefined;
  readonly have: string | undefined;
}

/** See the file comment. */
export interface Adapter {
  readonly info: AdapterInfo;

  /**
   * Name of the vendor-side account and region that the call speaks for: ids and absences are valid
   * only within it. Made from configuration where possible ("livekit:" + host + api key id), asked
   * of the vendor where not. Not secret.
   */
  realm(call: VendorCall): Promise<string>;

  /** Reads by the vendor's id. `undefined` only when the vendor attests that it does not exist. */
  read(call: VendorCall, id: string): Promise<FoundInstance | undefined>;

  /**
   * Direct look-up by stamp, where the vendor has one (client-named ids, a filter): all that carry
   * the stamp's key. Absent: the host scans `list`.
   */
  find?(call: VendorCall, stamp: Stamp): Promise<readonly FoundInstance[]>;

  /** One page of the account's instances; `token` absent: the first. */
  list(call: VendorCall, token: string | undefined): Promise<FoundPage>;

  /** Creates it, stamped. Returns the id as soon as the vendor names one. */
  create(call: VendorCall, wanted: WantedInstance): Promise<string>;

  /**
   * Makes `changes` true and writes the stamp, in one request. Also serves restamping (`changes`
   * empty) and adoption. Absent: nothing can be changed, and every difference is IMMUTABLE_FIELD.
   * NOT_FOUND: the instance went away since it was found; the caller is told to come again.
   */
  update?(
    call: VendorCall,
    found: FoundInstance,
    wanted: WantedInstance,
    changes: readonly FieldChange[],
  ): Promise<void>;

  /** Removes it. "absent": the vendor attests that it is not there. */
  delete(call: VendorCall, found: FoundInstance): Promise<"deleted" | "deleting" | "absent">;

  /** Takes the stamp off, leaves all else. Absent: the vendor cannot. NOT_FOUND: as in update. */
  release?(call: VendorCall, found: FoundInstance): Promise<void>;

  /**
   * The table of the vendor's errors: what an answer that is no success means. Called by the
   * primitives through `call.http`, for every answer with a status outside 200 to 299 and for
   * bodies that carry an error in a 200. `undefined`: not an error after all. It does not see the
   * request: a primitive may catch what it says and make more of it.
   */
  classify(response: VendorResponse): ProviderError | undefined;
}
