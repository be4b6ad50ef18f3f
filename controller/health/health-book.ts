/**
 * All that the health streams have told, and who wants to know: instances by id, the freshness of each
 * place, and which object's record names which instance. Says which objects to look at again when
 * something changes; decides nothing.
 */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { Instance } from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type {
  TargetKnowledge,
  WatchHealthResponse,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Clock } from "../../services/process/clock.ts";
import { unwatched } from "../reconcile/health-view.ts";
import type { HealthView } from "../reconcile/health-view.ts";
import { observeInstance } from "../reconcile/observed-instance.ts";
import type { ObservedInstance } from "../reconcile/observed-instance.ts";
import type { Placement } from "../resource/placement.ts";
import { PlaceKnowledge } from "./place-knowledge.ts";
import type { HealthSession, WatchedPlace } from "./place-knowledge.ts";

/** One placement of an object that is watched. */
export interface WatchedPlacement {
  readonly place: WatchedPlace;
  readonly placement: Placement;
  /** How old knowledge of it may be. */
  readonly boundMs: number;
}

/** Why an object is to be looked at again. */
export type News =
  /** Its conditions may differ now; what is remembered of it is enough. */
  | "health"
  /** The use of a quota alone has changed: told each time, and as "health" now and then. */
  | "usage"
  /** The vendor has to be asked: the instance is gone, or it looks different. */
  | "look";

export interface HealthBookParts {
  readonly clock: Clock;
  readonly onNews: (key: string, news: News, seen: ObservedInstance | undefined) => void;
  /** Knowledge of some places has become old, or fresh, or fresh again. */
  readonly onPlaces: () => void;
}

interface KnownInstance {
  readonly seen: ObservedInstance;
  readonly session: HealthSession;
  readonly observedAtMs: number;
}

/** A counter that runs is told of this often. */
const usageNewsMs = 30_000;

interface WatchedObject {
  readonly placements: readonly WatchedPlacement[];
  /** As told last: why knowledge is old; empty: it is not. */
  lastFreshness: string;
}

export class HealthBook {
  readonly #parts: HealthBookParts;
  readonly #places = new Map<string, PlaceKnowledge>();
  readonly #instances = new Map<string, KnownInstance>();
  readonly #objects = new Map<string, WatchedObject>();
  readonly #boundMsOf = new Map<string, number>();
  #lastPlaces = "";
  /** Objects whose record names an instance. */
  readonly #keysOfId = new Map<string, Set<string>>();
  /** Instances whose use has changed and nothing else, by when that began. */
  readonly #usageSinceMs = new Map<string, number>();

  constructor(parts: HealthBookParts) {
    this.#parts = parts;
  }

  /** What is watched for an object from now on; empty: nothing. */
  watch(key: string, placements: readonly WatchedPlacement[]): void {
    const before = this.#objects.get(key);
    for (const { placement } of before?.placements ?? []) this.#unlink(key, placement);
    if (placements.length === 0) {
      this.#objects.delete(key);
      return;
    }
    for (const { place, placement, boundMs } of placements) {
      this.#placeOf(place);
      this.#boundMsOf.set(placeIdOf(place), boundMs);
      const id = idOf(placement.realm, placement.providerID);
      if (placement.providerID === "") continue;
      const keys = this.#keysOfId.get(id) ?? new Set();
      this.#keysOfId.set(id, keys.add(key));
    }
    const lastFreshness = before?.lastFreshness ?? this.#freshnessOf(placements);
    this.#objects.set(key, { placements, lastFreshness });
  }

  /** Places that some object is recorded at, by adapter; forgets the others. */
  placesInUse(): ReadonlyMap<string, readonly WatchedPlace[]> {
    const used = new Map<string, WatchedPlace>();
    for (const { placements } of this.#objects.values()) {
      for (const { place } of placements) used.set(placeIdOf(place), place);
    }
    for (const id of this.#places.keys()) {
      if (used.has(id)) continue;
      this.#places.delete(id);
      this.#boundMsOf.delete(id);
    }
    const byAdapter = new Map<string, WatchedPlace[]>();
    for (const place of used.values()) {
      byAdapter.set(place.adapter, [...(byAdapter.get(place.adapter) ?? []), place]);
    }
    return byAdapter;
  }

