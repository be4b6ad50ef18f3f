import type { Priority } from "./ready-keys.ts";

/** What a queue counts, named after workqueue_*; all methods return at once. */
export interface QueueMetrics {
  /** workqueue_depth: keys ready to run, by priority. Called when it changed. */
  onDepth(priority: Priority, depth: number): void;
  /** workqueue_adds_total */
  onAdd(): void;
  /** workqueue_queue_duration_seconds: how long a key was ready before it ran. */
  onQueueDuration(durationMs: number): void;
  /** workqueue_work_duration_seconds */
  onWorkDuration(durationMs: number): void;
  /** workqueue_retries_total */
  onRetry(): void;
}

/** Read when metrics are collected. */
export interface QueueSnapshot {
  readonly depth: number;
  /** True while a key may be taken; ready keys may all wait for a hold or for their group's share. */
  readonly hasWork: boolean;
  readonly waitingCount: number;
  readonly runningCount: number;
  /** workqueue_unfinished_work_seconds: the sum over running keys. */
  readonly unfinishedWorkMs: number;
  /** workqueue_longest_running_processor_seconds */
  readonly longestRunningMs: number;
}
