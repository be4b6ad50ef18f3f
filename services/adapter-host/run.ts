/** One call on one instance, with everything that its steps need. */
import type { Change } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../contract/provider-error.ts";
import type { MutationEffect } from "../contract/provider-error.ts";
import type { Clock } from "../process/clock.ts";
import type { Log } from "../process/log.ts";
import type { Adapter, FoundInstance, VendorCall } from "./adapter.ts";
import type { CallSite } from "./call-site.ts";
import type { Flights } from "./flights.ts";
import type { ListAccess } from "./locate.ts";

/** What callers are told to wait, ms; absent: no need to ask again. */
export interface PollAfterMs {
  readonly byState: Readonly<Record<FoundInstance["state"], number | undefined>>;
  readonly deleting: number;
  readonly inDoubt: number;
}

/** How long a create waits for its instance to show, at vendors that are slow to show it. */
export interface SettleOptions {
  readonly waitMsMax: number;
  readonly stepMs: number;
}

/** What became of the instance, before it is put into words. */
export interface Ensured {
  readonly found: FoundInstance;
  readonly change: Change;
}

export interface RunParts {
  readonly adapter: Adapter;
  readonly site: CallSite;
  readonly realm: string;
  /** Realm and key as the flights know them. */
  readonly flightKey: string;
  readonly flights: Flights;
  readonly clock: Clock;
  readonly log: Log;
  readonly pollAfterMs: PollAfterMs;
  readonly lists: ListAccess;
  readonly settle: SettleOptions;
}

/** Keeps account of what the call has done to the vendor, so that every error can say it. */
export class Run {
  readonly adapter: Adapter;
  readonly site: CallSite;
  readonly realm: string;
  readonly flightKey: string;
  readonly flights: Flights;
  readonly clock: Clock;
  readonly log: Log;
  readonly pollAfterMs: PollAfterMs;
  readonly lists: ListAccess;
  readonly settle: SettleOptions;
  #outcome: MutationEffect = "NOT_APPLIED";
  #providerId: string | undefined;

  constructor(parts: RunParts) {
    this.adapter = parts.adapter;
    this.site = parts.site;
    this.realm = parts.realm;
    this.flightKey = parts.flightKey;
    this.flights = parts.flights;
    this.clock = parts.clock;
    this.log = parts.log;
    this.pollAfterMs = parts.pollAfterMs;
    this.lists = parts.lists;
    this.settle = parts.settle;
  }

  /** One mutating primitive. `id`: the instance it is about, where it is known already. */
  async mutate<T>(primitive: (call: VendorCall) => Promise<T>, id?: string): Promise<T> {
    try {
      const { proofs, realm } = this.lists;
      const result = await proofs.mutation(realm, () => this.site.mutate(primitive));
      this.#outcome = "APPLIED";
      return result;
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      // An error after an earlier mutation of this call: that one stands.
      const isFirst = this.#outcome === "NOT_APPLIED";
      this.#outcome = isFirst ? error.outcome : "APPLIED";
      this.#providerId = error.facts.providerId ?? id ?? this.#providerId;
      throw vanished(error);
    }
  }

  /** Steps that follow a mutation: whatever fails in them, the mutation on `id` took effect. */
  async after<T>(id: string, steps: () => Promise<T>): Promise<T> {
    this.#providerId = id;
    return steps();
  }

  /** What this call had made is gone again. */
  nothingRemains(): void {
    this.#outcome = "NOT_APPLIED";
    this.#providerId = undefined;
  }

  /** The error as the caller gets it: with the outcome of the whole call. */
  conclude(error: ProviderError): ProviderError {
    return error.withOutcome(this.#outcome, this.#providerId);
  }

  /** Until when (monotonic ms) a mutation begun now may come to be or to show. */
  doubtUntilMs(): number {
    const { mutationDeadlineMs, visibilityLagMs } = this.adapter.info;
    return this.clock.monotonicMs() + mutationDeadlineMs + visibilityLagMs;
  }
}

/** The instance went away between look and change: not the attested absence that NOT_FOUND means. */
function vanished(error: ProviderError): ProviderError {
  if (error.reason !== "NOT_FOUND") return error;
  return new ProviderError("BUSY", `the instance changed meanwhile: ${error.message}`, {
    ...error.facts,
    retryAfterMs: error.facts.retryAfterMs ?? 1000,
  });
}
