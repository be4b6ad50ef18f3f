/**
 * What a conformance case is. A case states one promise of the contract, provokes it through the
 * bench, and throws Unmet with what was expected and what came. Cases are data to the runner: which
 * run, which are skipped and why, is decided from `needs` alone.
 */
import type { CapabilityName } from "./wire-words.ts";
import type {
  EditName,
  Operation,
  SwitchName,
} from "../../../services/vendor-emulator/fault-words.ts";
import type { NetworkEffect, VendorEffect } from "../../../services/vendor-emulator/fault-words.ts";
import type { Bench } from "./bench.ts";
import type { ParameterName } from "./parameters.ts";
import type { RuleId } from "./rules.ts";

/** What a case cannot do without; what is missing makes it skipped, and listed with the reason. */
export type Need =
  /** Declared in GetProviderInfo. */
  | { readonly kind: "capability"; readonly name: CapabilityName }
  /** Not declared in GetProviderInfo. */
  | { readonly kind: "no-capability"; readonly name: CapabilityName }
  /** Given in the parameters file. */
  | { readonly kind: "parameter"; readonly name: ParameterName }
  /** The emulator's port behind the scenes. */
  | { readonly kind: "vendor-faults" }
  | { readonly kind: "effect"; readonly name: NetworkEffect | VendorEffect }
  | { readonly kind: "operation"; readonly name: Operation }
  | { readonly kind: "switch"; readonly name: SwitchName }
  | { readonly kind: "edit"; readonly name: EditName }
  /** Something that GetProviderInfo says of this vendor; `what` completes "needs ...". */
  | { readonly kind: "trait"; readonly what: string; readonly isSo: (bench: Bench) => boolean }
  /** The suite starts the adapter itself (`start` in the parameters file), so it may stop it. */
  | { readonly kind: "own-process" };

/** What remains to be seen once time has passed; all that wait, wait together. */
export interface Later {
  readonly afterMs: number;
  readonly check: () => Promise<void>;
}

export interface ConformanceCase {
  /** group/what-must-hold, kebab-case: "ensure/ten-times-makes-one". Stable. */
  readonly name: string;
  /** What must hold, as a sentence. */
  readonly promise: string;
  readonly checks: readonly RuleId[];
  readonly needs: readonly Need[];
  /** What whoever writes the adapter should do when it fails. */
  readonly fix: string;
  /** 20 s when absent; what comes later is not counted. */
  readonly timeoutMs?: number;
  readonly run: (bench: Bench) => Promise<Later | void>;
}

/** A promise that was not kept. */
export class Unmet extends Error {
  override readonly name = "Unmet";
  readonly expected: string;
  readonly came: string;

  constructor(expected: string, came: string, cause?: unknown) {
    super(`expected ${expected}, but ${came}`, { cause });
    this.expected = expected;
    this.came = came;
  }
}

export function unmet(expected: string, came: string): never {
  throw new Unmet(expected, came);
}

/** Throws Unmet unless `isSo`. */
export function expect(isSo: boolean, expected: string, came: () => string): void {
  if (!isSo) unmet(expected, came());
}
