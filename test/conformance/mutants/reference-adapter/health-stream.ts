/** WatchHealth: one sweep a target at a time; snapshot, changes, and heartbeats by a timer of their own. */
import { setTimeout as delay } from "node:timers/promises";
import { create, equals } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { TargetSchema } from "../../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Instance, Target } from "../../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { WatchHealthResponseSchema } from "../../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  TargetKnowledgeSchema,
  WatchHealthRequest,
  WatchHealthResponse,
} from "../../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Place } from "./accounts.ts";
import { requireCapability } from "./call.ts";
import { Failure } from "./failure.ts";
import { checkWatch } from "./request-checks.ts";
import { VendorApi } from "./vendor-api.ts";
import { instanceOf } from "./vendor-record.ts";
import { limits } from "./world.ts";
import type { World } from "./world.ts";

const heartbeatMs = 1_000;
/** So long the snapshot waits for the first sweeps. */
const snapshotMsMax = 2_000;
/** So many sweeps nobody listens to any more, where a mutant makes them. */
const straySweeps = 8;

export type Send = (message: WatchHealthResponse) => void;

/** Resolves when `signal` aborts. */
export async function watchHealth(
  world: World,
  request: WatchHealthRequest,
  { send, signal }: { readonly send: Send; readonly signal: AbortSignal },
): Promise<void> {
  const { mutations } = world;
  if (!world.capabilities.includes("WATCH_HEALTH") && mutations.has("ends-undeclared-streams"))
    return;
  requireCapability(world, "WATCH_HEALTH");
  const { ownerCluster, targets, held } = request;
  if (!mutations.has("unchecked-watch")) checkWatch(ownerCluster, targets);
  const watches = targets.map((target) => {
    const place = world.accounts.placeOf(target);
    const heldUntilMs = mutations.has("asks-held-places") ? 0 : heldUntilMsOf(held, target);
    return new Watch({ world, ownerCluster, target, place, send, signal, heldUntilMs });
  });
  if (mutations.has("changes-before-snapshot")) send(heartbeatOf(watches));
  const firsts = Promise.all(watches.map((watch) => watch.sweep()));
  await Promise.race([firsts, delay(snapshotMsMax, undefined, { signal }).catch(() => undefined)]);
  const instances = watches.flatMap((watch) => watch.snapshot());
  const isLast = !mutations.has("snapshot-without-end");
  send(
    create(WatchHealthResponseSchema, {
      event: { case: "snapshot", value: { instances, isLast } },
    }),
  );
  const beat = setInterval(() => {
    if (!mutations.has("no-heartbeats")) send(heartbeatOf(watches));
  }, heartbeatMs);
  try {
    await Promise.all(watches.map((watch) => watch.goOn()));
  } finally {
    clearInterval(beat);
  }
}

function heldUntilMsOf(held: WatchHealthRequest["held"], target: Target): number {
  const found = held.find(
    (one) => one.target !== undefined && equals(TargetSchema, one.target, target),
  );
  return found?.until === undefined ? 0 : timestampMs(found.until);
}

function heartbeatOf(watches: readonly Watch[]): WatchHealthResponse {
  const targets = watches.map((watch) => watch.knowledge());
  return create(WatchHealthResponseSchema, { event: { case: "heartbeat", value: { targets } } });
}

interface WatchParts {
  readonly world: World;
  readonly ownerCluster: string;
  readonly target: Target;
  readonly place: Place;
  readonly send: Send;
  readonly signal: AbortSignal;
  /** The caller knows of a vendor that asked for a wait until then, epoch ms. */
  readonly heldUntilMs: number;
}

