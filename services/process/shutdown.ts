/**
 * The life of a process: what starts is stopped in reverse order, once, within a limit, and the exit
 * code says how it went.
 *
 * - SIGTERM or SIGINT: stop, exit 0; a second signal exits at once (128 + its number).
 * - Stopping takes longer than its limit, or a part fails for good: exit 1.
 * - Unhandled rejection or exception: logged as a crash, a short try at stopping, exit 1.
 */
import { constants } from "node:os";

import { systemClock } from "./clock.ts";
import type { Log } from "./log.ts";
import { HelpRequested, OptionsError } from "./options.ts";

/** Where parts say how they are undone. */
export interface StopStack {
  /** Runs `stop` when the process stops, before everything that was added earlier. */
  defer(name: string, stop: () => void | Promise<void>): void;
  /** Stops the process with exit code 1: a part cannot go on, as when leadership is lost. */
  fail(error: Error): void;
}

export interface ProcessOptions {
  readonly log: Log;
  /** Longest time for all stops together. Exceeds every drain time among them. */
  readonly stopTimeoutMs: number;
  /** The same after a crash. */
  readonly crashStopTimeoutMs?: number;
  /**
   * Starts all parts and returns when they run. `signal` aborts when the process is to stop, also
   * in the middle of a start.
   */
  start(stack: StopStack, signal: AbortSignal): Promise<void>;
}

const crashStopTimeoutMsDefault = 2_000;
/** How long open handles may keep a stopped process before it is ended all the same. */
const lingerMs = 1_000;
const signals = ["SIGTERM", "SIGINT"] as const;

/** Runs until a signal, a failure or a crash, then stops and ends the process. */
export async function runProcess(options: ProcessOptions): Promise<void> {
  await new ProcessRun(options).run();
}

/**
 * What `read` returns; on OptionsError its message on standard error and exit code 2, on --help the
 * help on standard output and exit code 0.
 */
export function optionsOrExit<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof HelpRequested) {
      process.stdout.write(`${error.message}\n`);
      process.exit(0);
    }
    if (error instanceof OptionsError) {
      process.stderr.write(`${error.message}\n`);
      process.exit(2);
    }
    throw error;
  }
}

interface Stop {
  readonly name: string;
  readonly stop: () => void | Promise<void>;
}

/** Why the process stops. */
interface Ending {
  readonly exitCode: number;
  readonly timeoutMs: number;
}

class ProcessRun {
  readonly #options: ProcessOptions;
  readonly #stops: Stop[] = [];
  readonly #stopping = new AbortController();
  readonly #ended = Promise.withResolvers<Ending>();
  #isCrashing = false;

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { log, stopTimeoutMs, start } = this.#options;
    for (const name of signals) process.on(name, this.#onSignal);
    process.on("uncaughtException", this.#onCrash);
    process.on("unhandledRejection", this.#onCrash);
    const stack: StopStack = {
      defer: (name, stop) => this.#stops.push({ name, stop }),
      fail: (error) => {
        log.error({ error }, "process cannot go on");
        this.#end({ exitCode: 1, timeoutMs: stopTimeoutMs });
      },
    };
    const started = start(stack, this.#stopping.signal).catch((error: unknown) => {
      // A start that is cut off by a stop ends however it ends.
      if (this.#stopping.signal.aborted) return;
      log.error({ error }, "process cannot start");
      this.#end({ exitCode: 1, timeoutMs: stopTimeoutMs });
    });
    const ending = await this.#ended.promise;
    const isInTime = await within(ending.timeoutMs, async () => {
      await started;
      await this.#stopAll();
    });
    if (!isInTime) log.error({ timeoutMs: ending.timeoutMs }, "process did not stop in time");
    this.#leave(isInTime ? ending.exitCode : 1, isInTime);
  }

  #end(ending: Ending): void {
    // The first cause decides; what follows from it does not change the exit code.
    this.#ended.resolve(ending);
    this.#stopping.abort(new Error("the process is stopping"));
  }

  async #stopAll(): Promise<void> {
    for (let next = this.#stops.pop(); next !== undefined; next = this.#stops.pop()) {
      try {
        await next.stop();
        this.#options.log.debug({ part: next.name }, "stopped");
      } catch (error) {
        // One part that fails to stop must not keep the others from stopping.
        this.#options.log.error({ part: next.name, error }, "cannot stop cleanly");
      }
    }
  }

  #leave(exitCode: number, isInTime: boolean): void {
    const { log } = this.#options;
    process.exitCode = exitCode;
    log.info({ exitCode }, "process stopped");
    if (!isInTime) process.exit(exitCode);
    // With nothing left open Node ends by itself; the timer alone does not keep it.
    setTimeout(() => {
      log.warn({ handles: process.getActiveResourcesInfo() }, "handles left open");
      process.exit(exitCode);
    }, lingerMs).unref();
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    const { log, stopTimeoutMs } = this.#options;
    if (this.#stopping.signal.aborted) {
      log.warn({ signal }, "second signal: process ends at once");
      process.exit(128 + constants.signals[signal]);
    }
    log.info({ signal }, "process stops");
    this.#end({ exitCode: 0, timeoutMs: stopTimeoutMs });
  };

  readonly #onCrash = (error: unknown): void => {
    const { log, crashStopTimeoutMs = crashStopTimeoutMsDefault } = this.#options;
    log.error({ error }, "process crashed");
    // The end that is under way may be what the crash has broken: no waiting for it.
    if (this.#isCrashing || this.#stopping.signal.aborted) process.exit(1);
    this.#isCrashing = true;
    this.#end({ exitCode: 1, timeoutMs: crashStopTimeoutMs });
  };
}

/** True when `work` was done before the time was up. */
async function within(limitMs: number, work: () => Promise<void>): Promise<boolean> {
  const over = new AbortController();
  const late = systemClock.sleep(limitMs, over.signal).then(
    () => false,
    () => true,
  );
  const done = work().then(() => true);
  const isInTime = await Promise.race([done, late]);
  over.abort();
  return isInTime;
}
