import { isOlder } from "./resource-version.ts";

/** What a cache tells about how far it has come; `Watch` is one. */
export interface SeenVersions {
  /** Everything of the collection up to this version has been seen. */
  readonly resourceVersion: string | undefined;
  /** Versions of different epochs cannot be compared. */
  readonly epoch: number;
  /** The version of one object in the cache; undefined where it holds none. */
  versionOf(key: string): string | undefined;
}

/**
 * Reading one's own writes: a pass that works on a cache from before its last write would act
 * twice. After a write, the key counts as unseen until the cache has seen that version or a newer
 * one, the object's deletion, or a bookmark or list past it.
 */
export class OwnWrites {
  readonly #seen: SeenVersions;
  readonly #writes = new Map<
    string,
    { readonly resourceVersion: string; readonly epoch: number }
  >();
  /** Versions that a write of ours ended, by key. */
  readonly #ended = new Map<string, string>();
  #sizeAtSweep = sweepSizeMin;

  constructor(seen: SeenVersions) {
    this.#seen = seen;
  }

  /** Keys with a write the cache may not have seen yet. */
  get size(): number {
    return this.#writes.size + this.#ended.size;
  }

  /** Call with the resourceVersion that a create, patch or delete answered. */
  record(key: string, resourceVersion: string): void {
    const { epoch } = this.#seen;
    const last = this.#writes.get(key);
    const isPast = last?.epoch === epoch && isOlder(resourceVersion, last.resourceVersion);
    if (!isPast) this.#writes.set(key, { resourceVersion, epoch });
    this.#sweepWhenGrown();
  }

  /**
   * Call instead of `record` when the write took the last finalizer off a deleted object. The API
   * server deletes it in place of writing it, and answers a version that the cache has seen already.
   * @param lastVersion the resourceVersion that the write was bound to
   */
  recordEnd(key: string, lastVersion: string): void {
    this.#ended.set(key, lastVersion);
    this.#sweepWhenGrown();
  }

  /** False while the cache may still show the object from before our last write to it. */
  hasSeen(key: string): boolean {
    const ended = this.#ended.get(key);
    if (ended !== undefined) {
      if (this.#seen.versionOf(key) === ended) return false;
      this.#ended.delete(key);
    }
    const write = this.#writes.get(key);
    if (write === undefined) return true;
    const isSeen =
      write.epoch !== this.#seen.epoch ||
      isReached(this.#seen.resourceVersion, write.resourceVersion) ||
      isReached(this.#seen.versionOf(key), write.resourceVersion);
    if (isSeen) this.#writes.delete(key);
    return isSeen;
  }

  /** Keys nobody asks for again would stay; doubling makes the sweep's cost constant a write. */
  #sweepWhenGrown(): void {
    if (this.size < this.#sizeAtSweep) return;
    for (const key of this.#writes.keys()) this.hasSeen(key);
    for (const key of this.#ended.keys()) this.hasSeen(key);
    this.#sizeAtSweep = Math.max(sweepSizeMin, this.size * 2);
  }
}

/** Versions that cannot be ordered count as reached only when equal. */
function isReached(seen: string | undefined, written: string): boolean {
  if (seen === undefined) return false;
  return seen === written || isOlder(written, seen);
}

const sweepSizeMin = 1_024;
