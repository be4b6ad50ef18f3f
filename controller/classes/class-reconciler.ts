/**
 * Keeps classes: a class in use carries a finalizer, so that no instance loses the adapter that can
 * take it back, and its status says who answers and who uses it.
 */
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { Clock } from "../../services/process/clock.ts";
import { objectAt, stringAt, stringsAt } from "../resource/json-door.ts";
import type { JsonObject } from "../resource/json-door.ts";
import { classInUseFinalizer } from "../resource/names.ts";
import type { Providers } from "../providers/providers.ts";
import { parseConditions } from "../resource/digital-human-provider.ts";
import { parseProviderClass } from "../resource/provider-class.ts";
import type { ProviderClass } from "../resource/provider-class.ts";
import { classStatus } from "./class-status.ts";
import type { AdapterAnswer, PlaceCounts } from "./class-status.ts";
import { classUses, noUse } from "./class-use.ts";

/** Reads come from the watches' caches; writes carry resourceVersion and send differences alone. */
export interface ClassObjects {
  cached(name: string): JsonObject | undefined;
  hasSeenOwnWrite(name: string): boolean;
  /** All DigitalHumanProviders. */
  users(): Iterable<JsonObject>;
  /** The class after the write; undefined: the write took the last finalizer off, it is gone. */
  patch(before: JsonObject, after: JsonObject): Promise<JsonObject | undefined>;
  patchStatus(before: JsonObject, after: JsonObject): Promise<JsonObject>;
}

export interface ClassReconcilerParts {
  readonly objects: ClassObjects;
  readonly providers: Pick<Providers, "connected">;
  readonly clock: Clock;
  /** Absent: nobody watches health. */
  readonly placesOf?: (parsed: ProviderClass) => PlaceCounts;
  /** How often an adapter is asked again whether it is there. */
  readonly probeMs: number;
}

/**
 * A pass that has found the class protected may record an instance with it a moment after the class
 * was deleted: so long the finalizer stays, whoever is seen to use it.
 */
const graceMs = 5_000;

const noPlaces: PlaceCounts = { fresh: 0, pending: 0, stale: [] };

export class ClassReconciler {
  readonly #parts: ClassReconcilerParts;
  /** Monotonic ms, by class; as many as there are deleted classes. */
  readonly #deletionSeenMs = new Map<string, number>();

  constructor(parts: ClassReconcilerParts) {
    this.#parts = parts;
  }

  /** ms until the class is to be looked at again; undefined: it is gone, or its own write comes. */
  async reconcile(name: string): Promise<number | undefined> {
    const { objects, clock, probeMs } = this.#parts;
    if (!objects.hasSeenOwnWrite(name)) return undefined;
    const cached = objects.cached(name);
    if (cached === undefined) {
      this.#deletionSeenMs.delete(name);
      return undefined;
    }
    const use = classUses(objects.users()).get(name) ?? noUse;
    const raw = await this.#keepFinalizer(cached, use.count > 0);
    if (raw === undefined) return undefined;
    const parsed = parseProviderClass(raw);
    const status = objectAt(raw, "status");
    const next = classStatus(
      {
        raw,
        generation: parsed.generation,
        isDeleting: parsed.isDeleting,
        address: parsed.adapter.address,
        before: parseConditions(status),
        answer: await this.#ask(parsed),
        use,
        places: this.#parts.placesOf?.(parsed) ?? noPlaces,
        nowMs: clock.now(),
      },
      status,
    );
    await objects.patchStatus(raw, { ...raw, status: next });
    return Math.min(probeMs, this.#graceLeftMs(raw) || probeMs);
  }

  /** On while used; off only when the class is deleted and nobody uses it any more. */
  async #keepFinalizer(raw: JsonObject, isUsed: boolean): Promise<JsonObject | undefined> {
    const metadata = objectAt(raw, "metadata");
    const finalizers = stringsAt(metadata, "finalizers");
    const has = finalizers.includes(classInUseFinalizer);
    const isDeleting = metadata["deletionTimestamp"] !== undefined;
    // The API server takes no new finalizer on an object that is being deleted.
    const next =
      isUsed && !has && !isDeleting
        ? [...finalizers, classInUseFinalizer]
        : !isUsed && has && isDeleting && this.#graceLeftMs(raw) === 0
          ? finalizers.filter((finalizer) => finalizer !== classInUseFinalizer)
          : finalizers;
    if (next === finalizers) return raw;
    const after = { ...raw, metadata: { ...metadata, finalizers: next } };
    return this.#parts.objects.patch(raw, after);
  }

  /**
   * 0: the class lives, or its deletion was seen long enough ago, by our own clock: the server's may
   * be another.
   */
  #graceLeftMs(raw: JsonObject): number {
    const metadata = objectAt(raw, "metadata");
    const name = stringAt(metadata, "name") ?? "";
    if (metadata["deletionTimestamp"] === undefined) {
      this.#deletionSeenMs.delete(name);
      return 0;
    }
    const nowMs = this.#parts.clock.monotonicMs();
    const seenMs = this.#deletionSeenMs.get(name) ?? nowMs;
    this.#deletionSeenMs.set(name, seenMs);
    return Math.max(seenMs + graceMs - nowMs, 0);
  }

  async #ask(parsed: ProviderClass): Promise<AdapterAnswer> {
    try {
      const provider = await this.#parts.providers.connected(parsed.adapter);
      return { kind: "answered", provider };
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      return { kind: "failed", error };
    }
  }
}
