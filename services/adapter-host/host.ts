/**
 * ProviderAPI over an Adapter: the order of things that no vendor team writes. Each RPC is checked,
 * its realm found, its key taken where it may change something; every error says what failed, where,
 * for which instance, and what it did to the vendor.
 */
import type { MessageShape } from "@bufbuild/protobuf";

import type { ListRequestSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../contract/provider-error.ts";
import type { CallContext, ProviderHandlers } from "../contract/provider-handlers.ts";
import type { Clock } from "../process/clock.ts";
import type { Log } from "../process/log.ts";
import type { AddressRules } from "../vendor-http/allow-list.ts";
import type { VendorGateway } from "../vendor-http/http-client.ts";
import type { Accounts } from "./accounts.ts";
import type { Adapter, CapabilityName, FoundInstance } from "./adapter.ts";
import { CallSite } from "./call-site.ts";
import { describe } from "./describe.ts";
import { ensure } from "./ensure.ts";
import { Flights } from "./flights.ts";
import { HealthDesk } from "./health/health-desk.ts";
import type { ObserveSweep } from "./health/target-watch.ts";
import { list } from "./list.ts";
import type { ListQuestion } from "./list.ts";
import { ListProofs } from "./list-proofs.ts";
import { defaultLocateLimits } from "./locate.ts";
import { parameterChecker } from "./parameter-schema.ts";
import { providerInfo } from "./provider-info.ts";
import { deleteInstance, releaseInstance } from "./remove.ts";
import {
  checkEnsure,
  checkInstance,
  checkRemoval,
  checkTarget,
  checkWantedSpec,
  limits,
  Mistakes,
  refuse,
} from "./request-checks.ts";
import type { CheckContext, CheckedTarget, InstanceQuestion } from "./request-checks.ts";
import { Run } from "./run.ts";
import type { PollAfterMs, SettleOptions } from "./run.ts";

export interface HostOptions {
  readonly buildVersion: string;
  /** Subtracted from not_after for clocks that differ. */
  readonly clockSkewMs: number;
  readonly sweepIntervalMs: number;
  readonly allowsPlainLoopback: boolean;
  readonly allowedNetworks: AddressRules;
  readonly busyRetryMs: number;
  readonly aftermathsMax: number;
  readonly pollAfterMs: PollAfterMs;
  readonly settle: SettleOptions;
}

export interface HostContext {
  readonly adapter: Adapter;
  readonly accounts: Accounts;
  readonly gateway: VendorGateway;
  readonly options: HostOptions;
  readonly clock: Clock;
  readonly log: Log;
  /** Told of each sweep that WatchHealth makes. */
  readonly onSweep?: ObserveSweep;
  /** 0 to 1, for jitter; Math.random when absent. */
  readonly random?: () => number;
}

/** The numbers of `HostOptions` that an operator has no reason to change. */
export const defaultHostTimes = {
  clockSkewMs: 500,
  sweepIntervalMs: 3_000,
  busyRetryMs: 1_000,
  aftermathsMax: 10_000,
  pollAfterMs: {
    byState: {
      PROVISIONING: 2_000,
      READY: undefined,
      AWAITING_HUMAN: 30_000,
      FAILED: undefined,
      DELETING: 2_000,
    },
    deleting: 2_000,
    inDoubt: 2_000,
  },
  settle: { waitMsMax: 3_000, stepMs: 500 },
} as const satisfies Partial<HostOptions>;

export interface AdapterHost {
  readonly handlers: ProviderHandlers;
  /** Resolves when no change is in flight any more, also those whose caller has left. */
  idle(signal: AbortSignal): Promise<void>;
}

/** See the file comment. Throws when the adapter contradicts itself or its schema is unsound. */
export function createHost(context: HostContext): AdapterHost {
  requireConsistent(context.adapter);
  const host = new Host(context);
  return {
    handlers: {
      getProviderInfo: async () => providerInfo(context.adapter.info, context.options),
      ensure: (request, call) => host.ensure(request, call),
      describe: (request, call) => host.describe(request, call),
      list: (request, call) => host.list(request, call),
      delete: (request, call) => host.delete(request, call),
      release: (request, call) => host.release(request, call),
      ...(context.adapter.info.capabilities.includes("WATCH_HEALTH")
        ? { watchHealth: (request, call) => host.watchHealth(request, call) }
        : {}),
    },
    idle: (signal) => host.idle(signal),
  };
}

type Handlers = Required<ProviderHandlers>;
type Ask<Name extends keyof Handlers> = Parameters<Handlers[Name]>[0];
type Answer<Name extends keyof Handlers> = ReturnType<Handlers[Name]>;

/** A hung mutation delays the reading of whole lists, and the reverse, by no more than this. */
const listHoldMsMax = 2_000;
const pageSizeDefault = 100;
const pageSizeMax = 1000;

class Host {
  readonly #context: HostContext;
  readonly #checks: CheckContext;
  readonly #flights: Flights;
  readonly #proofs: ListProofs<readonly FoundInstance[]>;
  readonly #health: HealthDesk;

  constructor(context: HostContext) {
    const { adapter, accounts, clock, options } = context;
    this.#context = context;
    this.#checks = {
      info: adapter.info,
      accounts,
      checkParameters: parameterChecker(adapter.info.parameterSchema),
      allowsPlainLoopback: options.allowsPlainLoopback,
      allowedNetworks: options.allowedNetworks,
    };
    this.#flights = new Flights(clock, options);
    this.#proofs = new ListProofs({ clock, holdMsMax: listHoldMsMax });
    this.#health = new HealthDesk({
      adapter,
      clock,
      random: context.random ?? Math.random,
      log: context.log,
      sweepIntervalMs: options.sweepIntervalMs,
      read: async (target, signal, reads) => {
        const place = await checkTarget(target, this.#checks);
        const { callsPerSecond = adapter.info.callsPerSecond } = place.account;
        return this.#site(place, { signal }, undefined).read((call) => reads(call, callsPerSecond));
      },
      observe: context.onSweep ?? (() => undefined),
    });
  }

  async ensure(request: Ask<"ensure">, call: CallContext): Answer<"ensure"> {
    return this.#explain(`ensure "${request.instanceKey}"`, request.target, async () => {
      const question = await checkEnsure(request, this.#checks);
      const site = this.#site(question, call, question.notAfterMs);
      // Validating holds no key: it changes nothing, and may be asked while a change is in flight.
      const work = (run: Run): Answer<"ensure"> => ensure(run, question);
      if (question.isValidateOnly) return work(await this.#run(site, question));
      return this.#change(site, { question, call }, work);
    });
  }

  async describe(request: Ask<"describe">, call: CallContext): Answer<"describe"> {
    return this.#explain(`describe "${request.instanceKey}"`, request.target, async () => {
      const question = await checkInstance(request, this.#checks);
      const wanted = request.spec && checkWantedSpec(request.spec, this.#checks);
      const run = await this.#run(this.#site(question, call, undefined), question);
      return describe(run, question, wanted);
    });
  }

  async list(request: Ask<"list">, call: CallContext): Answer<"list"> {
    return this.#explain("list instances", request.target, async () => {
      const question = await this.#checkList(request);
      const site = this.#site(question, call, undefined);
      return list(await this.#run(site, { ...question, ...noInstance }), question);
    });
  }

  async delete(request: Ask<"delete">, call: CallContext): Answer<"delete"> {
    return this.#explain(`delete "${request.instanceKey}"`, request.target, async () => {
      const question = await checkRemoval(request, this.#checks);
      const site = this.#site(question, call, question.notAfterMs);
      return this.#change(site, { question, call }, (run) => deleteInstance(run, question));
    });
  }

  async release(request: Ask<"release">, call: CallContext): Answer<"release"> {
    return this.#explain(`release "${request.instanceKey}"`, request.target, async () => {
      const question = await checkRemoval(request, this.#checks);
      const site = this.#site(question, call, question.notAfterMs);
      return this.#change(site, { question, call }, (run) => releaseInstance(run, question));
    });
  }

  watchHealth(request: Ask<"watchHealth">, call: CallContext): Answer<"watchHealth"> {
    return this.#health.watch(request, call);
  }

  idle(signal: AbortSignal): Promise<void> {
    return this.#flights.idle(signal);
  }

  /** Runs what may change an instance, alone on its key; errors carry the whole call's outcome. */
  async #change<T>(
    site: CallSite,
    asked: { readonly question: InstanceQuestion; readonly call: CallContext },
    work: (run: Run) => Promise<T>,
  ): Promise<T> {
    const run = await this.#run(site, asked.question);
    const caller = { signal: asked.call.signal, isCommitted: () => site.isCommitted };
    return this.#flights.run(run.flightKey, caller, async () => {
      try {
        return await work(run);
      } catch (error) {
        if (error instanceof ProviderError) throw run.conclude(error);
        throw error;
      }
    });
  }

  /** Finds the realm, which is a read, and refuses a record that means another one. */
  async #run(
    site: CallSite,
    asked: Pick<InstanceQuestion, "key" | "recorded" | "target">,
  ): Promise<Run> {
    const { adapter, clock, log, options } = this.#context;
    const { key, recorded } = asked;
    const realm = await site.read((call) => adapter.realm(call));
    if (recorded.realm !== "" && recorded.realm !== realm) {
      throw new ProviderError("WRONG_REALM", `recorded in ${recorded.realm}, asked in ${realm}`, {
        realm,
        preconditions: [
          { type: "REALM", subject: realm, description: `the record says ${recorded.realm}` },
        ],
      });
    }
    return new Run({
      adapter,
      site,
      realm,
      flightKey: JSON.stringify([realm, key]),
      flights: this.#flights,
      clock,
      log: log.child({ key, account: asked.target.account }),
      pollAfterMs: options.pollAfterMs,
      lists: { realm, limits: defaultLocateLimits, proofs: this.#proofs },
      settle: options.settle,
    });
  }

  #site(
    place: CheckedTarget,
    call: Pick<CallContext, "signal">,
    notAfterMs: number | undefined,
  ): CallSite {
    const { adapter, accounts, gateway, clock, options } = this.#context;
    const { clockSkewMs } = options;
    const context = { adapter, accounts, gateway, clock, clockSkewMs };
    return new CallSite(context, place, call, notAfterMs);
  }

  async #checkList(request: MessageShape<typeof ListRequestSchema>): Promise<ListQuestion> {
    const { ownerCluster, pageSize, pageToken } = request;
    const mistakes = new Mistakes();
    if (pageSize < 0) mistakes.add("page_size", "is negative");
    const token = { bytesMax: limits.pageTokenBytesMax, mayBeEmpty: true };
    mistakes.text("page_token", pageToken, token);
    if (ownerCluster !== undefined) {
      mistakes.text("owner_cluster", ownerCluster, { bytesMax: limits.clusterBytesMax });
    }
    refuse(mistakes);
    const target = await checkTarget(request.target, this.#checks);
    const size = Math.min(pageSize === 0 ? pageSizeDefault : pageSize, pageSizeMax);
    return { ...target, ownerCluster, pageSize: size, pageToken };
  }

  /**
   * Puts before an error what was to be done and where. An error from before the first step of a
   * change has touched nothing, and says so.
   */
  async #explain<T>(
    what: string,
    target: { readonly endpoint: string } | undefined,
    work: () => Promise<T>,
  ): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ProviderError) || error.reason === undefined) throw error;
      const { name } = this.#context.adapter.info;
      const host = hostOf(target?.endpoint ?? "");
      const message = `cannot ${what} at ${name} ${host}: ${error.message}`;
      const { code, facts, reason } = error;
      const outcome = facts.outcome ?? "NOT_APPLIED";
      throw new ProviderError(reason, message, { ...facts, code, outcome, cause: error });
    }
  }
}

/** What an adapter says it can do is what it has code for. */
function requireConsistent({ info, update, release }: Adapter): void {
  const can = (name: CapabilityName): boolean => info.capabilities.includes(name);
  const mistakes = [
    can("UPDATE") === (update !== undefined) ? "" : "UPDATE goes with update()",
    can("RELEASE") === (release !== undefined) ? "" : "RELEASE goes with release()",
    !can("ADOPT") || update !== undefined ? "" : "ADOPT needs update()",
  ].filter((mistake) => mistake !== "");
  if (mistakes.length > 0) throw new Error(`adapter ${info.name}: ${mistakes.join("; ")}`);
}

const noInstance = { key: "", recorded: { providerId: "", realm: "" } } as const;

/** Not the endpoint as it came: one that was refused may carry a password. */
function hostOf(endpoint: string): string {
  return URL.canParse(endpoint) ? new URL(endpoint).host : "(no endpoint)";
}
