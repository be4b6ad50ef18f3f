/**
 * One process of an adapter as the contract wants it: not_after, one call in flight a key, Describe
 * before Create, restamping of dead predecessors, a second look after a create. It remembers what
 * it made, for reads that lag; a spare that takes over remembers nothing.
 */
import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  Availability,
  InstanceSchema,
  State,
} from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import {
  Change,
  DeleteResponseSchema,
  DescribeResponseSchema,
  EnsureResponseSchema,
  GetProviderInfoResponseSchema,
  ReleaseResponseSchema,
  RemovalState,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  Capability,
  DeleteRequest,
  DeleteResponse,
  DescribeRequest,
  DescribeResponse,
  EnsureRequest,
  EnsureResponse,
  GetProviderInfoResponse,
  ReleaseRequest,
  ReleaseResponse,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../../../services/contract/provider-error.ts";
import type { Clock } from "../../../services/process/clock.ts";
import type { SettlingTimes } from "../doubt.ts";
import type { Turns } from "./turns.ts";
import type { MutationEnd, Vendor, VendorInstance } from "./vendor.ts";

export interface AdapterOptions {
  /** Names the process; a spare has another name. */
  readonly owner: string;
  readonly turns: Turns;
  readonly clock: Clock;
  readonly vendor: Vendor;
  readonly settling: SettlingTimes;
  /** How far its clock is off, within the allowance. */
  readonly clockErrorMs: number;
  /** Realm by endpoint. */
  readonly realms: ReadonlyMap<string, string>;
  readonly capabilities: readonly Capability[];
  /** A mutant: late calls are not refused. */
  readonly ignoresNotAfter: boolean;
  /** What the vendor says to a call instead of doing it; undefined: it does it. */
  readonly faultOf: (rpc: Rpc, endpoint: string) => ProviderError | undefined;
}

export type Rpc = "describe" | "ensure" | "delete" | "release";
type Mutating = EnsureRequest | DeleteRequest | ReleaseRequest;

export class Adapter {
  readonly #options: AdapterOptions;
  readonly #busyKeys = new Set<string>();
  /** Ids of what this process made, found by key before lists show them. */
  readonly #made = new Set<string>();
  /** Realms where a create of this process has committed and is not answered yet. */
  readonly cleaningUp: string[] = [];

  constructor(options: AdapterOptions) {
    this.#options = options;
  }

  get owner(): string {
    return this.#options.owner;
  }

  info(): GetProviderInfoResponse {
    const { settling, capabilities } = this.#options;
    return create(GetProviderInfoResponseSchema, {
      name: "simulated",
      contractVersionMin: 1,
      contractVersionMax: 1,
      capabilities: [...capabilities],
      visibilityLag: durationFromMs(settling.visibilityLagMs),
      limits: {
        mutationDeadline: durationFromMs(settling.mutationDeadlineMs),
        clockSkewAllowance: durationFromMs(settling.clockSkewMs),
      },
    });
  }

  async describe(request: DescribeRequest): Promise<DescribeResponse> {
    await this.#step("reads");
    this.#failOnRequest("describe", request);
    const found = this.#find(
      request.instanceKey,
      this.#realmOf(request),
      request.recorded?.providerId,
    );
    if (found === undefined) throw this.#absent(request);
    return create(DescribeResponseSchema, { instance: this.#shown(found) });
  }

  ensure(request: EnsureRequest): Promise<EnsureResponse> {
    return this.#alone("ensure", request, async (realm) => {
      const found = this.#find(request.instanceKey, realm, request.recorded?.providerId);
      if (found === undefined) return this.#create(request, realm);
      const uid = request.owner?.uid ?? "";
      if (found.uid === uid || found.isDeleting) return this.#ensured(found, Change.NONE);
      await this.#step("sends the restamp");
      this.#checkNotAfter(request.notAfter);
      await this.#mutated(this.#options.vendor.restamp(found, uid));
      if (found.goneAtMs !== undefined) throw unknownEnd("expired");
      return this.#ensured(found, Change.RESTAMPED);
    });
  }

  delete(request: DeleteRequest): Promise<DeleteResponse> {
    return this.#alone("delete", request, async (realm) => {
      const found = this.#find(request.instanceKey, realm, request.recorded?.providerId);
      if (found === undefined) throw this.#absent(request);
      if (!found.isDeleting) {
        await this.#step("sends the delete");
        this.#checkNotAfter(request.notAfter);
        await this.#mutated(this.#options.vendor.delete(found, false));
      }
      // By its id as well: a list may not show yet what is only being deleted.
      const isLeft = this.#find(request.instanceKey, realm, found.id) !== undefined;
      return create(DeleteResponseSchema, {
        realm,
        state: isLeft ? RemovalState.DELETING : RemovalState.DELETED,
        ...(isLeft ? { pollAfter: durationFromMs(2_000) } : {}),
      });
    });
  }

  release(request: ReleaseRequest): Promise<ReleaseResponse> {
    return this.#alone("release", request, async (realm) => {
      const found = this.#find(request.instanceKey, realm, request.recorded?.providerId);
      if (found === undefined) throw this.#absent(request);
      await this.#step("sends the release");
      this.#checkNotAfter(request.notAfter);
      await this.#mutated(this.#options.vendor.release(found));
      return create(ReleaseResponseSchema, { realm, state: RemovalState.DELETED });
    });
  }

  async #create(request: EnsureRequest, realm: string): Promise<EnsureResponse> {
    const { vendor } = this.#options;
    if (!request.mayCreate) throw refusal("IN_DOUBT", "absent, and may_create is false");
    await this.#step("sends the create");
    this.#checkNotAfter(request.notAfter);
    const sent = vendor.create(realm, request.instanceKey, request.owner?.uid ?? "");
    void sent.then((made) => {
      if (typeof made !== "string") this.cleaningUp.push(realm);
    });
    try {
      const made = await sent;
      if (typeof made === "string") throw unknownEnd(made);
      this.#made.add(made.id);
      await this.#step("reads again");
      return await this.#keepOldest(request, made);
    } finally {
      const index = this.cleaningUp.indexOf(realm);
      if (index >= 0) this.cleaningUp.splice(index, 1);
    }
  }

  /** Two callers raced: the oldest wins, and only what this call made is deleted. */
  async #keepOldest(request: EnsureRequest, made: VendorInstance): Promise<EnsureResponse> {
    const oldest = this.#find(request.instanceKey, made.realm, "");
    if (made.goneAtMs !== undefined) throw unknownEnd("expired");
    if (oldest === undefined || oldest.order >= made.order) {
      return this.#ensured(made, Change.CREATED);
    }
    if (this.#isInTime(request.notAfter)) {
      await this.#mutated(this.#options.vendor.delete(made, true));
    }
    return this.#ensured(oldest, Change.NONE);
  }

  /** Rule 3 of the contract, around every mutation. */
  async #alone<T>(rpc: Rpc, request: Mutating, run: (realm: string) => Promise<T>): Promise<T> {
    await this.#step("begins");
    this.#failOnRequest(rpc, request);
    this.#checkNotAfter(request.notAfter);
    const realm = this.#realmOf(request);
    const lock = `${realm} ${request.instanceKey}`;
    if (this.#busyKeys.has(lock)) throw refusal("BUSY", "another call holds the key");
    this.#busyKeys.add(lock);
    try {
      return await run(realm);
    } finally {
      this.#busyKeys.delete(lock);
    }
  }

  async #mutated(sent: Promise<MutationEnd>): Promise<void> {
    const end = await sent;
    await this.#step("hears from the vendor");
    if (end !== "committed") throw unknownEnd(end);
  }

  /** By recorded id first; what a list shows counts once a read by its id has agreed. */
  #find(key: string, realm: string, id: string | undefined): VendorInstance | undefined {
    const { vendor } = this.#options;
    const recorded = vendor.read(realm, id ?? "");
    if (recorded?.key === key) return recorded;
    const made = vendor.live.filter(
      (instance) => instance.realm === realm && instance.key === key && this.#made.has(instance.id),
    );
    // A read by id says what is there now: a list can show the predecessor of the same id.
    const listed = vendor.list(realm, key).flatMap(({ id }) => vendor.read(realm, id) ?? []);
    return [...made, ...listed].sort((left, right) => left.order - right.order)[0];
  }

  #realmOf(request: Mutating | DescribeRequest): string {
    const realm = this.#options.realms.get(request.target?.endpoint ?? "") ?? "";
    const recorded = request.recorded?.realm ?? "";
    if (recorded === "" || recorded === realm) return realm;
    throw new ProviderError("WRONG_REALM", `"${realm}" is not "${recorded}"`, {
      outcome: "NOT_APPLIED",
    });
  }

  #failOnRequest(rpc: Rpc, request: Mutating | DescribeRequest): void {
    const fault = this.#options.faultOf(rpc, request.target?.endpoint ?? "");
    if (fault !== undefined) throw fault;
  }

  #absent(request: Mutating | DescribeRequest): ProviderError {
    const realm = this.#realmOf(request);
    return new ProviderError("NOT_FOUND", "no such instance", { realm, outcome: "NOT_APPLIED" });
  }

  #checkNotAfter(notAfter: Timestamp | undefined): void {
    if (!this.#isInTime(notAfter)) throw refusal("TOO_LATE", "not_after has passed");
  }

  #isInTime(notAfter: Timestamp | undefined): boolean {
    const { clock, settling, clockErrorMs, ignoresNotAfter } = this.#options;
    const untilMs = notAfter === undefined ? 0 : timestampMs(notAfter) - settling.clockSkewMs;
    return ignoresNotAfter || clock.now() + clockErrorMs < untilMs;
  }

  #ensured(found: VendorInstance, change: Change): EnsureResponse {
    return create(EnsureResponseSchema, {
      instance: this.#shown(found),
      change,
      ...(found.isReady ? {} : { pollAfter: durationFromMs(2_000) }),
    });
  }

  #shown(found: VendorInstance): Instance {
    const ready = found.isReady ? State.READY : State.PROVISIONING;
    return create(InstanceSchema, {
      providerId: found.id,
      realm: found.realm,
      owner: { cluster: "cluster-1", uid: found.uid },
      state: found.isDeleting ? State.DELETING : ready,
      health: { availability: Availability.AVAILABLE },
    });
  }

  #step(does: string): Promise<void> {
    return this.#options.turns.wait(this.owner, `${this.owner} ${does}`);
  }
}

function refusal(reason: "IN_DOUBT" | "BUSY" | "TOO_LATE", message: string): ProviderError {
  return new ProviderError(reason, message, { outcome: "NOT_APPLIED" });
}

function unknownEnd(end: MutationEnd): ProviderError {
  return end === "refused"
    ? new ProviderError("VENDOR_ERROR", "the vendor refused", { outcome: "NOT_APPLIED" })
    : new ProviderError("VENDOR_TIMEOUT", "the vendor did not answer", { outcome: "UNKNOWN" });
}
