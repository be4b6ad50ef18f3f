/** What a pass carries from step to step, and what it came to. */
import type { ClassChoice } from "../resource/class-choice.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import type { Placement } from "../resource/placement.ts";
import type { Outcome } from "./conditions.ts";
import type { Facts } from "./decide.ts";
import type { SettlingTimes } from "./doubt.ts";
import type { RemovalWait, RemovalWaits } from "./memory.ts";

export interface PassResult {
  /** Undefined: the object is gone. */
  readonly object: DigitalHumanProvider | undefined;
  readonly choice: ClassChoice;
  readonly record: readonly Placement[];
  /** Undefined: nothing to publish. */
  readonly outcome: Outcome | undefined;
  readonly removalWaits: RemovalWaits;
  /** True: memory answered, nobody was asked. */
  readonly isSettled: boolean;
  /** When the vendor wants to be asked for the instance again; undefined: the outcome decides. */
  readonly pollAfterMs: number | undefined;
  /** When the vendor wants to be asked again for what it removes; undefined: the outcome decides. */
  readonly removalPollMs: number | undefined;
  /** The Ensure of this pass that answered; its id is not recorded before the status is written. */
  readonly answered: AnsweredEnsure | undefined;
}

/** What doubt needs to know of an Ensure, should its answer not be recorded. */
export interface AnsweredEnsure {
  readonly realm: string;
  readonly notAfterMs: number;
  readonly settling: SettlingTimes;
}

/** What a pass carries from step to step. */
export interface PassState {
  object: DigitalHumanProvider;
  readonly choice: ClassChoice;
  readonly signal: AbortSignal;
  facts: Facts;
  outcome: Outcome | undefined;
  /** The record that publishing will write: differs from the object's after Ensure answered. */
  record: readonly Placement[];
  readonly removalWaits: Map<string, RemovalWait>;
  pollAfterMs: number | undefined;
  removalPollMs: number | undefined;
  answered: AnsweredEnsure | undefined;
}
