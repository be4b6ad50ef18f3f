/** When to look at an object again, and before when not. Pure but for the random spread. */
import { assertNever } from "../../services/process/assert-never.ts";
import type { Outcome } from "./conditions.ts";
import { holdMsMax } from "./failure.ts";
import type { Failure } from "./failure.ts";

export interface ScheduleOptions {
  /** A ready instance is read again this often, give or take a tenth. */
  readonly resyncMs: number;
  /** What only a person can mend is looked at again this often. */
  readonly reprobeMs: number;
  /** First and longest wait after failures. */
  readonly backOffMsMin: number;
  readonly backOffMsMax: number;
  /** Waits between looks at what the vendor is still making or removing, without its own hint. */
  readonly pollMs: number;
}

/** Chance and limits, the same for each question. */
export interface Pace {
  readonly options: ScheduleOptions;
  /** 0 to 1. */
  readonly random: () => number;
}

export interface ScheduleInput {
  readonly outcome: Outcome;
  /** Failures in a row, this one included. */
  readonly failures: number;
  readonly nowMs: number;
  /** When what is being made wants to be asked for again. */
  readonly pollAfterMs: number | undefined;
  /** When what is being removed wants to be asked for again. */
  readonly removalPollMs: number | undefined;
  readonly stallsAtMs: number | undefined;
  /** Epoch ms of the next attempt to clean up a former place; undefined: there is none. */
  readonly cleanupAtMs: number | undefined;
}

export interface Due {
  /** Epoch ms of the next look. */
  readonly dueMs: number;
  /** Epoch ms before which the vendor is not called whatever changes; 0: none. */
  readonly holdUntilMs: number;
}

export function nextDue(input: ScheduleInput, pace: Pace): Due {
  const { outcome, nowMs, failures, cleanupAtMs } = input;
  const failure = "failure" in outcome ? outcome.failure : undefined;
  if (failure !== undefined) return dueAfterFailure(failure, failures, nowMs, pace);
  const dueMs = nowMs + waitMs(input, pace);
  // A suspended object's former places wait with it.
  const isCleaning = cleanupAtMs !== undefined && outcome.kind !== "suspended";
  return {
    dueMs: isCleaning ? Math.min(dueMs, Math.max(nowMs, cleanupAtMs)) : dueMs,
    holdUntilMs: 0,
  };
}

/** When a call that failed may be made again, after so many failures in a row. */
export function dueAfterFailure(
  failure: Failure,
  failures: number,
  nowMs: number,
  { options, random }: Pace,
): Due {
  const exponential = options.backOffMsMin * 2 ** Math.min(Math.max(failures - 1, 0), 20);
  const backOffMs = spread(Math.min(exponential, options.backOffMsMax), random);
  const hintMs = Math.min(Math.max(0, (failure.retryAtMs ?? 0) - nowMs), holdMsMax);
  switch (failure.retry) {
    case "back-off":
      return { dueMs: nowMs + Math.max(backOffMs, hintMs), holdUntilMs: 0 };
    case "terminal":
      return { dueMs: nowMs + Math.max(spread(options.reprobeMs, random), hintMs), holdUntilMs: 0 };
    case "hold": {
      const resetMs = Math.min((failure.resetsAtMs ?? 0) - nowMs, options.reprobeMs);
      const unhintedMs = Math.max(backOffMs, resetMs);
      const holdMs = failure.retryAtMs === undefined ? unhintedMs : hintMs;
      // A short hint given again and again would be a steady stream of calls.
      return { dueMs: nowMs + Math.max(holdMs, backOffMs), holdUntilMs: nowMs + holdMs };
    }
    default:
      return assertNever(failure.retry);
  }
}

function waitMs(input: ScheduleInput, { options, random }: Pace): number {
  const { outcome, nowMs, pollAfterMs, removalPollMs, stallsAtMs } = input;
  switch (outcome.kind) {
    case "ensured": {
      const { state, drift } = outcome.instance;
      if (state === "READY" && drift.length === 0) return spread(options.resyncMs, random);
      if (state === "FAILED") return spread(options.reprobeMs, random);
      const poll = clampMs(pollAfterMs ?? options.pollMs, options);
      const untilStalled = (stallsAtMs ?? Number.POSITIVE_INFINITY) - nowMs;
      return untilStalled > 0 ? Math.min(poll, untilStalled) : poll;
    }
    case "in-doubt":
      return clampMs(outcome.untilMs - nowMs, options);
    case "removing":
      return clampMs(removalPollMs ?? options.pollMs, options);
    default:
      return spread(options.reprobeMs, random);
  }
}

function clampMs(ms: number, options: ScheduleOptions): number {
  return Math.min(Math.max(0, ms), options.reprobeMs);
}

/** Give or take a tenth, so that many objects do not come at once. */
function spread(ms: number, random: () => number): number {
  return ms * (0.9 + 0.2 * random());
}
