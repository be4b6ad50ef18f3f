import type { Timer } from "../../services/process/clock.ts";
import type { Priority } from "./ready-keys.ts";

/** What a work queue knows of one key. Instants are monotonic milliseconds. */
export interface QueueEntry {
  readonly key: string;
  groups: readonly string[];
  /** While it is ready: with whom it takes turns. */
  turn: string;
  priority: Priority;
  phase: "idle" | "waiting" | "ready" | "running";
  /** When the key is wished to run next; infinite where it is not. */
  wantedAtMs: number;
  /** True where something happened since the last run began, which a mere requeue is not. */
  hasEvent: boolean;
  /** The floor a failure sets for events. */
  notBeforeMs: number;
  failures: number;
  readyAtMs: number | undefined;
  startedAtMs: number;
  /** Takes the present run out of its groups; the key may have moved to others since. */
  endRun: () => void;
  timer: Timer | undefined;
}

export function newQueueEntry(
  key: string,
  groups: readonly string[],
  priority: Priority,
): QueueEntry {
  return {
    key,
    groups,
    turn: "",
    priority,
    phase: "idle",
    wantedAtMs: Number.POSITIVE_INFINITY,
    hasEvent: false,
    notBeforeMs: Number.NEGATIVE_INFINITY,
    failures: 0,
    readyAtMs: undefined,
    startedAtMs: 0,
    endRun: () => undefined,
    timer: undefined,
  };
}
