import { setImmediate } from "node:timers/promises";

import { sleepOn } from "./clock.ts";
import type { Clock, Timer } from "./clock.ts";

interface PendingTimer {
  readonly atMs: number;
  readonly order: number;
  readonly fn: () => void;
}

/** A clock that moves only when a test says so. */
export class FakeClock implements Clock {
  #nowMs: number;
  #monotonicMs = 0;
  #order = 0;
  readonly #timers = new Set<PendingTimer>();

  /** @param nowMs wall time at the start, milliseconds since the epoch */
  constructor(nowMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = nowMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    const atMs = this.#monotonicMs + Math.max(delayMs, 0);
    this.#order += 1;
    const timer: PendingTimer = { atMs, order: this.#order, fn };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, delayMs, signal);
  }

  /** Timers set and neither fired nor cancelled: a leak check for tests. */
  get pendingTimerCount(): number {
    return this.#timers.size;
  }

  /** Sets the wall clock alone, as an administrator or NTP would. */
  setWallTime(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  /**
   * Moves time by `durationMs`, firing each timer that falls due in its order. What a timer starts
   * gets to run before the next one fires, and timers it sets within the span fire too.
   */
  async advance(durationMs: number): Promise<void> {
    const endMs = this.#monotonicMs + durationMs;
    await setImmediate();
    for (let next = this.#nextDue(endMs); next !== undefined; next = this.#nextDue(endMs)) {
      this.#timers.delete(next);
      this.#moveTo(Math.max(next.atMs, this.#monotonicMs));
      next.fn();
      await setImmediate();
    }
    this.#moveTo(endMs);
  }

  #moveTo(monotonicMs: number): void {
    this.#nowMs += monotonicMs - this.#monotonicMs;
    this.#monotonicMs = monotonicMs;
  }

  #nextDue(endMs: number): PendingTimer | undefined {
    let due: PendingTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs > endMs) continue;
      if (due === undefined || timer.atMs < due.atMs) due = timer;
      else if (timer.atMs === due.atMs && timer.order < due.order) due = timer;
    }
    return due;
  }
}
