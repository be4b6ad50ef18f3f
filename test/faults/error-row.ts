/** One row of the contract's table of errors, as a test walks it, and the steps rows are made of. */
import type { ScriptStep } from "../../adapters/elevenlabs/test-bench.ts";
import type {
  Code,
  MutationEffect,
  ProviderErrorFacts,
  Reason,
} from "../../services/contract/provider-error.ts";
import type { LineOptions, VendorLine } from "./vendor-line.ts";

export interface ErrorRow {
  /** First column of the contract's table. */
  readonly says: string;
  /** What comes from the vendor, in words. */
  readonly vendor: string;
  /** What the object is when the vendor says it; new when absent. */
  readonly object?: "new" | "ready" | "deleted";
  readonly spec?: Readonly<Record<string, unknown>>;
  /** A line of its own, for what would disturb other rows. */
  readonly line?: LineOptions;
  readonly arrange?: Arrange;
  /** The error as it came over gRPC. Absent: none came. */
  readonly wire?: WireError;
  /** "True ProviderReady" by type; absent: the object is gone. */
  readonly conditions?: Readonly<Record<string, string>>;
  /** What condition Ready says in words. */
  readonly message?: RegExp;
  readonly next: Next;
}

export type Arrange = (line: VendorLine, key: string) => unknown;

/** When the controller asks again. */
export type Next =
  /** With growing waits. */
  | "back-off"
  /** When something changes, and as a slow probe. */
  | "slowly"
  /** Not before the time that was named, whatever changes. */
  | "not before"
  /** It did not fail: there is something to wait for, or nothing to do. */
  | "no failure";

export interface WireError {
  readonly code: Code;
  readonly reason: Reason;
  /** Absent: a read failed, and a read changes nothing. */
  readonly outcome?: MutationEffect;
  /** Details that have to be there. */
  readonly details?: readonly (keyof ProviderErrorFacts)[];
}

export const createPath = "^/v1/convai/agents/create$";
export const listPath = "^/v1/convai/agents$";

export function script(...steps: readonly ScriptStep[]): Arrange {
  return ({ bench }) => bench.script(...steps);
}

/** The vendor refuses the create in its own words. */
export function refusesCreate(name: string, headers: object = {}): Arrange {
  return breaksCreate({ kind: "error", name, headers });
}

export function breaksCreate(effect: object, own: object = {}): Arrange {
  return script({ do: "fault", method: "POST", path: createPath, effect, ...own });
}

/** Each read of a list goes wrong from now on. */
export function breaksReads(effect: object): Arrange {
  return script({ do: "fault", method: "GET", path: listPath, times: 1_000, effect });
}
