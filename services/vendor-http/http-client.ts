/**
 * VendorHttp over the wire: budget, breaker, limits, errors in our words, and for mutations what
 * happened at the vendor. One gateway a process; each primitive gets a VendorHttp bound to its scope.
 */
import { ProviderError } from "../contract/provider-error.ts";
import type { Clock } from "../process/clock.ts";
import type { AddressRules } from "./allow-list.ts";
import { isVendorsFault, judgeAnswer, judgeWireError } from "./answer-judgement.ts";
import { Breakers } from "./breaker.ts";
import type { BreakerOptions, CircuitName, CircuitState, Ticket } from "./breaker.ts";
import { CallBudget } from "./call-budget.ts";
import type { ConnectTo } from "./connect-to.ts";
import { InFlightShare } from "./in-flight-share.ts";
import type { MutationLedger } from "./mutation-ledger.ts";
import { retryAfterMs } from "./retry-hints.ts";
import type { VendorHttp, VendorRequest, VendorResponse } from "./vendor-http.ts";
import { Wire } from "./wire.ts";
import type { WireAnswer, WireOptions } from "./wire.ts";

/** What the gateway tells its metrics. Results: an error's reason, or OK. */
export interface VendorMetrics {
  requestEnded(request: {
    readonly account: string;
    readonly kind: "read" | "write";
    readonly result: string;
    readonly durationMs: number;
  }): void;
  circuitChanged(name: CircuitName, state: CircuitState): void;
}

export interface GatewayOptions {
  readonly wire: WireOptions;
  readonly breaker: BreakerOptions;
  /** A read's whole time, waiting for a connection included. */
  readonly readTimeoutMs: number;
  /** A caller who leaves earlier says nothing about the vendor; later, the vendor was too slow. */
  readonly patienceMs: number;
  /** Requests in flight per account: one hung account cannot take the others' connections. */
  readonly inFlightPerAccountMax: number;
  /** Longest wait for room among them. */
  readonly shareWaitMsMax: number;
  /** Longest wait for a turn in the account's call budget. */
  readonly budgetWaitMsMax: number;
  /** What THROTTLED says where the vendor gives no hint. */
  readonly throttledRetryMs: number;
}

export interface GatewayContext {
  readonly clock: Clock;
  readonly options: GatewayOptions;
  readonly addresses: AddressRules;
  readonly connectTo: ConnectTo;
  readonly metrics: VendorMetrics;
}

/** Whom one VendorHttp speaks for, and until when. */
export interface HttpScope {
  readonly account: string;
  /** As `checkEndpoint` returned it. */
  readonly endpoint: URL;
  /** The account's own limit; absent: none. */
  readonly callsPerSecond?: number;
  readonly classify: (response: VendorResponse) => ProviderError | undefined;
  /** The caller's: ends reads, and mutations as long as none was sent. */
  readonly signal: AbortSignal;
  /** Time for one mutation, from its call to its answer. */
  readonly mutationDeadlineMs: number;
  readonly ledger: MutationLedger;
  /** Called right before each mutation is written; throws when it may not be (TOO_LATE). */
  readonly beforeMutation: () => void;
}

/** See the file comment. */
export class VendorGateway {
  readonly #context: GatewayContext;
  readonly #wire: Wire;
  readonly #breakers: Breakers;
  readonly #budgets = new Map<string, { callsPerSecond: number; budget: CallBudget }>();
  /** By account: as many as the accounts file names. */
  readonly #shares = new Map<string, InFlightShare>();