  /** What is known of the instance that a placement names. */
  view({ place, placement, boundMs }: WatchedPlacement): HealthView {
    const knowledge = this.#places.get(placeIdOf(place));
    if (knowledge === undefined) return unwatched;
    const freshness = knowledge.freshness(this.#parts.clock.monotonicMs(), boundMs);
    if (freshness.kind !== "fresh") return freshness;
    if (placement.providerID === "") return { kind: "pending" };
    const known = this.#instances.get(idOf(placement.realm, placement.providerID));
    if (known === undefined) return { kind: "unseen" };
    const readAtMs = Math.max(known.observedAtMs, knowledge.observedAtMs ?? 0);
    return { kind: "seen", instance: known.seen, readAtMs };
  }

  /** The adapter serves no WatchHealth: what passes find stands, and does not age. */
  unsupported({ places }: HealthSession): void {
    for (const place of places) this.#places.get(placeIdOf(place))?.streamUnsupported();
  }

  /** The stream has ended, or could not be opened. */
  lost({ places }: HealthSession): void {
    const nowMs = this.#parts.clock.monotonicMs();
    for (const place of places) this.#places.get(placeIdOf(place))?.streamLost(nowMs);
  }

  /** One message of a stream; the first ones are its snapshot. */
  apply(session: HealthSession, { event }: WatchHealthResponse): void {
    switch (event.case) {
      case "snapshot":
        for (const place of session.places) {
          const nowMs = this.#parts.clock.monotonicMs();
          this.#places.get(placeIdOf(place))?.streamOpened(nowMs);
        }
        for (const instance of event.value.instances) this.#saw(session, instance);
        return;
      case "change":
        for (const instance of event.value.changed) this.#saw(session, instance);
        for (const instance of event.value.gone) this.#gone(instance);
        return;
      case "heartbeat":
        for (const target of event.value.targets) this.#heard(session, target);
        return;
      default:
        // A message of a newer adapter: nothing that this version knows.
        return;
    }
  }

  /** Tells of objects whose knowledge has become old, or fresh again, and of use that has grown. */
  tick(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    for (const [id, sinceMs] of this.#usageSinceMs) {
      if (nowMs - sinceMs < usageNewsMs) continue;
      this.#usageSinceMs.delete(id);
      this.#tell(id, "health", this.#instances.get(id)?.seen);
    }
    for (const [key, object] of this.#objects) {
      const freshness = this.#freshnessOf(object.placements);
      if (freshness === object.lastFreshness) continue;
      object.lastFreshness = freshness;
      this.#parts.onNews(key, "health", undefined);
    }
    const places = [...this.#places].map(([id, { place }]) => `${id} ${this.#stand(place)}`).join();
    if (places === this.#lastPlaces) return;
    this.#lastPlaces = places;
    this.#parts.onPlaces();
  }

  #stand(place: WatchedPlace): string {
    const nowMs = this.#parts.clock.monotonicMs();
    const bounds = this.#boundMsOf.get(placeIdOf(place)) ?? 0;
    return this.#places.get(placeIdOf(place))?.freshness(nowMs, bounds).kind ?? "";
  }

  /** Fresh and other places of one adapter, for its class. */
  placeCounts(
    adapter: string,
    boundMs: number,
  ): { readonly fresh: number; readonly pending: number; readonly stale: readonly string[] } {
    const nowMs = this.#parts.clock.monotonicMs();
    const stale: string[] = [];
    let fresh = 0;
    let pending = 0;
    for (const knowledge of this.#places.values()) {
      if (knowledge.place.adapter !== adapter) continue;
      const freshness = knowledge.freshness(nowMs, boundMs);
      if (freshness.kind === "fresh") fresh += 1;
      if (freshness.kind === "pending") pending += 1;
      if (freshness.kind === "stale") stale.push(freshness.message);
    }
    return { fresh, pending, stale };
  }

  #heard(session: HealthSession, told: TargetKnowledge): void {
    const { target, realm, observedAt, message } = told;
    const [first] = session.places;
    if (target === undefined || first === undefined) return;
    const { endpoint, region, account } = target;
    const id = placeIdOf({ adapter: first.adapter, endpoint, region, account });
    const knowledge = this.#places.get(id);
    if (knowledge === undefined) return;
    const observedAtMs = msOf(observedAt);
    knowledge.heard({ realm, observedAtMs, message }, this.#parts.clock.monotonicMs());
    if (observedAtMs === undefined || knowledge.toldBy === session) return;
    knowledge.toldBy = session;
    this.#missEarlierSessions(id, session);
  }

  /** What only an earlier stream told of, and the first whole look of this one did not, is gone. */
  #missEarlierSessions(placeId: string, session: HealthSession): void {
    for (const [key, { placements }] of this.#objects) {
      for (const { place, placement } of placements) {
        if (placement.providerID === "" || placeIdOf(place) !== placeId) continue;
        const id = idOf(placement.realm, placement.providerID);
        const known = this.#instances.get(id);
        if (known === undefined || known.session === session) continue;
        this.#instances.delete(id);
        this.#parts.onNews(key, "look", undefined);
      }
    }
  }

  #saw(session: HealthSession, instance: Instance): void {
    const id = idOf(instance.realm, instance.providerId);
    const seen = observeInstance(instance);
    const observedAtMs = msOf(instance.health?.observedAt) ?? 0;
    const before = this.#instances.get(id)?.seen;
    this.#instances.set(id, { seen, session, observedAtMs });
    if (before !== undefined && differInUsageAlone(before, seen)) {
      const nowMs = this.#parts.clock.monotonicMs();
      if (!this.#usageSinceMs.has(id)) this.#usageSinceMs.set(id, nowMs);
      this.#tell(id, "usage", seen);
      return;
    }
    for (const key of this.#keysOfId.get(id) ?? []) {
      this.#parts.onNews(key, isAnothers(instance, key) ? "look" : "health", seen);
    }
  }

  #tell(id: string, news: News, seen: ObservedInstance | undefined): void {
    for (const key of this.#keysOfId.get(id) ?? []) this.#parts.onNews(key, news, seen);
  }

  #gone(instance: Instance): void {
    const id = idOf(instance.realm, instance.providerId);
    this.#instances.delete(id);
    this.#usageSinceMs.delete(id);
    this.#tell(id, "look", undefined);
  }

