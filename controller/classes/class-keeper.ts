/** Runs the class reconciler: a small queue of its own, over the runtime's watches and client. */
import type { Clock } from "../../services/process/clock.ts";
import type { Log } from "../../services/process/log.ts";
import { isApiError } from "../kubernetes/api-error.ts";
import type { OwnWrites } from "../kubernetes/own-writes.ts";
import { readIdentity } from "../kubernetes/raw-object.ts";
import type { RawObject } from "../kubernetes/raw-object.ts";
import type { PatchResult, ResourceClient } from "../kubernetes/resource-client.ts";
import type { Watch } from "../kubernetes/watch.ts";
import { WorkQueue } from "../queue/work-queue.ts";
import { WorkerPool } from "../queue/worker-pool.ts";
import type { StopLimits } from "../queue/worker-pool.ts";
import type { Providers } from "../providers/providers.ts";
import { objectAt, stringsAt } from "../resource/json-door.ts";
import { classInUseFinalizer } from "../resource/names.ts";
import type { ProviderClass } from "../resource/provider-class.ts";
import { ClassReconciler } from "./class-reconciler.ts";
import type { ClassObjects } from "./class-reconciler.ts";
import type { PlaceCounts } from "./class-status.ts";

export interface ClassKeeperParts {
  readonly classes: Pick<Watch<RawObject>, "get" | "keys">;
  readonly objects: Pick<Watch<RawObject>, "list">;
  readonly client: Pick<ResourceClient<RawObject>, "get" | "patch" | "patchStatus">;
  readonly ownWrites: Pick<OwnWrites, "record" | "recordEnd" | "hasSeen">;
  readonly providers: Pick<Providers, "connected">;
  readonly placesOf: (parsed: ProviderClass) => PlaceCounts;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Aborts: passes are told to end at once, and no more are begun. */
  readonly endSignal: AbortSignal;
}

/** How often an adapter is asked again whether it is there. */
const probeMs = 15_000;
/** Objects that come and go within this are counted once. */
const countDelayMs = 1_000;
const protectAttemptsMax = 5;
const workersMax = 4;
const passTimeoutMs = 60_000;
const backOff = { minMs: 500, maxMs: 60_000 };

export class ClassKeeper implements ClassObjects {
  readonly #parts: ClassKeeperParts;
  readonly #queue: WorkQueue;
  readonly #pool: WorkerPool;

  constructor(parts: ClassKeeperParts) {
    this.#parts = parts;
    const { clock, random, log, providers, placesOf } = parts;
    this.#queue = new WorkQueue({
      clock,
      random,
      workersMax,
      backOff,
      eventFloorMs: backOff.minMs,
    });
    const reconciler = new ClassReconciler({ objects: this, providers, placesOf, clock, probeMs });
    this.#pool = new WorkerPool({
      queue: this.#queue,
      reconcile: async (name) => {
        const afterMs = await reconciler.reconcile(name);
        return afterMs === undefined ? { kind: "done" } : { kind: "requeue", afterMs };
      },
      clock,
      log,
      runTimeoutMs: passTimeoutMs,
      endSignal: parts.endSignal,
    });
  }

  start(): void {
    this.#pool.start();
    for (const name of this.#parts.classes.keys()) this.#queue.add(name);
  }

  classChanged(name: string): void {
    this.#queue.add(name);
  }

  /** What is known of some places has become old, or fresh again. */
  healthChanged(): void {
    for (const name of this.#parts.classes.keys()) this.#queue.add(name);
  }

  /** An object may have begun or ceased to use a class. */
  useChanged(): void {
    for (const name of this.#parts.classes.keys()) this.#queue.addAfter(name, countDelayMs);
  }

  /** Answers the classes whose passes did not heed the stop. */
  async stop(limits: StopLimits): Promise<readonly string[]> {
    return this.#pool.stop(limits);
  }

  /**
   * Puts the finalizer on a class before the first instance is recorded with it; a class that is
   * being deleted takes none.
   * @throws ApiError when the API server refuses
   */
  async protect(name: string): Promise<"protected" | "deleting"> {
    for (let attempt = 1; ; attempt++) {
      const raw = await this.#parts.client.get(name);
      const metadata = objectAt(raw, "metadata");
      const finalizers = stringsAt(metadata, "finalizers");
      if (metadata["deletionTimestamp"] !== undefined) return "deleting";
      if (finalizers.includes(classInUseFinalizer)) return "protected";
      const next = [...finalizers, classInUseFinalizer];
      try {
        await this.patch(raw, { ...raw, metadata: { ...metadata, finalizers: next } });
        return "protected";
      } catch (error) {
        // Two objects at once: one of them is enough.
        const isRace = isApiError(error) && error.kind === "conflict";
        if (!isRace || attempt === protectAttemptsMax) throw error;
      }
    }
  }

  cached(name: string): RawObject | undefined {
    return this.#parts.classes.get(name);
  }

  hasSeenOwnWrite(name: string): boolean {
    return this.#parts.ownWrites.hasSeen(name);
  }

  users(): Iterable<RawObject> {
    return this.#parts.objects.list();
  }

  async patch(before: RawObject, after: RawObject): Promise<RawObject | undefined> {
    const written = this.#wrote(await this.#parts.client.patch(before, after));
    const metadata = objectAt(written, "metadata");
    const isGone =
      metadata["deletionTimestamp"] !== undefined && stringsAt(metadata, "finalizers").length === 0;
    if (!isGone) return written;
    const { name, resourceVersion } = readIdentity(before);
    this.#parts.ownWrites.recordEnd(name, resourceVersion);
    return undefined;
  }

  async patchStatus(before: RawObject, after: RawObject): Promise<RawObject> {
    return this.#wrote(await this.#parts.client.patchStatus(before, after));
  }

  #wrote(result: PatchResult<RawObject>): RawObject {
    if (!result.isSent) return result.object;
    const { name, resourceVersion } = readIdentity(result.object);
    this.#parts.ownWrites.record(name, resourceVersion);
    return result.object;
  }
}
