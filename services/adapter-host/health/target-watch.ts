/**
 * What is known of one place (endpoint, region, account), kept up by a loop of sweeps that runs only
 * while somebody listens. Shared by all streams that name the place.
 */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import { HealthSchema, RateLimitedSchema } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { ProviderError } from "../../contract/provider-error.ts";
import type { Clock } from "../../process/clock.ts";
import type { Log } from "../../process/log.ts";
import { redactText } from "../../process/redaction.ts";
import type { Adapter, FoundInstance, VendorCall } from "../adapter.ts";
import { instanceMessage } from "../instance-message.ts";
import { readUnlisted, sweep } from "./sweep.ts";
import type { KnownInstance, SweepLimits } from "./sweep.ts";
import { factsOf, nextSweepMs, retrySweepMs, wordsOf } from "./sweep-pace.ts";
import type { AccountFacts, PaceOptions } from "./sweep-pace.ts";

/** What a stream is told. */
export interface TargetListener {
  changed(instance: Instance): void;
  /** As it was last seen. */
  gone(instance: Instance): void;
}

export interface TargetKnowledge {
  /** Empty: never reached. */
  readonly realm: string;
  /** When the last sweep that went well began, epoch ms; undefined: never. */
  readonly observedAtMs: number | undefined;
  /** Why it is old; empty: it is not. */
  readonly message: string;
}

/** Told of each sweep's end. */
export type ObserveSweep = (sweep: {
  readonly account: string;
  /** OK or a reason. */
  readonly result: string;
  readonly durationMs: number;
  readonly instances: number;
}) => void;

/** @param callsPerSecond that the account allows; undefined: not known */
export type Reads<T> = (call: VendorCall, callsPerSecond: number | undefined) => Promise<T>;

export interface TargetWatchParts {
  readonly adapter: Adapter;
  readonly account: string;
  /** Runs reads at the place; checks it anew each time, since accounts may have changed. */
  readonly read: <T>(signal: AbortSignal, reads: Reads<T>) => Promise<T>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly pace: PaceOptions;
  readonly limits: SweepLimits;
  /** A sweep that takes longer is given up. */
  readonly sweepTimeoutMs: number;
  readonly observe: ObserveSweep;
}

/** No wait that a caller tells of is believed beyond this. */
const holdMsMax = 3_600_000;
/** The part of an account's calls that reading one by one may take. */
const rotationShare = 0.25;
const rotationReadsDefault = 10;
/** And the part of the interval after which a sweep reads no further ones. */
const readingShare = 0.5;

interface Shown {
  readonly known: KnownInstance;
  /** All that the message is made of, but the time: equal means no news. */
  readonly fingerprint: string;
  readonly message: Instance;
}

export class TargetWatch {
  readonly #parts: TargetWatchParts;
  readonly #listeners = new Set<TargetListener>();
  #shown = new Map<string, Shown>();
  #realm = "";
  #observedAtMs: number | undefined;
  #message = "not looked at yet";
  #facts: AccountFacts = {};
  #stop: AbortController | undefined;
  #firstLook = Promise.withResolvers<void>();
  #heldUntilMs = 0;

  constructor(parts: TargetWatchParts) {
    this.#parts = parts;
  }

  /** Starts the loop with the first listener; the returned function ends it with the last. */
  listen(listener: TargetListener): () => void {
    this.#listeners.add(listener);
    if (this.#stop === undefined) this.#start();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#stop?.abort();
      this.#stop = undefined;
    };
  }

