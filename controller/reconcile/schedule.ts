/** When to look at an object again, and before when not. Pure but for the random spread. */
import { assertNever } from "../../services/process/assert-never.ts";
import type { Outcome } from "./conditions.ts";
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

export interface ScheduleInput {
  readonly outcome: Outcome;
  /** Failures in a row, this one included. */
  readonly failures: number;
  readonly nowMs: number;
  readonly pollAfterMs: number | undefined;
  readonly stallsAtMs: number | undefined;
  readonly hasRetiring: boolean;
  readonly hasCleanupFailed: boolean;
  readonly options: ScheduleOptions;
  readonly random: () => number;
}

export interface Due {
  /** Epoch ms of the next look. */
  readonly dueMs: number;
  /** Epoch ms before which the vendor is not called whatever changes; 0: none. */
  readonly holdUntilMs: number;
}

/** Hints beyond this are not believed: an hour. */
const holdMsMax = 3_600_000;

export function nextDue(input: ScheduleInput): Due {
  const failure = "failure" in input.outcome ? input.outcome.failure : undefined;
  if (failure !== undefined) return afterFailure(input, failure);
  const dueMs = input.nowMs + waitMs(input);
  return { dueMs, holdUntilMs: 0 };
}

function waitMs(input: ScheduleInput): number {
  const { outcome, options, nowMs, pollAfterMs } = input;
  switch (outcome.kind) {
    case "ensured":
      return ensuredWaitMs(input);
    case "in-doubt":
      return clampMs(outcome.untilMs - nowMs, options);
    case "removing":
    case "retiring":
      return clampMs(pollAfterMs ?? options.pollMs, options);
    default:
      return spread(options.reprobeMs, input.random);
  }
}

function ensuredWaitMs(input: ScheduleInput): number {
  const { outcome, options, nowMs, pollAfterMs, stallsAtMs } = input;
  // A former place is finished at once; after a failure, with the failure's patience.
  if (input.hasRetiring) {
    return input.hasCleanupFailed
      ? spread(options.backOffMsMin * 8, input.random)
      : clampMs(pollAfterMs ?? 0, options);
  }
  if (outcome.kind !== "ensured") return options.pollMs;
  const { state, drift } = outcome.instance;
  if (state === "READY" && drift.length === 0) return spread(options.resyncMs, input.random);
  if (state === "FAILED") return spread(options.reprobeMs, input.random);
  const poll = clampMs(pollAfterMs ?? options.pollMs, options);
  const untilStalled = (stallsAtMs ?? Number.POSITIVE_INFINITY) - nowMs;
  return untilStalled > 0 ? Math.min(poll, untilStalled) : poll;
}

function afterFailure(input: ScheduleInput, failure: Failure): Due {
  const { options, nowMs, failures } = input;
  const exponential = options.backOffMsMin * 2 ** Math.min(failures - 1, 20);
  const backOff = spread(Math.min(exponential, options.backOffMsMax), input.random);
  switch (failure.retry) {
    case "back-off":
      return { dueMs: nowMs + Math.max(backOff, hintMs(failure)), holdUntilMs: 0 };
    case "terminal":
      return { dueMs: nowMs + spread(options.reprobeMs, input.random), holdUntilMs: 0 };
    case "hold": {
      const wait = failure.retryAfterMs === undefined ? backOff : hintMs(failure);
      return { dueMs: nowMs + wait, holdUntilMs: nowMs + wait };
    }
    default:
      return assertNever(failure.retry);
  }
}

function hintMs(failure: Failure): number {
  return Math.min(failure.retryAfterMs ?? 0, holdMsMax);
}

function clampMs(ms: number, options: ScheduleOptions): number {
  return Math.min(Math.max(0, ms), options.reprobeMs);
}

/** Give or take a tenth, so that many objects do not come at once. */
function spread(ms: number, random: () => number): number {
  return ms * (0.9 + 0.2 * random());
}
