/**
 * Kubernetes objects as they come over the wire: plain JSON of which this runtime reads the
 * metadata alone. A typed serializer would drop fields it does not know; raw JSON keeps them.
 */
export type RawObject = Readonly<Record<string, unknown>>;

/** What the runtime itself reads of an object. */
export interface ObjectIdentity {
  readonly name: string;
  /** Absent on cluster-scoped objects. */
  readonly namespace: string | undefined;
  /** Empty only on kinds that have none, as in a bookmark. */
  readonly uid: string;
  readonly resourceVersion: string;
}

/** Names an object within its kind. */
export interface NamespacedName {
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** The key caches and queues use: "namespace/name", or "name" where there is no namespace. */
export function objectKey(named: NamespacedName): string {
  return named.namespace === undefined ? named.name : `${named.namespace}/${named.name}`;
}

/** Takes an object key apart again; names and namespaces never contain a slash. */
export function parseObjectKey(key: string): NamespacedName {
  const slash = key.indexOf("/");
  if (slash < 0) return { name: key };
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** True for a JSON object: not null, not an array. */
export function isRawObject(value: unknown): value is RawObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Reads the identity out of an object.
 * @throws Error when the value is no object or lacks name or resourceVersion
 */
export function readIdentity(value: unknown): ObjectIdentity {
  const metadata = isRawObject(value) ? value["metadata"] : undefined;
  if (!isRawObject(metadata)) throw new Error("object without metadata");
  const { name, namespace, uid, resourceVersion } = metadata;
  if (typeof name !== "string" || name === "") throw new Error("object without metadata.name");
  if (typeof resourceVersion !== "string" || resourceVersion === "") {
    throw new Error(`object "${name}" without metadata.resourceVersion`);
  }
  return {
    name,
    namespace: typeof namespace === "string" && namespace !== "" ? namespace : undefined,
    uid: typeof uid === "string" ? uid : "",
    resourceVersion,
  };
}

/** Reads metadata.resourceVersion, or undefined where there is none. */
export function readResourceVersion(value: unknown): string | undefined {
  const metadata = isRawObject(value) ? value["metadata"] : undefined;
  const resourceVersion = isRawObject(metadata) ? metadata["resourceVersion"] : undefined;
  return typeof resourceVersion === "string" && resourceVersion !== ""
    ? resourceVersion
    : undefined;
}

/** The object without metadata.managedFields, often half its size and read by nobody here. */
export function withoutManagedFields(raw: RawObject): RawObject {
  const metadata = raw["metadata"];
  if (!isRawObject(metadata) || metadata["managedFields"] === undefined) return raw;
  const kept = Object.entries(metadata).filter(([name]) => name !== "managedFields");
  return { ...raw, metadata: Object.fromEntries(kept) };
}
