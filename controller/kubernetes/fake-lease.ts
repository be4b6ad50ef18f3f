import { ApiError } from "./api-error.ts";
import type { ApiErrorKind } from "./api-error.ts";
import { parseLease } from "./lease.ts";
import type { Lease, LeaseSpec, LeaseStore } from "./lease.ts";
import type { RawObject } from "./raw-object.ts";

/** For tests: a Lease in memory, with the API server's optimistic concurrency. */
export class FakeLease implements LeaseStore {
  /** Reads and writes wait for this; replace it to hold, lose or refuse calls. */
  gate: (call: FakeLeaseCall) => Promise<void> = async () => undefined;
  readonly calls: FakeLeaseCall[] = [];
  #spec: LeaseSpec | undefined;
  #version = 0;

  get spec(): LeaseSpec | undefined {
    return this.#spec;
  }

  /** Writes that were answered or refused, not reads. */
  get writes(): readonly FakeLeaseCall[] {
    return this.calls.filter(({ verb }) => verb !== "read");
  }

  /** What somebody else writes; undefined deletes it. */
  set(spec: LeaseSpec | undefined): void {
    this.#spec = spec;
    this.#version += 1;
  }

  async read(signal?: AbortSignal): Promise<Lease | undefined> {
    await this.#enter({ verb: "read" }, signal);
    return this.#spec === undefined ? undefined : this.#lease();
  }

  async create(spec: LeaseSpec, signal?: AbortSignal): Promise<Lease> {
    const call: FakeLeaseCall = { verb: "create", spec };
    await this.#enter(call, signal);
    if (this.#spec !== undefined) throw refused("already-exists");
    this.set(spec);
    return this.#answer(call, signal);
  }

  async update(lease: Lease, spec: LeaseSpec, signal?: AbortSignal): Promise<Lease> {
    const call: FakeLeaseCall = { verb: "update", spec };
    await this.#enter(call, signal);
    if (this.#spec === undefined) throw refused("not-found");
    if (lease.version !== this.#lease().version) throw refused("conflict");
    this.set({ ...this.#spec, ...spec });
    return this.#answer(call, signal);
  }

  async #enter(call: FakeLeaseCall, signal: AbortSignal | undefined): Promise<void> {
    this.calls.push(call);
    signal?.throwIfAborted();
    await this.gate(call);
    signal?.throwIfAborted();
  }

  /** As it stands right after the write, whatever comes before the answer arrives. */
  async #answer(call: FakeLeaseCall, signal: AbortSignal | undefined): Promise<Lease> {
    const lease = this.#lease();
    await call.beforeAnswer?.();
    signal?.throwIfAborted();
    return lease;
  }

  #lease(): Lease {
    const raw: RawObject = {
      metadata: { name: "l", namespace: "n", uid: "u", resourceVersion: String(this.#version) },
      spec: { ...this.#spec },
    };
    return parseLease(raw);
  }
}

export interface FakeLeaseCall {
  readonly verb: "read" | "create" | "update";
  readonly spec?: LeaseSpec;
  /** Set by a gate: runs after the write took effect, before its answer; may throw. */
  beforeAnswer?: () => Promise<void>;
}

export function refused(kind: ApiErrorKind): ApiError {
  return new ApiError({ kind, status: 0, reason: "", message: `refused: ${kind}` });
}