  constructor(context: GatewayContext) {
    this.#context = context;
    const { clock, options, addresses, metrics } = context;
    this.#wire = new Wire(options.wire, addresses, clock);
    this.#breakers = new Breakers({
      clock,
      options: options.breaker,
      onStateChange: (name, state) => metrics.circuitChanged(name, state),
    });
  }

  /** Requests of one primitive. */
  bind(scope: HttpScope): VendorHttp {
    return { send: (request) => this.#send(scope, request) };
  }

  /** Ends connections and timers; requests in flight fail. */
  async close(): Promise<void> {
    this.#breakers.shutdown();
    await this.#wire.close();
  }

  async #send(scope: HttpScope, request: VendorRequest): Promise<VendorResponse> {
    const { clock, metrics } = this.#context;
    const startMs = clock.monotonicMs();
    const kind = request.isMutation ? "write" : "read";
    let result = "OK";
    try {
      return await this.#sendWithinLimits(scope, request, kind);
    } catch (error) {
      result = error instanceof ProviderError ? (error.reason ?? error.code) : "BUG";
      throw error;
    } finally {
      const durationMs = clock.monotonicMs() - startMs;
      metrics.requestEnded({ account: scope.account, kind, result, durationMs });
    }
  }

  async #sendWithinLimits(
    scope: HttpScope,
    request: VendorRequest,
    kind: "read" | "write",
  ): Promise<VendorResponse> {
    const endpoint = scope.endpoint.origin + basePath(scope.endpoint);
    await this.#takeTurn(scope);
    const leave = await this.#enter(scope);
    try {
      const ticket = this.#breakers.get({ account: scope.account, endpoint, kind }).admit();
      try {
        return await this.#exchange(scope, request, ticket);
      } finally {
        // For whatever went wrong before a verdict was reached.
        await ticket.settle("none");
      }
    } finally {
      leave();
    }
  }

  async #exchange(
    scope: HttpScope,
    request: VendorRequest,
    ticket: Ticket,
  ): Promise<VendorResponse> {
    const { clock, options } = this.#context;
    const startMs = clock.monotonicMs();
    const { isMutation } = request;
    const { origin } = scope.endpoint;
    let answer: WireAnswer;
    try {
      answer = await this.#wire.exchange({
        ...this.#address(scope.endpoint, request),
        method: request.method,
        body: bodyOf(request.body),
        answerBytesMax: request.answerBytesMax,
        totalMs: isMutation ? scope.mutationDeadlineMs : options.readTimeoutMs,
        // Once a mutation of this primitive was sent, the caller can call nothing back.
        signal: scope.ledger.isSent ? neverAborted : scope.signal,
        isDetachedOnceSent: isMutation,
        onSending: () => {
          if (!isMutation) return;
          scope.beforeMutation();
          scope.ledger.noteSent();
        },
      });
    } catch (wireError) {
      const wasPatient = clock.monotonicMs() - startMs >= options.patienceMs;
      const { error, verdict } = judgeWireError(wireError, { origin, isMutation, wasPatient });
      await ticket.settle(verdict);
      throw error;
    }
    const response = responseOf(answer, clock.now());
    const { throttledRetryMs } = options;
    const context = { origin, request, classify: scope.classify, throttledRetryMs };
    const error = judgeAnswer(response, context);
    if (isMutation) scope.ledger.noteOutcome(error === undefined ? "APPLIED" : error.outcome);
    if (error === undefined) await ticket.settle("success");
    else if (isVendorsFault(error)) await ticket.settle("failure");
    if (error !== undefined) throw error;
    return response;
  }

  #address(
    endpoint: URL,
    request: VendorRequest,
  ): { origin: string; path: string; headers: Record<string, string> } {
    if (!request.path.startsWith("/")) throw new Error(`path must begin with "/": ${request.path}`);
    const query = new URLSearchParams(request.query).toString();
    const path = `${basePath(endpoint)}${request.path}${query === "" ? "" : `?${query}`}`;
    const headers: Record<string, string> = { accept: "application/json" };
    if (typeof request.body === "object") headers["content-type"] = "application/json";
    for (const [name, value] of Object.entries(request.headers ?? {})) {
      headers[name.toLowerCase()] = value;
    }
    headers["accept-encoding"] = "identity";
    const actual = this.#context.connectTo.get(endpoint.origin);
    if (actual !== undefined) headers["host"] = endpoint.host;
    return { origin: actual ?? endpoint.origin, path, headers };
  }

  async #takeTurn(scope: HttpScope): Promise<void> {
    const { account, callsPerSecond, signal } = scope;
    if (callsPerSecond === undefined) return;
    const known = this.#budgets.get(account);
    const { clock, options } = this.#context;
    const isSame = known?.callsPerSecond === callsPerSecond;
    const budget = isSame
      ? known.budget
      : new CallBudget(clock, { callsPerSecond, waitMsMax: options.budgetWaitMsMax });
    // Accounts are as many as the accounts file names: no other limit is needed.
    if (!isSame) this.#budgets.set(account, { callsPerSecond, budget });
    await orGivenUp("the account's call budget", () =>
      budget.take(scope.ledger.isSent ? neverAborted : signal),
    );
  }

  async #enter({ account, ledger, signal }: HttpScope): Promise<() => void> {
    const { clock, options } = this.#context;
    const { inFlightPerAccountMax: inFlightMax, shareWaitMsMax: waitMsMax } = options;
    const share = this.#shares.get(account) ?? new InFlightShare(clock, { inFlightMax, waitMsMax });
    this.#shares.set(account, share);
    return orGivenUp("room among the account's requests", () =>
      share.enter(ledger.isSent ? neverAborted : signal),
    );
  }
}

/** A caller who left while waiting here: nothing was sent. */
async function orGivenUp<T>(what: string, wait: () => Promise<T>): Promise<T> {
  try {
    return await wait();
  } catch (error) {
    if (error instanceof ProviderError) throw error;
    throw new ProviderError("VENDOR_TIMEOUT", `gave up waiting for ${what}`, {
      outcome: "NOT_APPLIED",
      cause: error,
    });
  }
}

const neverAborted = new AbortController().signal;

/** The endpoint's path without a slash at its end. */
function basePath(endpoint: URL): string {
  return endpoint.pathname.replace(/\/+$/, "");
}

function bodyOf(body: unknown): string | undefined {
  return body === undefined || typeof body === "string" ? body : JSON.stringify(body);
}

function responseOf(answer: WireAnswer, nowMs: number): VendorResponse {
  const { status, headers, text } = answer;
  return {
    status,
    headers,
    text,
    json: parseJson(text),
    retryAfterMs: retryAfterMs(headers, status >= 400 ? text : "", nowMs),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (_notJson) {
    // Whether that is a fault is for the judgement of the answer to say.
    return undefined;
  }
}

export const defaultGatewayOptions: Omit<GatewayOptions, "wire" | "breaker"> = {
  readTimeoutMs: 10_000,
  patienceMs: 2_000,
  inFlightPerAccountMax: 100,
  shareWaitMsMax: 2_000,
  budgetWaitMsMax: 2_000,
  throttledRetryMs: 5_000,
};
