/** All instances of this cluster: what objects record, and what the vendors show. Reads alone. */
import { connectProvider } from "../../services/contract/client.ts";
import type { ProviderClient } from "../../services/contract/provider-client.ts";
import { systemClock } from "../../services/process/clock.ts";
import { createLog } from "../../services/process/log.ts";
import { readClusterId } from "../cluster-id.ts";
import { adapterTlsFiles } from "../controller-options.ts";
import { Connection } from "../kubernetes/connection.ts";
import { kubeConfigFile, kubeConfigInCluster } from "../kubernetes/kube-config.ts";
import { ResourceClient } from "../kubernetes/resource-client.ts";
import type { RawObject } from "../kubernetes/raw-object.ts";
import type { ResourceType } from "../kubernetes/resource-client.ts";
import { adapterSecurity } from "../providers/adapter-security.ts";
import { Providers } from "../providers/providers.ts";
import type { FleetIdentity } from "../reconcile/provider-requests.ts";
import { parseDigitalHumanProvider } from "../resource/digital-human-provider.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import { parseProviderClass } from "../resource/provider-class.ts";
import type { AdapterAddress, ProviderClass } from "../resource/provider-class.ts";
import { classResource, providerResource } from "../resource-kinds.ts";
import { Claims } from "./claims.ts";
import type { StampedInstance } from "./claims.ts";
import type { InventoryOptions } from "./inventory-options.ts";
import { listStamped } from "./stamped-list.ts";
import type { ListedPlace } from "./stamped-list.ts";

export interface Orphan {
  readonly class: string;
  readonly place: ListedPlace;
  readonly instance: StampedInstance;
  readonly why: string;
}

export interface OrphanReport {
  readonly orphans: readonly Orphan[];
  /** Places that could not be looked at, and why; an orphan there is not in the list. */
  readonly unseen: readonly string[];
}

const apiTimeoutMs = 30_000;
const infoDeadlineMs = 5_000;

export class Inventory {
  readonly identity: FleetIdentity;
  readonly #options: InventoryOptions;
  readonly #connection: Connection;
  readonly #providers: Providers;

  private constructor(options: InventoryOptions, connection: Connection, cluster: string) {
    this.#options = options;
    this.#connection = connection;
    this.identity = { fleet: options.fleet, cluster };
    this.#providers = new Providers({
      connect: (adapter) => this.#connect(adapter),
      clock: systemClock,
      infoDeadlineMs,
      infoMaxAgeMs: 60_000,
    });
  }

  /** Rejects when the API server does not answer. */
  static async open(options: InventoryOptions): Promise<Inventory> {
    const log = createLog({ name: "inventory", level: "warn" });
    const { kubeconfig } = options;
    const connection = new Connection({
      source: kubeconfig === undefined ? kubeConfigInCluster() : kubeConfigFile(kubeconfig),
      clock: systemClock,
      log,
      metrics: { onRequest: () => undefined, onHandshake: () => undefined },
      userAgent: "dhp-inventory",
    });
    const signal = AbortSignal.timeout(apiTimeoutMs);
    const cluster =
      options.cluster ?? (await readClusterId(connection, { clock: systemClock, log, signal }));
    return new Inventory(options, connection, cluster);
  }

  async objects(): Promise<readonly DigitalHumanProvider[]> {
    return (await this.#list(providerResource)).map(parseDigitalHumanProvider);
  }

  async classes(): Promise<readonly ProviderClass[]> {
    return (await this.#list(classResource)).map(parseProviderClass);
  }

  /** Instances of this cluster that no object claims. */
  async orphans(): Promise<OrphanReport> {
    const [objects, classes] = await Promise.all([this.objects(), this.classes()]);
    const orphans = new Map<string, Orphan>();
    const unseen: string[] = [];
    for (const one of classes) {
      for (const place of this.#placesOf(one, objects)) {
        try {
          for (const instance of await this.#instancesAt(one, place)) {
            const claim = new Claims(objects, this.identity).of(instance);
            if (claim.kind !== "orphan") continue;
            const id = `${instance.realm}\n${instance.providerID}`;
            orphans.set(id, { class: one.name, place, instance, why: claim.why });
          }
        } catch (error) {
          const words = error instanceof Error ? error.message : String(error);
          unseen.push(`class ${one.name}, ${place.endpoint} (${place.region}): ${words}`);
        }
      }
    }
    return { orphans: [...orphans.values()], unseen };
  }

  /** The adapter of a class. @throws ProviderError */
  async client(className: string): Promise<ProviderClient> {
    const found = (await this.classes()).find(({ name }) => name === className);
    if (found === undefined) throw new Error(`there is no class ${className}`);
    return (await this.#providers.connected(found.adapter)).client;
  }

  async close(): Promise<void> {
    this.#providers.close();
    await this.#connection.close();
  }

  async #instancesAt(one: ProviderClass, place: ListedPlace): Promise<readonly StampedInstance[]> {
    const { client, capabilities } = await this.#providers.connected(one.adapter);
    if (!capabilities.includes("LIST_BY_OWNER")) {
      throw new Error("the adapter cannot list by owner: look at the vendor's console");
    }
    return await listStamped(client, place, { ownerCluster: this.identity.cluster });
  }

  #placesOf(
    { name, account }: ProviderClass,
    objects: readonly DigitalHumanProvider[],
  ): readonly ListedPlace[] {
    const recorded = objects.flatMap(({ record }) =>
      record.filter((placement) => placement.class === name),
    );
    const named = this.#options.place.flatMap((text) => {
      const [className = "", endpoint = "", region = "", own = account] = text.split(",");
      return className === name ? [{ endpoint, region, account: own }] : [];
    });
    const all = [...recorded, ...named].map(({ endpoint, region, account: own }) => ({
      endpoint,
      region,
      account: own,
    }));
    return [...new Map(all.map((place) => [JSON.stringify(place), place])).values()];
  }

  #list(type: ResourceType): Promise<readonly RawObject[]> {
    const parse = (raw: RawObject): RawObject => raw;
    const timeoutMs = apiTimeoutMs;
    return new ResourceClient({ connection: this.#connection, type, parse, timeoutMs }).list();
  }

  #connect(adapter: AdapterAddress): ProviderClient {
    const { adapterTlsFolder: folder, allowPlaintextAdapters: allowPlaintext } = this.#options;
    const tlsFiles = folder === undefined ? undefined : adapterTlsFiles(folder);
    const tls = adapterSecurity(adapter, { tlsFiles, allowPlaintext });
    return connectProvider({
      address: adapter.address,
      ...(tls === undefined ? {} : { tls }),
      allowPlaintext,
      log: createLog({ name: "inventory", level: "warn" }),
    });
  }
}
