/** Conditions of all objects as they come over a watch, and when: what `kubectl get -w` would print. */
import type { Connection } from "../../controller/kubernetes/connection.ts";
import { readIdentity } from "../../controller/kubernetes/raw-object.ts";
import type { RawObject } from "../../controller/kubernetes/raw-object.ts";
import { Watch } from "../../controller/kubernetes/watch.ts";
import { arrayAt, objectAt, stringAt } from "../../controller/resource/json-door.ts";
import { systemClock } from "../../services/process/clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { collectionPath } from "./load-objects.ts";

/** "True", "False", "Unknown" and the reason of one condition. */
export interface SeenCondition {
  readonly status: string;
  readonly reason: string;
}

const syncTimeoutMs = 30_000;
const pollMs = 20;

export class HealthWatcher {
  readonly #objects = new Map<string, RawObject>();
  /** Changed objects since the start: each is one write by somebody. */
  eventCount = 0;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #onEvent: (name: string) => void = () => undefined;

  static async open(connection: Connection): Promise<HealthWatcher> {
    const watcher = new HealthWatcher();
    const watch = new Watch<RawObject>({
      connection,
      path: collectionPath,
      parse: (raw) => raw,
      onEvent: (event) => {
        if (event.kind === "deleted") return;
        const { name } = readIdentity(event.object);
        watcher.eventCount += 1;
        watcher.#objects.set(name, event.object);
        watcher.#onEvent(name);
      },
      clock: systemClock,
      random: Math.random,
      log: silentLog,
    });
    watcher.#running = watch.run(watcher.#stopping.signal);
    await watch.whenSynced(AbortSignal.timeout(syncTimeoutMs));
    return watcher;
  }

  condition(name: string, type: string): SeenCondition | undefined {
    const conditions = arrayAt(objectAt(this.#objects.get(name), "status"), "conditions");
    const found = conditions.find((condition) => stringAt(condition, "type") === type);
    if (found === undefined) return undefined;
    return { status: stringAt(found, "status") ?? "", reason: stringAt(found, "reason") ?? "" };
  }

  /**
   * Does `change`, and waits until `isSeen` holds for each name; ms from the change until then, sorted.
   * @throws Error when it does not in time; says for how many
   */
  async timeUntil(
    names: readonly string[],
    options: {
      readonly change: () => Promise<unknown>;
      readonly isSeen: (name: string) => boolean;
      readonly limitMs: number;
    },
  ): Promise<readonly number[]> {
    const { change, isSeen, limitMs } = options;
    const open = new Set(names);
    const times: number[] = [];
    const startMs = performance.now();
    const look = (name: string): void => {
      if (!open.has(name) || !isSeen(name)) return;
      open.delete(name);
      times.push(performance.now() - startMs);
    };
    this.#onEvent = look;
    await change();
    while (open.size > 0 && performance.now() - startMs < limitMs) await systemClock.sleep(pollMs);
    this.#onEvent = () => undefined;
    if (open.size === 0) return times.sort((a, b) => a - b);
    const [first] = open;
    throw new Error(`${open.size} of ${names.length} did not show it in ${limitMs} ms: ${first}`);
  }

  async close(): Promise<void> {
    this.#stopping.abort(new Error("the load run is over"));
    await this.#running;
  }
}