/** What one stream knows of one target. */
class Watch {
  readonly #parts: WatchParts;
  #known = new Map<string, Instance>();
  #isOpened = false;
  #realm = "";
  #observedAtMs: number | undefined;
  #problem = "";
  #pauseMs: number = limits.sweepIntervalMs;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /** All that is known; from now on changes are sent. */
  snapshot(): readonly Instance[] {
    this.#isOpened = true;
    return [...this.#known.values()];
  }

  async goOn(): Promise<void> {
    const { signal, world } = this.#parts;
    while (!signal.aborted) {
      await delay(this.#pauseMs, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) await this.sweep();
    }
    const strays = world.mutations.has("sweeps-for-nobody") ? straySweeps : 0;
    for (let stray = 0; stray < strays; stray += 1) {
      await delay(limits.sweepIntervalMs / 2);
      await this.sweep(AbortSignal.timeout(limits.readTimeoutMs));
    }
  }

  knowledge(): MessageInitShape<typeof TargetKnowledgeSchema> {
    const { target, world } = this.#parts;
    const seenMs = world.mutations.has("knows-at-all-times") ? Date.now() : this.#observedAtMs;
    return {
      target,
      realm: this.#realm,
      ...(seenMs === undefined ? {} : { observedAt: timestampFromMs(seenMs) }),
      message: this.#problem,
    };
  }

  /** Reads everything once. Never rejects: what goes wrong is knowledge too. */
  async sweep(signal = this.#parts.signal): Promise<void> {
    const { world, place, ownerCluster, heldUntilMs } = this.#parts;
    const startMs = Date.now();
    this.#pauseMs = limits.sweepIntervalMs;
    if (startMs < heldUntilMs) {
      this.#pauseMs = heldUntilMs - startMs;
      this.#problem = "the vendor asked for a wait";
      return;
    }
    try {
      const api = new VendorApi(world, world.accounts.placeOf(this.#parts.target), signal);
      const found = new Map<string, Instance>();
      for (const record of await api.scan()) {
        const isOwn = record.stamp?.cluster === ownerCluster;
        if (!isOwn && !(world.mutations.has("watches-all-owners") && record.stamp)) continue;
        found.set(record.id, instanceOf(world, record, { realm: place.realm, drift: [] }));
      }
      const gone = await this.#confirmGone(api, found);
      this.#realm = place.realm;
      this.#observedAtMs = startMs;
      this.#problem = "";
      this.#learn(found, gone);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      this.#problem = error.message;
      if (error.reason === "THROTTLED") this.#limited(error.facts.retryAfterMs ?? heartbeatMs);
    }
  }

  /** Known before and not listed now: lists lag, so a look by id decides. What stays goes into `found`. */
  async #confirmGone(api: VendorApi, found: Map<string, Instance>): Promise<readonly Instance[]> {
    const gone: Instance[] = [];
    for (const [id, instance] of this.#known) {
      if (found.has(id)) continue;
      const record = await api.read(id);
      if (record === undefined || record.stamp?.short !== instance.stamp) gone.push(instance);
      else found.set(id, instance);
    }
    return this.#parts.world.mutations.has("nothing-is-gone") ? [] : gone;
  }

  #learn(found: Map<string, Instance>, gone: readonly Instance[]): void {
    const changed = [...found].flatMap(([id, instance]) => {
      const before = this.#known.get(id);
      return before !== undefined && this.#isSame(before, instance) ? [] : [instance];
    });
    this.#known = found;
    this.#tell(changed, gone);
  }

  #isSame(before: Instance, now: Instance): boolean {
    const isBlind = this.#parts.world.mutations.has("sees-no-edits");
    const known = isBlind ? { ...now, observed: before.observed } : now;
    return essence(before) === essence(known);
  }

  #limited(retryAfterMs: number): void {
    const { mutations } = this.#parts.world;
    if (!mutations.has("sweeps-through-throttling")) this.#pauseMs = retryAfterMs;
    const rateLimited = {
      $typeName: "dhp.provider.v1.RateLimited" as const,
      until: timestampFromMs(Date.now() + retryAfterMs),
    };
    for (const { health } of this.#known.values()) if (health) health.rateLimited = rateLimited;
    if (!mutations.has("hides-throttling")) this.#tell([...this.#known.values()], []);
  }

  #tell(changed: readonly Instance[], gone: readonly Instance[]): void {
    if (!this.#isOpened || (changed.length === 0 && gone.length === 0)) return;
    if (this.#parts.world.mutations.has("tells-no-changes")) return;
    const value = { changed: [...changed], gone: [...gone] };
    this.#parts.send(create(WatchHealthResponseSchema, { event: { case: "change", value } }));
  }
}

/** What makes a change: all but the time of the look. */
function essence({ state, observed, health, usage }: Instance): string {
  const parts = [
    // Whoever wants something else than what is there now sees a drift.
    observed?.displayName,
    JSON.stringify(Object.entries(observed?.parameters ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))),
    state,
    health?.availability,
    health?.billing,
    health?.message,
    health?.rateLimited !== undefined,
    usage?.concurrency?.used?.toString(),
  ];
  return parts.join("|");
}
