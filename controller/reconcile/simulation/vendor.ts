/**
 * A vendor with a few realms. Mutations commit some time after they were sent, or never; lists show
 * them late, in both directions; a deletion can take its time.
 */
import type { Clock } from "../../../services/process/clock.ts";

export interface VendorInstance {
  readonly id: string;
  readonly realm: string;
  readonly key: string;
  uid: string;
  isReady: boolean;
  isDeleting: boolean;
  /** Lists show it from here on; epoch ms. */
  readonly visibleFromMs: number;
  /** Epoch ms of its end; undefined: it lives, and is billed. */
  goneAtMs: number | undefined;
  /** Rises with each create: the oldest has the smallest. */
  readonly order: number;
}

export type MutationKind = "create" | "restamp" | "delete" | "release";

/** A mutation that was sent; it commits until its deadline or not at all. */
export interface Mutation {
  readonly kind: MutationKind;
  readonly realm: string;
  readonly deadlineMs: number;
  readonly commit: () => void;
  readonly refuse: () => void;
  readonly expire: () => void;
}

export type MutationEnd = "committed" | "refused" | "expired";

export interface VendorOptions {
  readonly clock: Clock;
  /** How long a mutation may take; and how long lists may lag, at most. */
  readonly mutationDeadlineMs: number;
  readonly visibilityLagMs: number;
  /**
   * The vendor's id follows from the key: a second create answers the first instance, and what is
   * sent to one instance can hit the next.
   */
  readonly isNamed: boolean;
  /** Deletions end at once, or only when told. */
  readonly isDeletionAsync: boolean;
  readonly random: () => number;
  /** Told before an instance goes for good by a delete request. */
  readonly onDelete: (instance: VendorInstance, isDuplicate: boolean) => void;
}

export class Vendor {
  readonly #options: VendorOptions;
  readonly #instances: VendorInstance[] = [];
  #pending: Mutation[] = [];
  #order = 0;
  /** Mutations that committed. */
  mutationCount = 0;

  constructor(options: VendorOptions) {
    this.#options = options;
  }

  get pending(): readonly Mutation[] {
    return this.#pending;
  }

  /** All that exist, and are billed. */
  get live(): readonly VendorInstance[] {
    return this.#instances.filter(({ goneAtMs }) => goneAtMs === undefined);
  }

  /** Reads by id never lag. */
  read(realm: string, id: string): VendorInstance | undefined {
    return this.live.find((instance) => instance.realm === realm && instance.id === id);
  }

  /** What a list shows: the new late, and the gone a while longer; oldest first. */
  list(realm: string, key: string): readonly VendorInstance[] {
    const nowMs = this.#options.clock.now();
    return this.#instances.filter(
      (instance) =>
        instance.realm === realm &&
        instance.key === key &&
        instance.visibleFromMs <= nowMs &&
        (instance.goneAtMs === undefined || nowMs < instance.goneAtMs + this.#lagMs()),
    );
  }

  async create(realm: string, key: string, uid: string): Promise<VendorInstance | MutationEnd> {
    let made: VendorInstance | undefined;
    const end = await this.#send("create", realm, () => (made = this.#make(realm, key, uid)));
    return made ?? end;
  }

  restamp(instance: VendorInstance, uid: string): Promise<MutationEnd> {
    return this.#sendTo(instance, "restamp", (hit) => (hit.uid = uid));
  }

  /** `isDuplicate`: the sender made it itself a moment ago and found an older one. */
  delete(instance: VendorInstance, isDuplicate: boolean): Promise<MutationEnd> {
    return this.#sendTo(instance, "delete", (hit) => {
      this.#options.onDelete(hit, isDuplicate);
      if (this.#options.isDeletionAsync && !isDuplicate) hit.isDeleting = true;
      else this.end(hit);
    });
  }

  /** The stamp comes off: from here on it is nobody's, so it leaves the simulated world. */
  release(instance: VendorInstance): Promise<MutationEnd> {
    return this.#sendTo(instance, "release", (hit) => this.end(hit));
  }

  /** It is gone: a deletion that came to its end, or a person at the vendor's console. */
  end(instance: VendorInstance): void {
    instance.goneAtMs = this.#options.clock.now();
  }

  /** Mutations past their deadline never happen. */
  expire(): void {
    const nowMs = this.#options.clock.now();
    const over = this.#pending.filter(({ deadlineMs }) => deadlineMs <= nowMs);
    this.#pending = this.#pending.filter(({ deadlineMs }) => deadlineMs > nowMs);
    for (const mutation of over) mutation.expire();
  }

  /** Vendors know instances by id: whichever has it when the mutation commits is hit. */
  #sendTo(
    { realm, id }: VendorInstance,
    kind: MutationKind,
    apply: (hit: VendorInstance) => unknown,
  ): Promise<MutationEnd> {
    return this.#send(kind, realm, () => {
      const hit = this.read(realm, id);
      if (hit !== undefined) apply(hit);
    });
  }

  #send(kind: MutationKind, realm: string, apply: () => unknown): Promise<MutationEnd> {
    return new Promise((resolve) => {
      const end = (how: MutationEnd) => (): void => {
        this.#pending = this.#pending.filter((candidate) => candidate !== mutation);
        if (how === "committed") {
          this.mutationCount += 1;
          apply();
        }
        resolve(how);
      };
      const mutation: Mutation = {
        kind,
        realm,
        deadlineMs: this.#options.clock.now() + this.#options.mutationDeadlineMs,
        commit: end("committed"),
        refuse: end("refused"),
        expire: end("expired"),
      };
      this.#pending.push(mutation);
    });
  }

  #make(realm: string, key: string, uid: string): VendorInstance {
    const same = this.live.find((instance) => instance.realm === realm && instance.key === key);
    if (this.#options.isNamed && same !== undefined) return same;
    this.#order += 1;
    const instance: VendorInstance = {
      id: this.#options.isNamed ? "i-named" : `i-${this.#order}`,
      realm,
      key,
      uid,
      isReady: false,
      isDeleting: false,
      visibleFromMs: this.#options.clock.now() + this.#lagMs(),
      goneAtMs: undefined,
      order: this.#order,
    };
    this.#instances.push(instance);
    return instance;
  }

  #lagMs(): number {
    return Math.floor(this.#options.visibilityLagMs * this.#options.random());
  }
}
