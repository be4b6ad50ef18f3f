import type { Clock, Timer } from "../../services/process/clock.ts";

/**
 * Joins a time limit and a caller's signal into one signal, and remembers which of them ended the
 * call. Disposing takes the timer and the listener back, so a long-lived signal collects nothing.
 */
export class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #callerSignal: AbortSignal | undefined;
  readonly #onCallerAbort = (): void => {
    this.#timer?.cancel();
    this.#controller.abort(this.#callerSignal?.reason);
  };
  readonly #clock: Clock;
  #timer: Timer | undefined;
  #isTimedOut = false;

  constructor(clock: Clock, timeoutMs: number, callerSignal?: AbortSignal) {
    this.#clock = clock;
    this.#callerSignal = callerSignal;
    if (callerSignal?.aborted === true) this.#onCallerAbort();
    else callerSignal?.addEventListener("abort", this.#onCallerAbort, { once: true });
    this.restart(timeoutMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isTimedOut(): boolean {
    return this.#isTimedOut;
  }

  /** Measures anew from now; does nothing once it has ended. */
  restart(timeoutMs: number): void {
    this.#timer?.cancel();
    if (this.signal.aborted) return;
    this.#timer = this.#clock.setTimer(timeoutMs, () => {
      this.#isTimedOut = true;
      this.#controller.abort(new Error(`time limit of ${timeoutMs} ms passed`));
    });
  }

  /** Waits for a promise that knows no signal, at most until the deadline. */
  async race<T>(promise: Promise<T>): Promise<T> {
    this.signal.throwIfAborted();
    let onAbort: (() => void) | undefined;
    const ended = new Promise<never>((_resolve, reject) => {
      onAbort = () => reject(this.signal.reason);
      this.signal.addEventListener("abort", onAbort, { once: true });
    });
    try {
      return await Promise.race([promise, ended]);
    } finally {
      if (onAbort !== undefined) this.signal.removeEventListener("abort", onAbort);
    }
  }

  /** Ends whatever goes on under this deadline now. */
  end(): void {
    this[Symbol.dispose]();
    this.#controller.abort(new Error("ended by its owner"));
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
    this.#callerSignal?.removeEventListener("abort", this.#onCallerAbort);
  }
}
