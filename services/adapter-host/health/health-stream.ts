/**
 * One WatchHealth stream: a snapshot of what is known, then what changes, and a heartbeat each second
 * that says how old the knowledge of each target is. What a slow reader has not taken yet is kept as
 * the latest state of each instance, so that it never grows beyond that.
 */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import type { Instance, Target } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { WatchHealthResponseSchema } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { WatchHealthResponse } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Clock } from "../../process/clock.ts";
import { clusterShort } from "../stamp.ts";
import type { TargetKnowledge, TargetListener } from "./target-watch.ts";

/** One target of the stream, and where its knowledge comes from. */
export interface WatchedTarget {
  readonly target: Target;
  readonly watch: {
    listen(listener: TargetListener): () => void;
    readonly firstLook: Promise<void>;
    readonly knowledge: TargetKnowledge;
    instances(): readonly Instance[];
  };
}

export interface HealthStreamOptions {
  /** Between two heartbeats; the contract allows 2 s. */
  readonly heartbeatMs: number;
  /** How long the snapshot waits for the first look at places that nobody watched before. */
  readonly firstLookMsMax: number;
  readonly instancesPerMessageMax: number;
}

export const defaultHealthStreamOptions: HealthStreamOptions = {
  heartbeatMs: 1_000,
  firstLookMsMax: 1_500,
  instancesPerMessageMax: 500,
};

export interface HealthStreamParts {
  readonly ownerCluster: string;
  readonly targets: readonly WatchedTarget[];
  readonly clock: Clock;
  readonly options: HealthStreamOptions;
}

/** Ends when `signal` aborts. */
export async function* healthStream(
  parts: HealthStreamParts,
  signal: AbortSignal,
): AsyncGenerator<WatchHealthResponse, void, undefined> {
  const { targets, clock, options } = parts;
  const news = new News(parts.ownerCluster);
  const leave = targets.map(({ watch }) => watch.listen(news));
  try {
    await firstLooks(parts, signal);
    news.take();
    yield* snapshot(parts, news);
    let heartbeatAtMs = clock.monotonicMs();
    while (!signal.aborted) {
      yield* changes(news.take(), options.instancesPerMessageMax);
      if (clock.monotonicMs() >= heartbeatAtMs) {
        heartbeatAtMs = clock.monotonicMs() + options.heartbeatMs;
        yield heartbeat(targets);
      }
      await news.wait(clock, heartbeatAtMs - clock.monotonicMs(), signal);
    }
  } finally {
    for (const end of leave) end();
  }
}

async function firstLooks(
  { targets, clock, options }: HealthStreamParts,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const late = clock
    .sleep(options.firstLookMsMax, AbortSignal.any([signal, over.signal]))
    .catch(() => undefined);
  await Promise.race([Promise.all(targets.map(({ watch }) => watch.firstLook)), late]);
  over.abort();
}

function* snapshot(
  { targets, options }: HealthStreamParts,
  news: News,
): Generator<WatchHealthResponse> {
  const all = targets.flatMap(({ watch }) => watch.instances().filter((one) => news.isOurs(one)));
  const size = options.instancesPerMessageMax;
  for (let at = 0; at === 0 || at < all.length; at += size) {
    const instances = all.slice(at, at + size);
    const value = { instances, isLast: at + size >= all.length };
    yield create(WatchHealthResponseSchema, { event: { case: "snapshot", value } });
  }
}

function* changes(
  { changed, gone }: { readonly changed: readonly Instance[]; readonly gone: readonly Instance[] },
  size: number,
): Generator<WatchHealthResponse> {
  for (let at = 0; at < changed.length || at < gone.length; at += size) {
    const value = { changed: changed.slice(at, at + size), gone: gone.slice(at, at + size) };
    yield create(WatchHealthResponseSchema, { event: { case: "change", value } });
  }
}

function heartbeat(targets: readonly WatchedTarget[]): WatchHealthResponse {
  const value = {
    targets: targets.map(({ target, watch }) => {
      const { realm, observedAtMs, message } = watch.knowledge;
      const observedAt =
        observedAtMs === undefined ? {} : { observedAt: timestampFromMs(observedAtMs) };
      return { target, realm, message, ...observedAt };
    }),
  };
  return create(WatchHealthResponseSchema, { event: { case: "heartbeat", value } });
}

/** What the reader has not taken yet: the latest of each instance. */
class News implements TargetListener {
  readonly #ownerPart: string;
  readonly #cluster: string;
  readonly #changed = new Map<string, Instance>();
  readonly #gone = new Map<string, Instance>();
  #wake: () => void = () => undefined;

  constructor(ownerCluster: string) {
    this.#cluster = ownerCluster;
    this.#ownerPart = `-${clusterShort(ownerCluster)}`;
  }

  isOurs({ owner, stamp }: Instance): boolean {
    const cluster = owner?.cluster ?? "";
    return cluster === "" ? stamp.endsWith(this.#ownerPart) : cluster === this.#cluster;
  }

  changed(instance: Instance): void {
    if (!this.isOurs(instance)) return;
    const id = idOf(instance);
    this.#gone.delete(id);
    this.#changed.set(id, instance);
    this.#wake();
  }

  gone(instance: Instance): void {
    if (!this.isOurs(instance)) return;
    const id = idOf(instance);
    this.#changed.delete(id);
    this.#gone.set(id, instance);
    this.#wake();
  }

  take(): { readonly changed: readonly Instance[]; readonly gone: readonly Instance[] } {
    const taken = { changed: [...this.#changed.values()], gone: [...this.#gone.values()] };
    this.#changed.clear();
    this.#gone.clear();
    return taken;
  }

  /** Until there is something to take, `waitMs` have passed, or `signal` aborts. */
  async wait(clock: Clock, waitMs: number, signal: AbortSignal): Promise<void> {
    if (this.#changed.size > 0 || this.#gone.size > 0 || waitMs <= 0) return;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await clock.sleep(waitMs, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
    this.#wake = () => undefined;
  }
}

/** Ids are unique within a realm. */
function idOf({ realm, providerId }: Instance): string {
  return `${realm}\n${providerId}`;
}
