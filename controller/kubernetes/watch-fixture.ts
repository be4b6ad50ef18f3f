import { systemClock } from "../../services/process/clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { CountingConnection } from "./counting-connection.ts";
import { FakeApiServer } from "./fake-api-server.ts";
import type { FakeCall } from "./fake-api-server.ts";
import { FakeCollection } from "./fake-collection.ts";
import type { WatchEvent } from "./object-cache.ts";
import type { RawObject } from "./raw-object.ts";
import { Watch } from "./watch.ts";
import type { WatchOptions } from "./watch-options.ts";

/** For tests: a watch over a scripted API server, with everything it told. */
export class WatchFixture {
  readonly server: FakeApiServer;
  readonly collection = new FakeCollection();
  readonly connection: CountingConnection;
  readonly watch: Watch<RawObject>;
  /** Events as "kind key", oldest first. */
  readonly told: string[] = [];
  readonly events: WatchEvent<RawObject>[] = [];
  /** How the collection was listed, each time. */
  readonly lists: string[] = [];
  /** Why watches ended, each time. */
  readonly ends: string[] = [];
  readonly defects: string[] = [];
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  private constructor(server: FakeApiServer, options: Partial<WatchOptions<RawObject>>) {
    this.server = server;
    server.handler = this.collection.handler;
    this.connection = new CountingConnection(server.kubeconfig, { pingIntervalMs: 500 });
    this.watch = new Watch<RawObject>({
      connection: this.connection,
      path: this.collection.path,
      parse: (raw) => raw,
      onEvent: (event) => {
        this.events.push(event);
        this.told.push(`${event.kind} ${event.key}`);
      },
      clock: systemClock,
      random: Math.random,
      log: silentLog,
      metrics: {
        onList: ({ how }) => this.lists.push(how),
        onEnd: ({ reason }) => this.ends.push(reason),
        onDefect: ({ what }) => this.defects.push(what),
      },
      ...options,
      // Short enough that a test of a time limit takes no time worth mentioning.
      limits: { retryMsMin: 5, retryMsMax: 40, unknownResourceRetryMs: 20, ...options.limits },
    });
  }

  static async create(options: Partial<WatchOptions<RawObject>> = {}): Promise<WatchFixture> {
    return new WatchFixture(await FakeApiServer.start(), options);
  }

  run(): void {
    this.#running = this.watch.run(this.#stopping.signal);
  }

  /** Runs until the first list is in the cache. */
  async sync(): Promise<void> {
    this.run();
    await this.watch.whenSynced(AbortSignal.timeout(5_000));
  }

  /** Answers the next `times` calls that `isMeant` accepts in the collection's place. */
  failNext(
    times: number,
    answer: (call: FakeCall) => void,
    isMeant: (call: FakeCall) => boolean = () => true,
  ): void {
    let left = times;
    this.collection.fault = (call) => {
      if (left === 0 || !isMeant(call)) return false;
      left -= 1;
      answer(call);
      return true;
    };
  }

  /** Names in the cache, sorted. */
  get names(): string[] {
    return this.watch
      .keys()
      .map((key) => key.replace("default/", ""))
      .toSorted();
  }

  /** Queries of all list and watch requests so far. */
  get queries(): URLSearchParams[] {
    return this.server.calls.map(({ query }) => query);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.connection.close();
    await this.server.stop();
  }
}

export function isStreamingList({ query }: FakeCall): boolean {
  return query.has("sendInitialEvents");
}

/** A watch from a version, as opposed to one that begins with a list. */
export function isPlainWatch(call: FakeCall): boolean {
  return call.query.get("watch") === "true" && !isStreamingList(call);
}
