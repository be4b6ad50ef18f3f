/**
 * How fresh the knowledge of one place is. Ages are measured on our own monotonic clock, from the
 * moment at which the adapter first told of a newer look: its clock may differ from ours.
 */

/** Where and through whom. */
export interface WatchedPlace {
  /** The adapter's connection (providers.ts). */
  readonly adapter: string;
  /** The adapter's address, for people. */
  readonly address: string;
  readonly endpoint: string;
  readonly region: string;
  readonly account: string;
}

export type Freshness =
  | { readonly kind: "unwatched" }
  | { readonly kind: "pending" }
  | { readonly kind: "fresh" }
  | {
      readonly kind: "stale";
      readonly reason: "HealthStale" | "AdapterUnreachable";
      readonly message: string;
    };

/** One stream from its opening to its end. What an earlier one told may have changed in between. */
export interface HealthSession {
  readonly places: readonly WatchedPlace[];
}

/** What a heartbeat says of a place. */
export interface HeardKnowledge {
  readonly realm: string;
  /** Adapter's time, epoch ms; undefined: never looked. */
  readonly observedAtMs: number | undefined;
  readonly message: string;
}

/** A stream that breaks may come back at once: a spare takes over within this. */
const reconnectMs = 2_000;
/** The part of the bound after which knowledge counts as old: what is left is for telling it. */
const staleShare = 0.75;

export class PlaceKnowledge {
  readonly place: WatchedPlace;
  realm = "";
  /** Of the last look, adapter's time. */
  observedAtMs: number | undefined;
  /** The stream that has told of a whole look. */
  toldBy: HealthSession | undefined;
  #message = "";
  #advancedAtMs: number;
  #lostAtMs: number | undefined;
  #hasLooked = false;
  #isWatched = true;

  /** @param nowMs monotonic */
  constructor(place: WatchedPlace, nowMs: number) {
    this.place = place;
    this.#advancedAtMs = nowMs;
  }

  heard(knowledge: HeardKnowledge, nowMs: number): void {
    const { realm, observedAtMs, message } = knowledge;
    if (realm !== "") this.realm = realm;
    this.#message = message;
    if (observedAtMs === undefined || observedAtMs === this.observedAtMs) return;
    // Another replica's clock may be behind: any other time is another look.
    this.observedAtMs = observedAtMs;
    this.#advancedAtMs = nowMs;
    this.#hasLooked = true;
  }

  streamOpened(nowMs: number): void {
    this.#lostAtMs = undefined;
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#advancedAtMs = nowMs;
  }

  /** The adapter serves no WatchHealth. */
  streamUnsupported(): void {
    this.#isWatched = false;
  }

  streamLost(nowMs: number): void {
    this.#lostAtMs ??= nowMs;
  }

  freshness(nowMs: number, boundMs: number): Freshness {
    if (!this.#isWatched) return { kind: "unwatched" };
    const { address, endpoint, region } = this.place;
    const ageMs = nowMs - this.#advancedAtMs;
    if (this.#lostAtMs !== undefined && nowMs - this.#lostAtMs >= Math.min(reconnectMs, boundMs)) {
      const message = `the adapter at ${address} does not answer, so nothing new is known of ${endpoint} (${region}); it is asked again all the time: look at its pods and their log`;
      return { kind: "stale", reason: "AdapterUnreachable", message };
    }
    if (ageMs < boundMs * staleShare) return { kind: this.#hasLooked ? "fresh" : "pending" };
    const why = this.#message === "" ? "the adapter has not looked" : this.#message;
    const message = `what is known of ${endpoint} (${region}) is older than ${boundMs / 1000} s allow: ${why}`;
    return { kind: "stale", reason: "HealthStale", message };
  }
}
