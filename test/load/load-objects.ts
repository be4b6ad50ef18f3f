/** Many objects at once: made, awaited and removed over one connection, as a busy team would. */
import { readIdentity } from "../../controller/kubernetes/raw-object.ts";
import type { RawObject } from "../../controller/kubernetes/raw-object.ts";
import { Connection } from "../../controller/kubernetes/connection.ts";
import { kubeConfigFile } from "../../controller/kubernetes/kube-config.ts";
import { Watch } from "../../controller/kubernetes/watch.ts";
import type { WatchEvent } from "../../controller/kubernetes/object-cache.ts";
import { arrayAt, objectAt, stringAt } from "../../controller/resource/json-door.ts";
import { systemClock } from "../../services/process/clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { dhp } from "../support/providers.ts";
import type { Stack } from "../support/stack.ts";

export const collectionPath =
  "/apis/dhp.example.com/v1alpha1/namespaces/default/digitalhumanproviders";
const inFlightMax = 32;
const limitMs = 600_000;
const requestTimeoutMs = 30_000;

/** Spec fields beyond the default, by object name. */
export type LoadSpecs = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

export interface CreateTimes {
  /** From the first create to the last Ready. */
  readonly seconds: number;
  /** From sending one object's create to seeing it Ready, over all objects. */
  readonly msP50: number;
  readonly msP99: number;
}

export class LoadObjects {
  readonly #connection: Connection;
  readonly #specs: LoadSpecs;
  readonly #names: readonly string[];
  readonly #watching = new AbortController();
  readonly #sentAtMs = new Map<string, number>();
  readonly #readyAfterMs = new Map<string, number>();
  readonly #gone = new Set<string>();
  #watch: Promise<void> = Promise.resolve();
  #onProgress: () => void = () => undefined;

  constructor(connection: Connection, specs: LoadSpecs) {
    this.#connection = connection;
    this.#specs = specs;
    this.#names = [...specs.keys()];
  }

  static async open(stack: Stack, specs: LoadSpecs): Promise<LoadObjects> {
    const objects = new LoadObjects(openConnection(stack), specs);
    const watch = new Watch<RawObject>({
      connection: objects.#connection,
      path: collectionPath,
      parse: (raw) => raw,
      onEvent: (event) => objects.#seen(event),
      clock: systemClock,
      random: Math.random,
      log: silentLog,
    });
    objects.#watch = watch.run(objects.#watching.signal);
    await watch.whenSynced(AbortSignal.timeout(requestTimeoutMs));
    return objects;
  }

  /** Creates all, whatever becomes of them. */
  sendAll(): Promise<void> {
    return forEachInParallel(this.#names, async (name) => {
      this.#sentAtMs.set(name, performance.now());
      await this.#send("POST", collectionPath, dhp(name, this.#specs.get(name)));
    });
  }

  async createAll(): Promise<CreateTimes> {
    const startMs = performance.now();
    await this.sendAll();
    await this.#until(() => this.#readyAfterMs.size === this.#names.length);
    const times = [...this.#readyAfterMs.values()].sort((left, right) => left - right);
    return {
      seconds: (performance.now() - startMs) / 1000,
      msP50: quantile(times, 0.5),
      msP99: quantile(times, 0.99),
    };
  }

  /** Seconds from the first delete until the last object is gone. */
  async deleteAll(): Promise<number> {
    const startMs = performance.now();
    await forEachInParallel(this.#names, (name) =>
      this.#send("DELETE", `${collectionPath}/${name}`, undefined),
    );
    await this.#until(() => this.#gone.size === this.#names.length);
    return (performance.now() - startMs) / 1000;
  }

  async close(): Promise<void> {
    this.#watching.abort(new Error("load run is over"));
    await this.#watch;
    await this.#connection.close();
  }

  #seen(event: WatchEvent<RawObject>): void {
    if (event.kind === "deleted") {
      this.#gone.add(readIdentity(event.before).name);
    } else if (isReady(event.object)) {
      const { name } = readIdentity(event.object);
      const sentAtMs = this.#sentAtMs.get(name);
      if (sentAtMs !== undefined && !this.#readyAfterMs.has(name)) {
        this.#readyAfterMs.set(name, performance.now() - sentAtMs);
      }
    }
    this.#onProgress();
  }

  async #send(method: "POST" | "DELETE", path: string, body: unknown): Promise<void> {
    await this.#connection.request({ method, path, body, timeoutMs: requestTimeoutMs });
  }

  #until(isDone: () => boolean): Promise<void> {
    if (isDone()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const ready = this.#readyAfterMs.size;
        const problem = `after ${limitMs / 1000} s: ${ready} of ${this.#names.length} were Ready, ${this.#gone.size} are gone`;
        reject(new Error(problem));
      }, limitMs);
      this.#onProgress = () => {
        if (!isDone()) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

export function openConnection(stack: Stack): Connection {
  return new Connection({
    source: kubeConfigFile(stack.cluster.adminKubeconfig),
    clock: systemClock,
    log: silentLog,
    metrics: { onRequest: () => undefined, onHandshake: () => undefined },
    userAgent: "dhp-load",
  });
}

function isReady(object: RawObject): boolean {
  const conditions = arrayAt(objectAt(object, "status"), "conditions");
  return conditions.some(
    (condition) =>
      stringAt(condition, "type") === "Ready" && stringAt(condition, "status") === "True",
  );
}

async function forEachInParallel(
  names: readonly string[],
  run: (name: string) => Promise<void>,
): Promise<void> {
  const queue = names.values();
  const worker = async (): Promise<void> => {
    for (const name of queue) await run(name);
  };
  await Promise.all(Array.from({ length: inFlightMax }, worker));
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
