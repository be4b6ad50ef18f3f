/**
 * The simulated world: one object, its API server, one controller after another, an adapter for each
 * address, and the vendor. It moves only when told which event comes next.
 */
import { setImmediate } from "node:timers/promises";
import { Capability } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { ProviderError } from "../../../services/contract/provider-error.ts";
import { FakeClock } from "../../../services/process/fake-clock.ts";
import { parseProviderClass } from "../../resource/provider-class.ts";
import type { ProviderClass } from "../../resource/provider-class.ts";
import type { SettlingTimes } from "../doubt.ts";
import type { ObjectEvent } from "../provider-objects.ts";
import { Adapter } from "./adapter.ts";
import type { Rpc } from "./adapter.ts";
import { ApiServer } from "./api-server.ts";
import type { WriteFate } from "./api-server.ts";
import { Leader } from "./leader.ts";
import type { LeaderMutant } from "./leader.ts";
import { Random } from "./random.ts";
import { Turns } from "./turns.ts";
import { Vendor } from "./vendor.ts";
import type { VendorInstance } from "./vendor.ts";
import { Wire } from "./wire.ts";

/** A place that spec can name: its class, the adapter's address, and the realm it leads to. */
export interface SimulatedPlace {
  readonly endpoint: string;
  readonly className: string;
  readonly address: string;
  readonly realm: string;
}

export interface Mutant extends LeaderMutant {
  readonly writesIgnorePreconditions?: boolean;
  readonly adaptersIgnoreNotAfter?: boolean;
}

export interface WorldOptions {
  readonly seed: number;
  readonly places: readonly SimulatedPlace[];
  readonly isNamed?: boolean;
  readonly isDeletionAsync?: boolean;
  /** What takes long here. */
  readonly slow?: "nothing" | "api" | "vendor" | "watch" | "wire";
  readonly capabilities?: readonly Capability[];
  readonly classSpec?: Readonly<Record<string, unknown>>;
  readonly mutant?: Mutant;
}

export const settling: SettlingTimes = {
  mutationDeadlineMs: 5_000,
  visibilityLagMs: 8_000,
  clockSkewMs: 500,
};

