/**
 * The whole way of an answer in one process: ElevenLabs' emulator over HTTPS, the adapter and its
 * host, gRPC over a real connection, the real Reconciler, and objects in memory. What came over the
 * wire is kept, so that both halves of a failure can be looked at: the error, and the conditions.
 */
import assert from "node:assert/strict";
import { Bench, target } from "../../adapters/elevenlabs/test-bench.ts";
import type { BenchOptions } from "../../adapters/elevenlabs/test-bench.ts";
import { Providers } from "../../controller/providers/providers.ts";
import { DeletionBudget } from "../../controller/reconcile/deletion-budget.ts";
import { DoubtLedger } from "../../controller/reconcile/doubt.ts";
import { InheritedDoubt } from "../../controller/reconcile/inherited-doubt.ts";
import { Memories } from "../../controller/reconcile/memory.ts";
import { Reconciler } from "../../controller/reconcile/reconciler.ts";
import type { ReconcileResult } from "../../controller/reconcile/reconciler.ts";
import type { ReconcilerOptions } from "../../controller/reconcile/reconciler-parts.ts";
import { conditionOf } from "../../controller/resource/digital-human-provider.ts";
import type { Condition } from "../../controller/resource/digital-human-provider.ts";
import { parseProviderClass } from "../../controller/resource/provider-class.ts";
import { connectProvider } from "../../services/contract/client.ts";
import type { ProviderClient, UnaryCall } from "../../services/contract/provider-client.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { ProviderHandlers } from "../../services/contract/provider-handlers.ts";
import { serveProvider } from "../../services/contract/server.ts";
import type { ProviderServer } from "../../services/contract/server.ts";
import { systemClock } from "../../services/process/clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { MemoryObjects } from "./memory-objects.ts";

export interface LineOptions extends BenchOptions {
  /** Other handlers than the host's own: an older or newer adapter. */
  readonly handlers?: (host: ProviderHandlers) => ProviderHandlers;
  /** The class's; "default" when absent. */
  readonly account?: string;
  /** How long a mutation may still begin after it was sent. */
  readonly fencingMs?: number;
  readonly schedule?: Partial<ReconcilerOptions>;
  /** 0 to 1; 0.5 when absent, which spreads nothing. */
  readonly random?: () => number;
}

/** As the controller's options have them. */
const schedule: ReconcilerOptions = {
  resyncMs: 600_000,
  reprobeMs: 300_000,
  backOffMsMin: 500,
  backOffMsMax: 300_000,
  pollMs: 2_000,
  callDeadlineMs: 30_000,
};
const fencingMsDefault = 6_000;
const forced = "dhp.example.com/reconcile-requested-at";

export class VendorLine {
  readonly bench: Bench;
  readonly objects: MemoryObjects;
  readonly server: ProviderServer;
  /** Errors as they came out of the gRPC client, oldest first. */
  readonly errors: ProviderError[] = [];
  readonly #client: ProviderClient;
  readonly #reconciler: Reconciler;
  #passes = 0;

  private constructor(bench: Bench, server: ProviderServer, options: LineOptions) {
    this.bench = bench;
    this.server = server;
    this.objects = new MemoryObjects([classTo(server, options)]);
    const address = addressOf(server);
    this.#client = this.#recording(connectProvider({ address, log: silentLog }));
    this.#reconciler = this.#reconcilerWith(options);
  }

  static async start(options: LineOptions = {}): Promise<VendorLine> {
    const bench = await Bench.start(options);
    const { handlers } = bench.host;
    const server = await serveProvider({
      handlers: options.handlers?.(handlers) ?? handlers,
      host: "127.0.0.1",
      port: 0,
      log: silentLog,
    });
    return new VendorLine(bench, server, options);
  }

  /** A user applies an object; its key. */
  apply(name: string, spec: Readonly<Record<string, unknown>> = {}): string {
    const { endpoint, region } = target();
    return this.objects.create(name, { endpoint, region, className: "elevenlabs", ...spec });
  }

  /** One pass over an object. */
  pass(key: string): Promise<ReconcileResult> {
    return this.#reconciler.reconcile(key, new AbortController().signal);
  }

  /** One pass that reads the vendor again, whatever is remembered. */
  async forcedPass(key: string): Promise<ReconcileResult> {
    this.#passes += 1;
    this.objects.annotate(key, { [forced]: `pass ${this.#passes}` });
    return this.pass(key);
  }

  condition(key: string, type: string): Condition {
    const object = this.objects.get(key);
    const condition = object && conditionOf(object.status, type);
    assert.ok(condition, `"${key}" has no condition ${type}`);
    return condition;
  }

  async stop(): Promise<void> {
    this.#client.close();
    await this.server.close();
    await this.bench.stop();
  }

  #reconcilerWith({ clock = systemClock, fencingMs, random, ...options }: LineOptions): Reconciler {
    const doubts = new DoubtLedger();
    return new Reconciler({
      objects: this.objects.asSeenByController(),
      providers: new Providers({
        connect: () => this.#client,
        clock,
        infoDeadlineMs: 5_000,
        infoMaxAgeMs: 0,
      }),
      doubts,
      deletions: new DeletionBudget(),
      inherited: new InheritedDoubt(doubts),
      memories: new Memories(),
      identity: { fleet: "fleet", cluster: "cluster-1" },
      clock,
      random: random ?? (() => 0.5),
      log: silentLog,
      options: { ...schedule, ...options.schedule },
      certainUntilMs: () => clock.now() + (fencingMs ?? fencingMsDefault),
    });
  }

  #recording(client: ProviderClient): ProviderClient {
    const recorded =
      <Request, Response>(call: UnaryCall<Request, Response>): UnaryCall<Request, Response> =>
      async (request, options) => {
        try {
          return await call(request, options);
        } catch (error) {
          if (error instanceof ProviderError) this.errors.push(error);
          throw error;
        }
      };
    return {
      ...client,
      getProviderInfo: recorded(client.getProviderInfo),
      ensure: recorded(client.ensure),
      describe: recorded(client.describe),
      delete: recorded(client.delete),
      release: recorded(client.release),
    };
  }
}

function addressOf(server: ProviderServer): string {
  return `127.0.0.1:${server.port}`;
}

function classTo(
  server: ProviderServer,
  { account = "default" }: LineOptions,
): ReturnType<typeof parseProviderClass> {
  return parseProviderClass({
    metadata: { name: "elevenlabs", uid: "class-1", generation: 1 },
    spec: { adapter: { address: addressOf(server) }, account },
  });
}
