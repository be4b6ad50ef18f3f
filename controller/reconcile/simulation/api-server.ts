/**
 * An API server that holds one object: optimistic concurrency, status apart from the rest,
 * generations, finalizers, and the history that watches read. It serves the merge patches of the
 * real client.
 */
import { ApiError } from "../../kubernetes/api-error.ts";
import { mergePatch } from "../../kubernetes/merge-patch.ts";
import { readIdentity } from "../../kubernetes/raw-object.ts";
import type { RawObject } from "../../kubernetes/raw-object.ts";
import type { PatchResult } from "../../kubernetes/resource-client.ts";
import { parseDigitalHumanProvider } from "../../resource/digital-human-provider.ts";
import type { DigitalHumanProvider } from "../../resource/digital-human-provider.ts";
import { arrayAt, objectAt, stringAt } from "../../resource/json-door.ts";
import type { JsonObject } from "../../resource/json-door.ts";
import type { Turns } from "./turns.ts";

export const objectKey = "media/one";

/** One version of the collection; undefined: the object was deleted with it. */
export interface Version {
  readonly resourceVersion: string;
  readonly object: RawObject | undefined;
}

/** What happens to one write. */
export type WriteFate = "applied" | "refused" | "answer-lost";

export interface ApiServerOptions {
  readonly turns: Pick<Turns, "wait">;
  /** Of the object; absent: `objectKey`. */
  readonly key?: string;
  readonly fateOfWrite: () => WriteFate;
  /** A mutant: writes land whatever has changed since they were computed. */
  readonly ignoresPreconditions: boolean;
}

export class ApiServer {
  readonly #options: ApiServerOptions;
  readonly history: Version[] = [{ resourceVersion: "1", object: undefined }];
  #uids = 0;
  #parsed: DigitalHumanProvider | undefined;
  /** Writes of the controller that were applied. */
  writeCount = 0;

  constructor(options: ApiServerOptions) {
    this.#options = options;
  }

  get current(): Version {
    const last = this.history.at(-1);
    if (last === undefined) throw new Error("the history is never empty");
    return last;
  }

