/**
 * Keeps what is known of health for a term: which placements are watched, the streams that tell of
 * them, and the clock that says when knowledge is old.
 */
import type { ProviderClient } from "../../services/contract/provider-client.ts";
import type { Clock, Timer } from "../../services/process/clock.ts";
import type { Log } from "../../services/process/log.ts";
import { connectionId } from "../providers/providers.ts";
import type { ConnectedProvider, Providers } from "../providers/providers.ts";
import { unwatched } from "../reconcile/health-view.ts";
import type { HealthSource, HealthView } from "../reconcile/health-view.ts";
import type { ClassChoice } from "../resource/class-choice.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import { isSamePlace } from "../resource/placement.ts";
import type { Placement } from "../resource/placement.ts";
import type { AdapterAddress, ProviderClass } from "../resource/provider-class.ts";
import { HealthBook, placeIdOf } from "./health-book.ts";
import type { HealthBookParts, WatchedPlacement } from "./health-book.ts";
import { HealthStreams } from "./health-streams.ts";
import type { WatchedPlace } from "./place-knowledge.ts";

export interface HealthKeeperParts extends Omit<HealthBookParts, "clock"> {
  readonly classes: () => readonly ProviderClass[];
  readonly providers: Pick<Providers, "connected">;
  /** Whose instances. */
  readonly ownerCluster: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** How often ages are looked at, and streams opened for new places. */
const tickMs = 500;
/** A loop that has not turned for so long hangs. */
const hungMs = 5_000;

export class HealthKeeper implements HealthSource {
  readonly #parts: HealthKeeperParts;
  readonly #book: HealthBook;
  readonly #streams: HealthStreams;
  readonly #adapters = new Map<string, AdapterAddress>();
  /** By place: what status says of a vendor that asked for a wait, so that an adapter may forget it. */
  readonly #heldUntilMs = new Map<string, number>();
  #arePlacesChanged = true;
  #timer: Timer | undefined;
  #lastTickMs: number;

  constructor(parts: HealthKeeperParts) {
    this.#parts = parts;
    this.#lastTickMs = parts.clock.monotonicMs();
    this.#book = new HealthBook(parts);
    this.#streams = new HealthStreams({
      ...parts,
      book: this.#book,
      connect: (place) => this.#connect(place),
      heldUntilMs: (place) => this.#heldUntilMs.get(placeIdOf(place)) ?? 0,
    });
  }

  start(): void {
    this.#tick();
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.#streams.stop();
  }

  /** @param object undefined: it is gone */
  objectChanged(key: string, object: DigitalHumanProvider | undefined): void {
    const placements = (object?.record ?? []).flatMap((placement) =>
      placement.state === "Retiring" ? [] : (this.#watched(placement) ?? []),
    );
    this.#book.watch(key, placements);
    this.#arePlacesChanged = true;
    const untilMs = Date.parse(object?.status.rateLimitedUntil ?? "");
    for (const { place } of placements) {
      if (untilMs > this.#parts.clock.now()) this.#heldUntilMs.set(placeIdOf(place), untilMs);
      else this.#heldUntilMs.delete(placeIdOf(place));
    }
  }

  view(object: DigitalHumanProvider, choice: ClassChoice): HealthView {
    const wanted =
      choice.kind === "chosen"
        ? object.record.find((placement) => isSamePlace(placement, choice.place))
        : undefined;
    const placement = wanted ?? object.record.find(({ providerID }) => providerID !== "");
    const watched = placement === undefined ? undefined : this.#watched(placement);
    return watched === undefined ? unwatched : this.#book.view(watched);
  }

  /** How the places of a class's adapter stand. */
  placesOf({ adapter, freshnessSeconds }: ProviderClass): ReturnType<HealthBook["placeCounts"]> {
    return this.#book.placeCounts(connectionId(adapter), freshnessSeconds * 1_000);
  }

  /** Why status may be old without anybody saying so; undefined while the loop turns. */
  obstacle(): string | undefined {
    if (this.#timer === undefined) return undefined;
    const idleMs = this.#parts.clock.monotonicMs() - this.#lastTickMs;
    return idleMs > hungMs ? "the loop that watches the age of knowledge hangs" : undefined;
  }

  #tick(): void {
    const { clock } = this.#parts;
    this.#lastTickMs = clock.monotonicMs();
    // Set before the work: should that throw, the process ends, and not this loop alone.
    this.#timer = clock.setTimer(tickMs, () => this.#tick());
    if (this.#arePlacesChanged) {
      this.#arePlacesChanged = false;
      this.#streams.follow(this.#book.placesInUse());
    }
    this.#book.tick();
  }

  #watched(placement: Placement): WatchedPlacement | undefined {
    const serving = this.#parts.classes().find(({ name }) => name === placement.class);
    if (serving === undefined) return undefined;
    const { adapter, freshnessSeconds } = serving;
    const id = connectionId(adapter);
    this.#adapters.set(id, adapter);
    const { endpoint, region, account } = placement;
    const place = { adapter: id, address: adapter.address, endpoint, region, account };
    return { place, placement, boundMs: freshnessSeconds * 1_000 };
  }

  async #connect(place: WatchedPlace): Promise<Pick<ProviderClient, "watchHealth"> | undefined> {
    const adapter = this.#adapters.get(place.adapter);
    if (adapter === undefined) return undefined;
    const provider: ConnectedProvider = await this.#parts.providers.connected(adapter);
    return provider.capabilities.includes("WATCH_HEALTH") ? provider.client : undefined;
  }
}
