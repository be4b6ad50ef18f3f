/**
 * One RPC's access to its vendor: calls for reading, and mutations, each with the checks that come
 * right before the bytes leave, and with an account of what they did.
 */
import { ProviderError } from "../contract/provider-error.ts";
import type { MutationEffect } from "../contract/provider-error.ts";
import type { CallContext } from "../contract/provider-handlers.ts";
import type { Clock } from "../process/clock.ts";
import type { VendorGateway } from "../vendor-http/http-client.ts";
import { MutationLedger } from "../vendor-http/mutation-ledger.ts";
import type { Accounts } from "./accounts.ts";
import type { Adapter, VendorCall } from "./adapter.ts";
import type { CheckedTarget } from "./request-checks.ts";

/** What every call site of a process shares. */
export interface SiteContext {
  readonly adapter: Adapter;
  readonly accounts: Accounts;
  readonly gateway: VendorGateway;
  readonly clock: Clock;
  /** Subtracted from not_after for clocks that differ. */
  readonly clockSkewMs: number;
}

/** See the file comment. */
export class CallSite {
  readonly #context: SiteContext;
  readonly #place: CheckedTarget;
  readonly #signal: AbortSignal;
  readonly #notAfterMs: number | undefined;
  #isCommitted = false;

  constructor(
    context: SiteContext,
    place: CheckedTarget,
    caller: Pick<CallContext, "signal">,
    notAfterMs: number | undefined,
  ) {
    this.#context = context;
    this.#place = place;
    this.#signal = caller.signal;
    this.#notAfterMs = notAfterMs;
  }

  /** True once a mutation was sent: the caller can no longer call anything back. */
  get isCommitted(): boolean {
    return this.#isCommitted;
  }

  /** Throws TOO_LATE when not_after is missing or has passed, less the skew allowance. */
  requireInTime(): void {
    const { clock, clockSkewMs } = this.#context;
    const leftMs = (this.#notAfterMs ?? -Infinity) - clockSkewMs - clock.now();
    if (leftMs > 0) return;
    const what = this.#notAfterMs === undefined ? "is missing" : "has passed";
    throw new ProviderError("TOO_LATE", `not_after ${what}`, { outcome: "NOT_APPLIED" });
  }

  /**
   * Runs reads. Before a mutation they end with the caller; after one they go on without the caller,
   * since what was sent has to be understood.
   */
  async read<T>(reads: (call: VendorCall) => Promise<T>): Promise<T> {
    if (!this.#isCommitted) return reads(await this.#call(this.#signal, new MutationLedger()));
    return this.#within((signal) => this.#callAndRun(signal, new MutationLedger(), reads));
  }

  /**
   * Runs one mutating primitive to the vendor's mutation deadline. A ProviderError that it throws
   * leaves here with the outcome of all requests that the primitive made.
   */
  async mutate<T>(primitive: (call: VendorCall) => Promise<T>): Promise<T> {
    this.requireInTime();
    const ledger = new MutationLedger();
    try {
      return await this.#within((signal) => this.#callAndRun(signal, ledger, primitive));
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      throw error.withOutcome(outcomeOf(error, ledger));
    }
  }

  async #callAndRun<T>(
    signal: AbortSignal,
    ledger: MutationLedger,
    work: (call: VendorCall) => Promise<T>,
  ): Promise<T> {
    return work(await this.#call(signal, ledger));
  }

  /** Credentials are read anew for each call: they may have been rotated. */
  async #call(signal: AbortSignal, ledger: MutationLedger): Promise<VendorCall> {
    const { adapter, accounts, gateway } = this.#context;
    const { account, endpoint, target } = this.#place;
    const callsPerSecond = account.callsPerSecond ?? adapter.info.callsPerSecond;
    const http = gateway.bind({
      account: account.name,
      endpoint,
      ...(callsPerSecond === undefined ? {} : { callsPerSecond }),
      classify: (response) => adapter.classify(response),
      // Until something was sent the caller may still call off what this call is about to do.
      signal: this.#isCommitted ? signal : this.#signal,
      mutationDeadlineMs: adapter.info.mutationDeadlineMs,
      ledger,
      beforeMutation: () => {
        // A primitive of several requests that has begun is brought to its end.
        if (!ledger.isSent) this.requireInTime();
        this.#isCommitted = true;
      },
    });
    return { target, credential: await accounts.credentialOf(account), http, signal };
  }

  /** Runs `work` with a signal that aborts at the vendor's mutation deadline. */
  async #within<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, adapter } = this.#context;
    const deadline = new AbortController();
    const timer = clock.setTimer(adapter.info.mutationDeadlineMs, () =>
      deadline.abort(new Error("the vendor's mutation deadline has passed")),
    );
    try {
      return await work(deadline.signal);
    } finally {
      timer.cancel();
    }
  }
}

/** An error that makes no statement of its own, or claims less than the ledger knows, is corrected. */
function outcomeOf(error: ProviderError, ledger: MutationLedger): MutationEffect {
  if (!ledger.isSent) return "NOT_APPLIED";
  const said = error.facts.outcome ?? "UNKNOWN";
  return said === "NOT_APPLIED" ? ledger.outcomeOfFailure : said;
}
