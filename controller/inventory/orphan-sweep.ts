/**
 * Looks in long intervals for instances that carry our stamp and belong to no object: they are billed
 * and nobody misses them. Told in a metric and an event on the class; deleted by people alone
 * (`npm run orphans`).
 */
import type { Clock } from "../../services/process/clock.ts";
import type { Log } from "../../services/process/log.ts";
import type { Providers } from "../providers/providers.ts";
import type { ObjectEvent } from "../reconcile/provider-objects.ts";
import type { FleetIdentity } from "../reconcile/provider-requests.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import type { ProviderClass } from "../resource/provider-class.ts";
import { Claims } from "./claims.ts";
import type { StampedInstance } from "./claims.ts";
import { listStamped } from "./stamped-list.ts";
import type { ListedPlace } from "./stamped-list.ts";

export interface OrphanSweepParts {
  readonly objects: () => Iterable<DigitalHumanProvider>;
  readonly classes: () => readonly ProviderClass[];
  readonly providers: Pick<Providers, "connected">;
  readonly identity: FleetIdentity;
  readonly clock: Clock;
  readonly log: Log;
  readonly intervalMs: number;
  /** All orphans of a class, after each sweep of it that went well. */
  readonly onOrphans: (found: ProviderClass, orphans: readonly StampedInstance[]) => void;
}

const placesMax = 1_000;
const namedMax = 5;

/** For the class, the same words as long as the same ones are left. */
export function orphanEvent(orphans: readonly StampedInstance[]): ObjectEvent {
  const named = orphans
    .slice(0, namedMax)
    .map(({ providerID, realm }) => `${providerID} (${realm})`);
  const more = orphans.length > namedMax ? ` and ${orphans.length - namedMax} more` : "";
  return {
    type: "Warning",
    reason: "Orphaned",
    action: "Sweep",
    note: `${named.join(", ")}${more}: carry our stamp, belong to no object, and may be billed; npm run orphans lists them`,
  };
}

export class OrphanSweep {
  readonly #parts: OrphanSweepParts;
  readonly #stopping = new AbortController();
  /** Places of this term by class: an orphan may be left where no object is recorded any more. */
  readonly #places = new Map<string, Map<string, ListedPlace>>();
  /** Unclaimed in the sweep before, by class: what is new may only just be under way. */
  readonly #suspects = new Map<string, ReadonlySet<string>>();
  #running: Promise<void> = Promise.resolve();

  constructor(parts: OrphanSweepParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = this.#loop();
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the sweep stops"));
    await this.#running;
  }

  async #loop(): Promise<void> {
    const { clock, intervalMs } = this.#parts;
    const { signal } = this.#stopping;
    for (;;) {
      await clock.sleep(intervalMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      this.#notePlaces();
      for (const one of this.#parts.classes()) await this.#sweepClass(one, signal);
    }
  }

  #notePlaces(): void {
    for (const { record } of this.#parts.objects()) {
      for (const { class: className, endpoint, region, account } of record) {
        const places = this.#places.get(className) ?? new Map<string, ListedPlace>();
        this.#places.set(className, places);
        const id = JSON.stringify([endpoint, region, account]);
        if (places.size < placesMax) places.set(id, { endpoint, region, account });
      }
    }
  }

  async #sweepClass(one: ProviderClass, signal: AbortSignal): Promise<void> {
    const { providers, identity, log, onOrphans } = this.#parts;
    const places = [...(this.#places.get(one.name)?.values() ?? [])];
    if (places.length === 0) return;
    try {
      const { client, capabilities } = await providers.connected(one.adapter);
      if (!capabilities.includes("LIST_BY_OWNER")) return;
      const found = new Map<string, StampedInstance>();
      for (const place of places) {
        const ask = { ownerCluster: identity.cluster, signal };
        for (const instance of await listStamped(client, place, ask)) {
          found.set(`${instance.realm}\n${instance.providerID}`, instance);
        }
      }
      // Claims as of after the lists: what was recorded meanwhile counts.
      const claims = new Claims(this.#parts.objects(), identity);
      const unclaimed = new Map(
        [...found].filter(([, instance]) => claims.of(instance).kind === "orphan"),
      );
      const before = this.#suspects.get(one.name) ?? new Set();
      this.#suspects.set(one.name, new Set(unclaimed.keys()));
      onOrphans(
        one,
        [...unclaimed].filter(([id]) => before.has(id)).map(([, instance]) => instance),
      );
    } catch (error) {
      if (!signal.aborted) log.warn({ error, class: one.name }, "cannot look for orphans");
    }
  }
}
