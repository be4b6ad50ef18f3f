/** ProviderObjects over the runtime: the watch's cache for reads, merge patches for writes. */
import { isApiError } from "../kubernetes/api-error.ts";
import type { OwnWrites } from "../kubernetes/own-writes.ts";
import { readIdentity } from "../kubernetes/raw-object.ts";
import type { RawObject } from "../kubernetes/raw-object.ts";
import type { PatchResult, ResourceClient } from "../kubernetes/resource-client.ts";
import type { Watch } from "../kubernetes/watch.ts";
import { parseDigitalHumanProvider } from "../resource/digital-human-provider.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import { objectAt } from "../resource/json-door.ts";
import type { JsonObject } from "../resource/json-door.ts";
import type { ProviderClass } from "../resource/provider-class.ts";
import type { MetadataChange, ObjectEvent, ProviderObjects } from "./provider-objects.ts";

export interface ApiObjectsParts {
  readonly watch: Pick<Watch<RawObject>, "get">;
  readonly classes: () => readonly ProviderClass[];
  /** Puts the finalizer on a class before something is recorded with it. */
  readonly protectClass: (name: string) => Promise<"protected" | "deleting">;
  readonly client: Pick<ResourceClient<RawObject>, "get" | "patch" | "patchStatus">;
  readonly ownWrites: Pick<OwnWrites, "record" | "recordEnd" | "hasSeen">;
  readonly onEvent: (object: DigitalHumanProvider, event: ObjectEvent) => void;
  /** Counts a write that was sent: "patch" of the object or of its status. */
  readonly onWrite: (what: "object" | "status") => void;
}

export class ApiObjects implements ProviderObjects {
  readonly #parts: ApiObjectsParts;

  constructor(parts: ApiObjectsParts) {
    this.#parts = parts;
  }

  /** Parsed anew each time: one copy in memory is enough. */
  cached(key: string): DigitalHumanProvider | undefined {
    const raw = this.#parts.watch.get(key);
    return raw === undefined ? undefined : parseDigitalHumanProvider(raw);
  }

  hasSeenOwnWrite(key: string): boolean {
    return this.#parts.ownWrites.hasSeen(key);
  }

  classes(): readonly ProviderClass[] {
    return this.#parts.classes();
  }

  protectClass(name: string): Promise<"protected" | "deleting"> {
    return this.#parts.protectClass(name);
  }

  async readLive(key: string): Promise<DigitalHumanProvider | undefined> {
    try {
      return parseDigitalHumanProvider(await this.#parts.client.get(key));
    } catch (error) {
      if (isApiError(error) && error.kind === "not-found") return undefined;
      throw error;
    }
  }

  async patchMetadata(
    object: DigitalHumanProvider,
    change: MetadataChange,
  ): Promise<DigitalHumanProvider | undefined> {
    const metadata = objectAt(object.raw, "metadata");
    const annotations = { ...objectAt(metadata, "annotations"), ...change.annotations };
    const after = {
      ...object.raw,
      metadata: {
        ...metadata,
        ...(change.finalizers === undefined ? {} : { finalizers: change.finalizers }),
        ...(change.annotations === undefined ? {} : { annotations }),
      },
    };
    const written = this.#wrote(
      "object",
      object,
      await this.#parts.client.patch(object.raw, after),
    );
    if (!written.isDeleting || written.finalizers.length > 0) return written;
    this.#parts.ownWrites.recordEnd(object.key, object.resourceVersion);
    return undefined;
  }

  async patchStatus(
    object: DigitalHumanProvider,
    status: JsonObject,
  ): Promise<DigitalHumanProvider> {
    const after = { ...object.raw, status };
    return this.#wrote("status", object, await this.#parts.client.patchStatus(object.raw, after));
  }

  event(object: DigitalHumanProvider, event: ObjectEvent): void {
    this.#parts.onEvent(object, event);
  }

  #wrote(
    what: "object" | "status",
    before: DigitalHumanProvider,
    result: PatchResult<RawObject>,
  ): DigitalHumanProvider {
    if (!result.isSent) return before;
    this.#parts.onWrite(what);
    this.#parts.ownWrites.record(before.key, readIdentity(result.object).resourceVersion);
    return parseDigitalHumanProvider(result.object);
  }
}
