import { ApiError } from "./api-error.ts";
import { listInPages } from "./collection-list.ts";
import type { Connection } from "./connection.ts";
import { isEqualJson, mergePatch } from "./merge-patch.ts";
import type { MergePatch } from "./merge-patch.ts";
import { isRawObject, objectKey, parseObjectKey, readIdentity } from "./raw-object.ts";
import type { RawObject } from "./raw-object.ts";

/** Names a kind of object in the API server. */
export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** Lower-case plural, as in URLs. */
  readonly plural: string;
  readonly isNamespaced: boolean;
}

export interface ResourceClientOptions<T extends object> {
  readonly connection: Pick<Connection, "request">;
  readonly type: ResourceType;
  /** The checked door from JSON to T. */
  readonly parse: (raw: RawObject) => T;
  /** Deadline of each call. */
  readonly timeoutMs: number;
}

/** What a patch did. */
export interface PatchResult<T> {
  /** False where nothing differed, so nothing was sent. */
  readonly isSent: boolean;
  /** The object as the server answered it, or as it was passed in where nothing was sent. */
  readonly object: T;
}

/**
 * Reads and writes objects of one kind. Reads go to the server, never to a cache. Writes are merge
 * patches of a real difference bound to the resourceVersion it was computed from: concurrent
 * changes answer "conflict", and unknown fields survive. All methods throw ApiError.
 */
export class ResourceClient<T extends object> {
  readonly #options: ResourceClientOptions<T>;

  constructor(options: ResourceClientOptions<T>) {
    this.#options = options;
  }

  /** The object as it is now (quorum read); "not-found" where there is none. */
  async get(key: string, signal?: AbortSignal): Promise<T> {
    const { connection, timeoutMs } = this.#options;
    const path = this.#objectPath(key);
    return this.#parse(await connection.request({ method: "GET", path, timeoutMs, signal }));
  }

  /** Everything there is now, of one namespace or of all. */
  async list(options: ListOptions = {}): Promise<T[]> {
    const { connection, timeoutMs } = this.#options;
    const list = await listInPages({
      connection,
      path: collectionPath(this.#options.type, options.namespace),
      query: { labelSelector: options.labelSelector, fieldSelector: options.fieldSelector },
      pageSize: 500,
      objectsMax: options.objectsMax ?? 100_000,
      timeoutMs,
      signal: options.signal ?? new AbortController().signal,
    });
    return [...list.items.values()].map(({ raw }) => this.#parse(raw));
  }

  /** Creates an object in its own metadata.namespace; "already-exists" where the name is taken. */
  async create(object: object, signal?: AbortSignal): Promise<T> {
    const { connection, type, timeoutMs } = this.#options;
    const metadata = isRawObject(object) ? object["metadata"] : undefined;
    const namespace = isRawObject(metadata) ? metadata["namespace"] : undefined;
    const path = collectionPath(type, typeof namespace === "string" ? namespace : undefined);
    const body = object;
    return this.#parse(await connection.request({ method: "POST", path, body, timeoutMs, signal }));
  }

  /**
   * Deletes the very object that was read: another incarnation of the name answers "conflict".
   * Finalizers may keep it; "not-found" where it is gone already.
   */
  async delete(object: T, signal?: AbortSignal): Promise<void> {
    const { connection, timeoutMs } = this.#options;
    const identity = readIdentity(object);
    const body = {
      apiVersion: "v1",
      kind: "DeleteOptions",
      preconditions: { uid: identity.uid },
    };
    const path = this.#objectPath(objectKey(identity));
    await connection.request({ method: "DELETE", path, body, timeoutMs, signal });
  }

  /** Writes what differs outside status. `before` must be as read from the server. */
  async patch(before: T, after: T, signal?: AbortSignal): Promise<PatchResult<T>> {
    return this.#patch({ before, after, subresource: "", signal });
  }

  /** Writes what differs in status, and refuses to touch anything else: users own the spec. */
  async patchStatus(before: T, after: T, signal?: AbortSignal): Promise<PatchResult<T>> {
    if (!isEqualJson(withoutStatus(before), withoutStatus(after))) {
      throw new Error("a status patch differs outside status");
    }
    return this.#patch({ before, after, subresource: "/status", signal });
  }

  async #patch(change: Change<T>): Promise<PatchResult<T>> {
    const { before, after, subresource, signal } = change;
    const difference = mergePatch(before, after);
    if (difference === undefined) return { isSent: false, object: before };
    const { connection, timeoutMs } = this.#options;
    const identity = readIdentity(before);
    const answer = await connection.request({
      method: "PATCH",
      path: `${this.#objectPath(objectKey(identity))}${subresource}`,
      contentType: "application/merge-patch+json",
      body: withPrecondition(difference, identity.resourceVersion),
      timeoutMs,
      signal,
    });
    return { isSent: true, object: this.#parse(answer) };
  }

  #objectPath(key: string): string {
    const { namespace, name } = parseObjectKey(key);
    return `${collectionPath(this.#options.type, namespace)}/${encodeURIComponent(name)}`;
  }

  #parse(raw: unknown): T {
    try {
      if (!isRawObject(raw)) throw new Error("the answer is no object");
      return this.#options.parse(raw);
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      const message = `cannot read ${this.#options.type.plural}: ${problem}`;
      throw new ApiError({ kind: "unreadable", status: 200, reason: "", message, cause: error });
    }
  }
}

export interface ListOptions {
  /** All namespaces where absent. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly objectsMax?: number;
  readonly signal?: AbortSignal;
}

/** The URL path of a collection, of one namespace or of all. */
export function collectionPath(
  type: Pick<ResourceType, "group" | "version" | "plural">,
  namespace?: string,
): string {
  const root = type.group === "" ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  const scope = namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}${scope}/${type.plural}`;
}

interface Change<T> {
  readonly before: T;
  readonly after: T;
  readonly subresource: "" | "/status";
  readonly signal: AbortSignal | undefined;
}

function withPrecondition(difference: MergePatch, resourceVersion: string): MergePatch {
  const metadata = isRawObject(difference["metadata"]) ? difference["metadata"] : {};
  return { ...difference, metadata: { ...metadata, resourceVersion } };
}

function withoutStatus(object: object): object {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== "status"));
}
