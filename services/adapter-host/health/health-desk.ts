/** WatchHealth of a host: checks the question, and shares one watch per place between all streams. */
import { timestampMs } from "@bufbuild/protobuf/wkt";

import type { Target } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type {
  WatchHealthRequest,
  WatchHealthResponse,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { CallContext } from "../../contract/provider-handlers.ts";
import type { Clock } from "../../process/clock.ts";
import type { Log } from "../../process/log.ts";
import type { Adapter } from "../adapter.ts";
import { limits, Mistakes, refuse } from "../request-checks.ts";
import { defaultHealthStreamOptions, healthStream } from "./health-stream.ts";
import type { WatchedTarget } from "./health-stream.ts";
import { TargetWatch } from "./target-watch.ts";
import type { ObserveSweep, Reads } from "./target-watch.ts";

export interface HealthDeskParts {
  readonly adapter: Adapter;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly sweepIntervalMs: number;
  /** Checks the target, then runs reads at it. Rejects with ProviderError. */
  readonly read: <T>(target: Target, signal: AbortSignal, reads: Reads<T>) => Promise<T>;
  readonly observe: ObserveSweep;
}

const targetsMax = 1_000;
const pagesMax = 1_000;
const confirmationsMax = 50;
/** Without hints of the vendor a sweep is tried again after this at the latest. */
const sweepIntervalMsMax = 30_000;
/** Times the interval, and at least ten seconds: long lists take their time. */
const sweepTimeoutIntervals = 5;
const sweepTimeoutMsMin = 10_000;

export class HealthDesk {
  readonly #parts: HealthDeskParts;
  readonly #watches = new Map<string, TargetWatch>();

  constructor(parts: HealthDeskParts) {
    this.#parts = parts;
  }

  /** Throws ProviderError INVALID_FIELD. */
  async *watch(
    request: WatchHealthRequest,
    { signal }: Pick<CallContext, "signal">,
  ): AsyncGenerator<WatchHealthResponse, void, undefined> {
    checkRequest(request);
    const held = heldUntilMs(request.held);
    const targets = distinct(request.targets).map((target) =>
      this.#watched(target, held.get(placeOf(target)) ?? 0),
    );
    const { clock } = this.#parts;
    try {
      const { ownerCluster } = request;
      const options = defaultHealthStreamOptions;
      yield* healthStream({ ownerCluster, targets, clock, options }, signal);
    } finally {
      for (const [place, watch] of this.#watches) if (watch.isIdle) this.#watches.delete(place);
    }
  }

  #watched(target: Target, untilMs: number): WatchedTarget {
    const place = placeOf(target);
    const watch = this.#watches.get(place) ?? this.#newWatch(target);
    this.#watches.set(place, watch);
    watch.hold(untilMs);
    return { target, watch };
  }

  #newWatch(target: Target): TargetWatch {
    const { adapter, clock, random, log, sweepIntervalMs, read, observe } = this.#parts;
    return new TargetWatch({
      adapter,
      account: target.account || "default",
      read: (signal, reads) => read(target, signal, reads),
      clock,
      random,
      log: log.child({ account: target.account || "default", region: target.region }),
      pace: { intervalMs: sweepIntervalMs, intervalMsMax: sweepIntervalMsMax },
      limits: { pagesMax, confirmationsMax },
      sweepTimeoutMs: Math.max(sweepTimeoutMsMin, sweepIntervalMs * sweepTimeoutIntervals),
      observe,
    });
  }
}

function checkRequest({ ownerCluster, targets, held }: WatchHealthRequest): void {
  const mistakes = new Mistakes();
  mistakes.text("owner_cluster", ownerCluster, { bytesMax: limits.clusterBytesMax });
  if (targets.length === 0) mistakes.add("targets", "is required");
  if (targets.length > targetsMax) mistakes.add("targets", `has more than ${targetsMax} entries`);
  if (held.length > targetsMax) mistakes.add("held", `has more than ${targetsMax} entries`);
  refuse(mistakes);
}

/** Epoch ms by place. */
function heldUntilMs(held: WatchHealthRequest["held"]): ReadonlyMap<string, number> {
  return new Map(
    held.flatMap(({ target, until }) =>
      target === undefined || until === undefined ? [] : [[placeOf(target), timestampMs(until)]],
    ),
  );
}

function distinct(targets: readonly Target[]): readonly Target[] {
  return [...new Map(targets.map((target) => [placeOf(target), target])).values()];
}

function placeOf({ endpoint, region, account }: Target): string {
  return JSON.stringify([endpoint, region, account]);
}
