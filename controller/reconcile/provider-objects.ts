/** What a pass needs of the Kubernetes side; implemented over the runtime, and by tests' fakes. */
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import type { JsonObject } from "../resource/json-door.ts";
import type { ProviderClass } from "../resource/provider-class.ts";

export interface MetadataChange {
  readonly finalizers?: readonly string[];
  /** null removes one. */
  readonly annotations?: Readonly<Record<string, string | null>>;
}

/**
 * Every write carries the object's resourceVersion, so that it fails where the object has changed
 * since. An empty difference sends nothing and returns the object as it was.
 */
export interface ProviderObjects {
  cached(key: string): DigitalHumanProvider | undefined;
  /** False while this process's own last write of the key has not come back through the watch. */
  hasSeenOwnWrite(key: string): boolean;
  classes(): readonly ProviderClass[];
  /** Puts the finalizer on a class before something is recorded with it; writes at most once. */
  protectClass(name: string): Promise<"protected" | "deleting">;
  /** A live read; undefined: it does not exist. */
  readLive(key: string): Promise<DigitalHumanProvider | undefined>;
  /** Undefined: the write took the last finalizer off a deleted object, which is gone now. */
  patchMetadata(
    object: DigitalHumanProvider,
    change: MetadataChange,
  ): Promise<DigitalHumanProvider | undefined>;
  patchStatus(object: DigitalHumanProvider, status: JsonObject): Promise<DigitalHumanProvider>;
  /** Something happened that a person may want to know. Never fails, never waits. */
  event(object: DigitalHumanProvider, event: ObjectEvent): void;
}

export interface ObjectEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly action: string;
  readonly note: string;
}