  #freshnessOf(placements: readonly WatchedPlacement[]): string {
    const nowMs = this.#parts.clock.monotonicMs();
    return placements
      .map(({ place, boundMs }) => {
        const freshness = this.#places.get(placeIdOf(place))?.freshness(nowMs, boundMs);
        return freshness?.kind === "stale" ? freshness.reason : "";
      })
      .join();
  }

  #placeOf(place: WatchedPlace): PlaceKnowledge {
    const id = placeIdOf(place);
    const known = this.#places.get(id);
    if (known !== undefined) return known;
    const knowledge = new PlaceKnowledge(place, this.#parts.clock.monotonicMs());
    this.#places.set(id, knowledge);
    return knowledge;
  }

  #unlink(key: string, { realm, providerID }: Placement): void {
    const id = idOf(realm, providerID);
    const keys = this.#keysOfId.get(id);
    keys?.delete(key);
    if (keys?.size !== 0) return;
    this.#keysOfId.delete(id);
  }
}

function differInUsageAlone(before: ObservedInstance, after: ObservedInstance): boolean {
  const rest = ({ usage: _usage, observedAtMs: _observedAtMs, ...others }: ObservedInstance) =>
    JSON.stringify(others);
  return (
    rest(before) === rest(after) && JSON.stringify(before.usage) !== JSON.stringify(after.usage)
  );
}

/** Two objects recorded one instance, as when both adopt it: its stamp says which of them has it. */
function isAnothers({ instanceKey }: Instance, key: string): boolean {
  return instanceKey !== "" && !instanceKey.endsWith(`/${key}`);
}

/** Names a place within this process. */
export function placeIdOf(place: Omit<WatchedPlace, "address">): string {
  return JSON.stringify([place.adapter, place.endpoint, place.region, place.account]);
}

/** Ids are unique within a realm, which no adapter's name is part of by rule. */
function idOf(realm: string, providerId: string): string {
  return `${realm}\n${providerId}`;
}

function msOf(timestamp: Timestamp | undefined): number | undefined {
  return timestamp === undefined ? undefined : timestampMs(timestamp);
}