  /**
   * The vendor has asked somebody to be left alone until then, epoch ms. Once the loop runs it knows
   * better itself.
   */
  hold(untilMs: number): void {
    if (this.#stop === undefined) this.#heldUntilMs = untilMs;
  }

  /** True while nobody listens: the host may forget it. */
  get isIdle(): boolean {
    return this.#listeners.size === 0;
  }

  /** Resolves when the first sweep since somebody listens has ended, well or not. */
  get firstLook(): Promise<void> {
    return this.#firstLook.promise;
  }

  get knowledge(): TargetKnowledge {
    return { realm: this.#realm, observedAtMs: this.#observedAtMs, message: this.#message };
  }

  /** All that is known, of every owner. */
  instances(): readonly Instance[] {
    const atMs = this.#observedAtMs;
    return [...this.#shown.values()].map(({ message }) => {
      // Messages are made anew only with news; how fresh they are is said when they are asked for.
      if (message.health !== undefined && atMs !== undefined) {
        message.health.observedAt = timestampFromMs(atMs);
      }
      return message;
    });
  }

  #start(): void {
    const stop = new AbortController();
    this.#stop = stop;
    this.#firstLook = Promise.withResolvers<void>();
    this.#loop(stop.signal).catch((error: unknown) => {
      // A bug; what is known grows old, and the age says so.
      this.#parts.log.error({ error }, "the sweep loop ended");
      this.#message = "the sweep loop ended; see the adapter's log";
    });
  }

  async #loop(signal: AbortSignal): Promise<void> {
    const { clock, pace, random } = this.#parts;
    let failures = 0;
    await this.#waitForHold(signal);
    while (!signal.aborted) {
      const startMs = clock.monotonicMs();
      const error = await this.#sweepOnce(signal);
      if (signal.aborted) return;
      this.#firstLook.resolve();
      failures = error === undefined ? 0 : failures + 1;
      const tookMs = clock.monotonicMs() - startMs;
      const waitMs =
        error === undefined
          ? nextSweepMs(pace, tookMs, random())
          : retrySweepMs(pace, asProviderError(error), failures);
      await clock.sleep(waitMs, signal).catch(() => undefined);
    }
  }

  async #waitForHold(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    const nowMs = clock.now();
    const untilMs = Math.min(this.#heldUntilMs, nowMs + holdMsMax);
    if (untilMs <= nowMs) return;
    const until = new Date(untilMs).toISOString();
    this.#facts = { rateLimited: { untilMs } };
    this.#message = `not looked at yet: the vendor asked for a wait until ${until}`;
    this.#firstLook.resolve();
    await clock.sleep(untilMs - nowMs, signal).catch(() => undefined);
  }

  /** The error that ended it; undefined: it went well. */
  async #sweepOnce(signal: AbortSignal): Promise<Error | undefined> {
    const { adapter, account, clock, limits, log, observe, pace } = this.#parts;
    const beganAtMs = clock.now();
    const startMs = clock.monotonicMs();
    const end = (result: string): void => {
      const durationMs = clock.monotonicMs() - startMs;
      observe({ account, result, durationMs, instances: this.#shown.size });
    };
    try {
      const before = new Map([...this.#shown].map(([id, { known }]) => [id, known]));
      await this.#within(signal, async (call, callsPerSecond) => {
        const realm = await adapter.realm(call);
        const isMoved = this.#realm !== "" && this.#realm !== realm;
        const found = await sweep(adapter, call, isMoved ? new Map() : before, limits);
        if (signal.aborted) return;
        this.#realm = realm;
        this.#facts = {};
        this.#observedAtMs = beganAtMs;
        this.#message = "";
        this.#show(found.instances, found.gone);
        if (adapter.info.listsLackFields !== true) return;
        // What the lists say is told, and must not grow old while what they lack is read.
        const isLate = (): boolean =>
          clock.monotonicMs() - startMs > pace.intervalMs * readingShare;
        const readsMax = rotationReadsOf(callsPerSecond, pace.intervalMs);
        const read = await readUnlisted(adapter, call, found.instances, { readsMax, isLate });
        if (!signal.aborted) this.#show(read.instances, read.gone);
      });
      if (signal.aborted) return undefined;
      end("OK");
      return undefined;
    } catch (error) {
      if (signal.aborted) return undefined;
      const failure = error instanceof Error ? error : new Error(String(error));
      const known = asProviderError(failure);
      if (known === undefined) log.warn({ error: failure, account }, "a sweep failed");
      this.#facts = { ...this.#facts, ...factsOf(known, clock.now()) };
      this.#message = redactText(wordsOf(failure));
      this.#show(new Map([...this.#shown].map(([id, { known: one }]) => [id, one])), []);
      end(known?.reason ?? "INTERNAL");
      return failure;
    }
  }

  async #within<T>(signal: AbortSignal, reads: Reads<T>): Promise<T> {
    const { clock, read, sweepTimeoutMs } = this.#parts;
    const late = new AbortController();
    const words = `the sweep took longer than ${sweepTimeoutMs} ms`;
    const timer = clock.setTimer(sweepTimeoutMs, () =>
      late.abort(new ProviderError("VENDOR_TIMEOUT", words)),
    );
    try {
      return await read(AbortSignal.any([signal, late.signal]), reads);
    } finally {
      timer.cancel();
    }
  }

  /** Puts what is known into messages, and tells of those that differ from before. */
  #show(instances: ReadonlyMap<string, KnownInstance>, gone: readonly FoundInstance[]): void {
    const shown = new Map<string, Shown>();
    const changed: Instance[] = [];
    for (const [id, known] of instances) {
      const before = this.#shown.get(id);
      const fingerprint = JSON.stringify([this.#realm, known.found, this.#facts]);
      if (before?.fingerprint === fingerprint) {
        shown.set(id, { ...before, known });
        continue;
      }
      const message = this.#messageOf(known.found);
      shown.set(id, { known, fingerprint, message });
      changed.push(message);
    }
    const lost = gone.map((found) => this.#shown.get(found.id)?.message ?? this.#messageOf(found));
    this.#shown = shown;
    for (const listener of this.#listeners) {
      for (const instance of changed) listener.changed(instance);
      for (const instance of lost) listener.gone(instance);
    }
  }

  #messageOf(found: FoundInstance): Instance {
    const { clock } = this.#parts;
    const { rateLimited, billing } = this.#facts;
    const nowMs = this.#observedAtMs ?? clock.now();
    const instance = instanceMessage(billing === undefined ? found : { ...found, billing }, {
      realm: this.#realm,
      nowMs,
    });
    if (rateLimited === undefined) return instance;
    const until = rateLimited.untilMs;
    const limited = until === undefined ? {} : { until: timestampFromMs(until) };
    instance.health ??= create(HealthSchema);
    instance.health.rateLimited = create(RateLimitedSchema, limited);
    return instance;
  }
}

/** How many instances one sweep may read one by one. */
function rotationReadsOf(callsPerSecond: number | undefined, sweepIntervalMs: number): number {
  if (callsPerSecond === undefined) return rotationReadsDefault;
  return Math.max(1, Math.floor((callsPerSecond * rotationShare * sweepIntervalMs) / 1_000));
}

function asProviderError(error: Error): ProviderError | undefined {
  return error instanceof ProviderError ? error : undefined;
}