export class World {
  readonly random: Random;
  readonly clock = new FakeClock();
  readonly turns = new Turns();
  readonly places: readonly SimulatedPlace[];
  readonly slow: NonNullable<WorldOptions["slow"]>;
  readonly api: ApiServer;
  readonly vendor: Vendor;
  readonly wire: Wire;
  readonly events: ObjectEvent[] = [];
  /** What happened, in order. */
  readonly trace: string[] = [];
  readonly adapters = new Map<string, Adapter>();
  /** Cut off from callers, but alive. */
  readonly cutAdapters: Adapter[] = [];
  /** Led once, were paused, and have not noticed that they lead no more. */
  pausedLeaders: Leader[] = [];
  leader: Leader | undefined;
  classes: readonly ProviderClass[];
  /** Chooses what becomes of the next write. */
  fateOfWrite: () => WriteFate = () => "applied";
  faultOf: (rpc: Rpc, endpoint: string) => ProviderError | undefined = () => undefined;
  /** Instances that deletion requests took away, at that moment. */
  onDelete: (instance: VendorInstance, isDuplicate: boolean) => void = () => undefined;
  readonly #options: WorldOptions;
  #processes = 0;
  #predecessorsUntilMs = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.random = new Random(options.seed);
    this.places = options.places;
    this.slow = options.slow ?? "nothing";
    this.classes = classesOf(options);
    const { turns, clock } = this;
    this.api = new ApiServer({
      turns,
      fateOfWrite: () => this.fateOfWrite(),
      ignoresPreconditions: options.mutant?.writesIgnorePreconditions === true,
    });
    this.vendor = new Vendor({
      clock,
      mutationDeadlineMs: settling.mutationDeadlineMs,
      visibilityLagMs: settling.visibilityLagMs,
      isNamed: options.isNamed === true,
      isDeletionAsync: options.isDeletionAsync === true,
      random: () => this.random.next(),
      onDelete: (instance, isDuplicate) => this.onDelete(instance, isDuplicate),
    });
    this.wire = new Wire({ turns, clock, adapterAt: (address) => this.adapterAt(address) });
  }

  adapterAt(address: string): Adapter {
    const adapter = this.adapters.get(address) ?? this.#newAdapter();
    this.adapters.set(address, adapter);
    return adapter;
  }

  /** The realm that spec asks for; undefined: there is no object. */
  get wantedRealm(): string | undefined {
    const endpoint = this.api.object?.spec.endpoint;
    return this.places.find((place) => place.endpoint === endpoint)?.realm;
  }

  /** A new process leads; what was paused leads no more. */
  startLeader(): void {
    const { api, wire, clock } = this;
    this.#processes += 1;
    this.leader = new Leader({
      owner: `controller-${this.#processes}`,
      api,
      wire,
      clock,
      random: () => this.random.next(),
      classes: () => this.classes,
      predecessorsUntilMs: this.#predecessorsUntilMs,
      mutant: this.#options.mutant ?? {},
      onEvent: (event) => this.events.push(event),
    });
  }

  /** SIGKILL: nothing of it goes on but what is on the wire. */
  killLeader(): void {
    const leader = this.#deposeLeader();
    if (leader !== undefined) this.turns.end(leader.owner);
  }

  /** SIGSTOP: it wakes later, in the middle of its pass. */
  pauseLeader(): void {
    const leader = this.#deposeLeader();
    if (leader !== undefined) this.pausedLeaders = [...this.pausedLeaders, leader];
  }

  /** A paused leader notices that it leads no more. */
  endPausedLeader(leader: Leader): void {
    this.turns.end(leader.owner);
    this.pausedLeaders = this.pausedLeaders.filter((candidate) => candidate !== leader);
  }

  /** A lease ends before the next begins; a process that is known to be dead needs no waiting. */
  get canLeaderStart(): boolean {
    const nowMs = this.clock.now();
    return (
      this.leader === undefined &&
      this.pausedLeaders.every(({ certainUntilMs }) => certainUntilMs <= nowMs)
    );
  }

  /** A spare with empty memory answers from here on. */
  replaceAdapter(address: string, how: "crash" | "cut"): void {
    const before = this.adapterAt(address);
    if (how === "crash") this.turns.end(before.owner);
    else this.cutAdapters.push(before);
    this.adapters.set(address, this.#newAdapter());
    this.wire.cut(before);
  }

  async advance(durationMs: number): Promise<void> {
    await this.clock.advance(durationMs);
    this.vendor.expire();
    this.wire.expire();
    await this.flush();
  }

  /** Lets everything run that waits for nobody's turn. */
  async flush(): Promise<void> {
    await setImmediate();
  }

  #deposeLeader(): Leader | undefined {
    const { leader } = this;
    const untilMs = leader?.certainUntilMs ?? 0;
    this.#predecessorsUntilMs = Math.max(this.#predecessorsUntilMs, untilMs);
    this.leader = undefined;
    return leader;
  }

  #newAdapter(): Adapter {
    this.#processes += 1;
    const { turns, clock, vendor } = this;
    const { capabilities, mutant } = this.#options;
    return new Adapter({
      owner: `adapter-${this.#processes}`,
      turns,
      clock,
      vendor,
      settling,
      clockErrorMs: (this.random.next() * 2 - 1) * settling.clockSkewMs,
      realms: new Map(this.places.map(({ endpoint, realm }) => [endpoint, realm])),
      capabilities: capabilities ?? [Capability.DELETE, Capability.RELEASE],
      ignoresNotAfter: mutant?.adaptersIgnoreNotAfter === true,
      faultOf: (rpc, endpoint) => this.faultOf(rpc, endpoint),
    });
  }
}

function classesOf({ places, classSpec }: WorldOptions): readonly ProviderClass[] {
  const addresses = new Map(places.map(({ className, address }) => [className, address]));
  return [...addresses].map(([name, address]) => {
    const hosts = places
      .filter(({ className }) => className === name)
      .map(({ endpoint }) => new URL(endpoint).hostname);
    return parseProviderClass({
      metadata: { name, uid: `class-${name}`, generation: 1 },
      spec: { adapter: { address }, endpointHosts: hosts, ...classSpec },
    });
  });
}