  get object(): DigitalHumanProvider | undefined {
    const { object } = this.current;
    if (object === undefined) return undefined;
    if (this.#parsed?.raw !== object) this.#parsed = parseDigitalHumanProvider(object);
    return this.#parsed;
  }

  /** A user applies an object that is not there yet. */
  create(spec: JsonObject, annotations: JsonObject = {}): void {
    this.#uids += 1;
    const [namespace, name] = (this.#options.key ?? objectKey).split("/");
    const metadata = { namespace, name, uid: `uid-${this.#uids}`, generation: 1, annotations };
    this.#store({ metadata, spec });
  }

  /** By force: the object goes, finalizers or not, and another one has its name at once. */
  replace(object: JsonObject): void {
    this.#store(undefined);
    this.create(objectAt(object, "spec"));
  }

  /** A user changes fields of spec; null removes one. */
  editSpec(change: JsonObject): void {
    const { object } = this.current;
    if (object === undefined) throw new Error("there is no object");
    this.#storeDesired(object, { ...object, spec: withChange(objectAt(object, "spec"), change) });
  }

  annotate(annotations: JsonObject): void {
    const { object } = this.current;
    if (object === undefined) throw new Error("there is no object");
    const metadata = objectAt(object, "metadata");
    const all = withChange(objectAt(metadata, "annotations"), annotations);
    this.#store({ ...object, metadata: { ...metadata, annotations: all } });
  }

  /** An administrator changes fields of status by hand. */
  editStatus(change: JsonObject): void {
    const { object } = this.current;
    if (object === undefined) throw new Error("there is no object");
    this.#store({ ...object, status: withChange(objectAt(object, "status"), change) });
  }

  /** A user deletes the object: finalizers keep it. */
  delete(): void {
    const { object } = this.current;
    if (object === undefined) throw new Error("there is no object");
    const metadata = objectAt(object, "metadata");
    if (stringAt(metadata, "deletionTimestamp") !== undefined) return;
    if (arrayAt(metadata, "finalizers").length === 0) return this.#store(undefined);
    const generation = Number(metadata["generation"]) + 1;
    const deletionTimestamp = "2026-01-01T00:00:00Z";
    this.#store({ ...object, metadata: { ...metadata, generation, deletionTimestamp } });
  }

  /** The client of one process; its answers wait for the process's turn, its requests do not. */
  clientOf(owner: string) {
    return {
      get: async (key: string): Promise<RawObject> => {
        await this.#options.turns.wait(owner, "GET is sent");
        const { object } = this.current;
        await this.#options.turns.wait(owner, "GET is answered");
        if (object === undefined) throw apiError("not-found", 404, `GET ${key}`);
        return object;
      },
      patch: (before: RawObject, after: RawObject) => this.#patch(owner, { before, after }),
      patchStatus: (before: RawObject, after: RawObject) =>
        this.#patch(owner, { before, after, isStatus: true }),
    };
  }

  async #patch(owner: string, change: Change): Promise<PatchResult<RawObject>> {
    const { before } = change;
    const difference = mergePatch(before, change.after);
    if (difference === undefined) return { isSent: false, object: before };
    const what = `PATCH ${Object.keys(difference).join("+")}`;
    // Once it is on the wire it lands, even when its sender has died meanwhile.
    await this.#options.turns.wait("wire", `${what} of ${owner} arrives`);
    const fate = this.#options.fateOfWrite();
    const answer = fate === "refused" ? apiError("server", 500, what) : this.#apply(change, what);
    await this.#options.turns.wait(owner, `${what} is answered`);
    if (fate === "answer-lost") throw apiError("network", 0, what);
    if (answer instanceof ApiError) throw answer;
    return { isSent: true, object: answer };
  }

  #apply({ before, after, isStatus }: Change, what: string): RawObject | ApiError {
    const { object } = this.current;
    const identity = readIdentity(before);
    if (object === undefined) return apiError("not-found", 404, what);
    const isCurrent = readIdentity(object).resourceVersion === identity.resourceVersion;
    if (!isCurrent && !this.#options.ignoresPreconditions) return apiError("conflict", 409, what);
    this.writeCount += 1;
    const patched = withChange(object, mergePatch(before, after) ?? {});
    if (isStatus === true) this.#store({ ...object, status: patched["status"] });
    else this.#storeDesired(object, { ...patched, status: object["status"] });
    // As a real one: the write that takes the last finalizer off answers the object as it was.
    return this.current.object ?? { ...patched, metadata: this.#versioned(patched) };
  }

  /** Stores what is no status: spec changes count as generations, and no finalizer ends a deletion. */
  #storeDesired(before: RawObject, after: RawObject): void {
    const metadata = objectAt(after, "metadata");
    const isGone =
      stringAt(metadata, "deletionTimestamp") !== undefined &&
      arrayAt(metadata, "finalizers").length === 0;
    if (isGone) return this.#store(undefined);
    const isChanged = mergePatch(objectAt(before, "spec"), objectAt(after, "spec")) !== undefined;
    const generation = Number(metadata["generation"]) + (isChanged ? 1 : 0);
    this.#store({ ...after, metadata: { ...metadata, generation } });
  }

  #store(object: RawObject | undefined): void {
    const resourceVersion = String(Number(this.current.resourceVersion) + 1);
    const metadata = { ...objectAt(object, "metadata"), resourceVersion };
    this.history.push({
      resourceVersion,
      object: object === undefined ? undefined : { ...object, metadata },
    });
  }

  #versioned(object: RawObject): JsonObject {
    return { ...objectAt(object, "metadata"), resourceVersion: this.current.resourceVersion };
  }
}

interface Change {
  readonly before: RawObject;
  readonly after: RawObject;
  readonly isStatus?: boolean;
}

function apiError(kind: ApiError["kind"], status: number, what: string): ApiError {
  return new ApiError({ kind, status, reason: "", message: `${what}: ${kind}` });
}

/** RFC 7386. */
function withChange(target: JsonObject, patch: JsonObject): JsonObject {
  const result: Record<string, unknown> = { ...target };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else if (typeof value === "object" && !Array.isArray(value)) {
      result[name] = withChange(objectAt(target, name), objectAt(patch, name));
    } else result[name] = value;
  }
  return result;
}
