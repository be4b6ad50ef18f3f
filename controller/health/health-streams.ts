/**
 * The health streams of a term: one for each adapter (more where it has very many places), opened for
 * the places in use, opened anew when those change or when it breaks. What comes goes to the book.
 */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import { WatchHealthRequestSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { ProviderClient } from "../../services/contract/provider-client.ts";
import type { Clock } from "../../services/process/clock.ts";
import type { Log } from "../../services/process/log.ts";
import { backOffMs } from "../queue/back-off.ts";
import type { HealthBook } from "./health-book.ts";
import { placeIdOf } from "./health-book.ts";
import type { HealthSession, WatchedPlace } from "./place-knowledge.ts";

export interface HealthStreamsParts {
  readonly book: Pick<HealthBook, "apply" | "lost" | "unsupported">;
  /** The adapter's client; undefined: it serves no WatchHealth. Rejects while it cannot be asked. */
  readonly connect: (
    place: WatchedPlace,
  ) => Promise<Pick<ProviderClient, "watchHealth"> | undefined>;
  /** Whose instances. */
  readonly ownerCluster: string;
  /** Until when its vendor asked to be left alone, epoch ms; 0: it did not. */
  readonly heldUntilMs: (place: WatchedPlace) => number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** As many as one question may name. */
const placesMax = 1_000;
const backOff = { minMs: 200, maxMs: 2_000 };
/** A stream that says nothing for so long is dead: heartbeats come each 2 s at least. */
const silenceMsMax = 5_000;
/** An adapter that serves no WatchHealth may be upgraded: it is asked again after this. */
const unsupportedMs = 60_000;

interface RunningStream {
  /** Names its places: another set is another stream. */
  readonly question: string;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

export class HealthStreams {
  readonly #parts: HealthStreamsParts;
  readonly #running = new Map<string, RunningStream>();

  constructor(parts: HealthStreamsParts) {
    this.#parts = parts;
  }

  /** Makes the streams be for these places. */
  follow(places: ReadonlyMap<string, readonly WatchedPlace[]>): void {
    const wanted = new Map<string, readonly WatchedPlace[]>();
    for (const [adapter, all] of places) {
      const sorted = [...all].sort((a, b) => (placeIdOf(a) < placeIdOf(b) ? -1 : 1));
      for (let at = 0; at < sorted.length; at += placesMax) {
        wanted.set(`${adapter} ${at}`, sorted.slice(at, at + placesMax));
      }
    }
    for (const [name, { question, stop }] of this.#running) {
      if (questionOf(wanted.get(name) ?? []) === question) continue;
      stop.abort();
      this.#running.delete(name);
    }
    for (const [name, group] of wanted) if (!this.#running.has(name)) this.#start(name, group);
  }

  async stop(): Promise<void> {
    const streams = [...this.#running.values()];
    this.#running.clear();
    for (const { stop } of streams) stop.abort();
    await Promise.all(streams.map(({ ended }) => ended));
  }

  #start(name: string, places: readonly WatchedPlace[]): void {
    const stop = new AbortController();
    const ended = this.#run(places, stop.signal).catch((error: unknown) => {
      this.#parts.log.error({ error }, "a health stream's loop ended");
    });
    this.#running.set(name, { question: questionOf(places), stop, ended });
  }

  async #run(places: readonly WatchedPlace[], signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#parts;
    for (let failures = 0; !signal.aborted;) {
      const session: HealthSession = { places };
      const end = await this.#listen(session, signal);
      if (signal.aborted) return;
      failures = end === "broken-at-once" ? failures + 1 : 1;
      const waitMs = end === "unsupported" ? unsupportedMs : backOffMs(backOff, failures, random);
      await clock.sleep(waitMs, signal).catch(() => undefined);
    }
  }

  async #listen(
    session: HealthSession,
    signal: AbortSignal,
  ): Promise<"unsupported" | "broken" | "broken-at-once"> {
    const { book, connect, log } = this.#parts;
    const [first] = session.places;
    if (first === undefined) return "unsupported";
    let hasHeard = false;
    try {
      const client = await connect(first);
      if (client === undefined) {
        book.unsupported(session);
        return "unsupported";
      }
      for await (const message of this.#messages(client, session, signal)) {
        hasHeard = true;
        book.apply(session, message);
      }
    } catch (error) {
      if (!signal.aborted) {
        const { address } = first;
        log.warn({ error, address, places: session.places.length }, "a health stream broke");
      }
    }
    if (!signal.aborted) book.lost(session);
    return hasHeard ? "broken" : "broken-at-once";
  }

  /** Ends with an error when nothing comes for too long. */
  async *#messages(
    client: Pick<ProviderClient, "watchHealth">,
    { places }: HealthSession,
    signal: AbortSignal,
  ): ReturnType<ProviderClient["watchHealth"]> extends AsyncIterable<infer Message>
    ? AsyncGenerator<Message, void, undefined>
    : never {
    const { clock, ownerCluster, heldUntilMs } = this.#parts;
    const held = places.flatMap((place) => {
      const untilMs = heldUntilMs(place);
      if (untilMs <= clock.now()) return [];
      return [{ target: targetOf(place), until: timestampFromMs(untilMs) }];
    });
    const targets = places.map(targetOf);
    const request = create(WatchHealthRequestSchema, { ownerCluster, targets, held });
    const silent = new AbortController();
    const hush = (): void => silent.abort(new Error(`nothing came for ${silenceMsMax} ms`));
    let timer = clock.setTimer(silenceMsMax, hush);
    try {
      const either = AbortSignal.any([signal, silent.signal]);
      for await (const message of client.watchHealth(request, either)) {
        timer.cancel();
        yield message;
        timer = clock.setTimer(silenceMsMax, hush);
      }
      silent.signal.throwIfAborted();
    } finally {
      timer.cancel();
    }
  }
}

function targetOf({ endpoint, region, account }: WatchedPlace): {
  endpoint: string;
  region: string;
  account: string;
} {
  return { endpoint, region, account };
}

function questionOf(places: readonly WatchedPlace[]): string {
  return places.map(placeIdOf).join("\n");
}
