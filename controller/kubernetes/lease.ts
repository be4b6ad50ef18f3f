/** The Lease of an election (coordination.k8s.io/v1), as it is read and written. */
import { ApiError, isApiError } from "./api-error.ts";
import type { Connection } from "./connection.ts";
import { isRawObject, objectKey, readIdentity } from "./raw-object.ts";
import type { RawObject } from "./raw-object.ts";
import { ResourceClient } from "./resource-client.ts";
import type { ResourceType } from "./resource-client.ts";

/** A Lease as it was read; what is missing or of another type reads as empty. */
export interface Lease {
  /** As read: fields that nobody here knows survive a write. */
  readonly raw: RawObject;
  /** Differs whenever the content does: renewals are seen by it, whatever their clocks say. */
  readonly version: string;
  /** Empty: nobody leads. */
  readonly holder: string;
  /** 0 where the Lease does not say. */
  readonly durationMs: number;
  readonly transitions: number;
  /** V1MicroTime, empty where the Lease does not say. */
  readonly acquireTime: string;
}

/** Fields of spec to write; those left out stay as they are. */
export interface LeaseSpec {
  readonly holderIdentity: string;
  readonly leaseDurationSeconds?: number;
  /** V1MicroTime, as renewTime. */
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

/** Where the Lease is kept. All methods throw ApiError. */
export interface LeaseStore {
  /** The Lease as it is now, by a consistent read; undefined where there is none. */
  read(signal?: AbortSignal): Promise<Lease | undefined>;
  /** "already-exists" where somebody was faster. */
  create(spec: LeaseSpec, signal?: AbortSignal): Promise<Lease>;
  /** "conflict" where it is not any more what `lease` says, "not-found" where it is gone. */
  update(lease: Lease, spec: LeaseSpec, signal?: AbortSignal): Promise<Lease>;
}

export interface ApiLeaseOptions {
  readonly connection: Pick<Connection, "request">;
  readonly namespace: string;
  readonly name: string;
  /** Deadline of each call. */
  readonly timeoutMs: number;
}

/** One Lease in the API server. */
export class ApiLease implements LeaseStore {
  readonly #client: ResourceClient<RawObject>;
  readonly #named: { readonly namespace: string; readonly name: string };

  constructor({ connection, namespace, name, timeoutMs }: ApiLeaseOptions) {
    this.#client = new ResourceClient({
      connection,
      type: leaseResource,
      parse: (raw) => raw,
      timeoutMs,
    });
    this.#named = { namespace, name };
  }

  async read(signal?: AbortSignal): Promise<Lease | undefined> {
    try {
      return parseLease(await this.#client.get(objectKey(this.#named), signal));
    } catch (error) {
      if (isApiError(error, "not-found")) return undefined;
      throw error;
    }
  }

  async create(spec: LeaseSpec, signal?: AbortSignal): Promise<Lease> {
    const body = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { ...this.#named },
      spec,
    };
    return parseLease(await this.#client.create(body, signal));
  }

  async update(lease: Lease, spec: LeaseSpec, signal?: AbortSignal): Promise<Lease> {
    const after = { ...lease.raw, spec: { ...specOf(lease.raw), ...spec } };
    const { isSent, object } = await this.#client.patch(lease.raw, after, signal);
    // What was not written proves nothing: nobody may take it for a renewal.
    if (!isSent) throw unchanged(objectKey(this.#named));
    return parseLease(object);
  }
}

export function parseLease(raw: RawObject): Lease {
  const spec = specOf(raw);
  const { uid, resourceVersion } = readIdentity(raw);
  const seconds = spec["leaseDurationSeconds"];
  const transitions = spec["leaseTransitions"];
  const { holderIdentity, acquireTime } = spec;
  return {
    raw,
    version: `${uid}/${resourceVersion}`,
    holder: typeof holderIdentity === "string" ? holderIdentity : "",
    durationMs: typeof seconds === "number" && seconds > 0 ? seconds * 1_000 : 0,
    transitions: typeof transitions === "number" ? transitions : 0,
    acquireTime: typeof acquireTime === "string" ? acquireTime : "",
  };
}

const leaseResource: ResourceType = {
  group: "coordination.k8s.io",
  version: "v1",
  plural: "leases",
  isNamespaced: true,
};

function specOf(raw: RawObject): RawObject {
  return isRawObject(raw["spec"]) ? raw["spec"] : {};
}

function unchanged(key: string): ApiError {
  const message = `cannot renew Lease "${key}": it says already what would be written`;
  return new ApiError({ kind: "conflict", status: 0, reason: "", message });
}
