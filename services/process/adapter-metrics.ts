/** What an adapter counts. Shaped as the parts that report: each member is handed to one of them. */
import { codeOfReason, reasons } from "../contract/provider-error.ts";
import type { Metrics } from "./metrics.ts";

export interface AdapterMetricsOptions {
  /** Names of the accounts in the credential file. */
  readonly accounts: readonly string[];
  /** Circuits that are known before their first request. */
  readonly circuits?: readonly { readonly account: string; readonly endpoint: string }[];
}

/** Numbers in milliseconds come in, seconds go out. */
export interface AdapterMetrics {
  /** One call of ProviderAPI, as its server saw it. */
  onCall(call: {
    readonly method: string;
    readonly code: string;
    readonly durationMs: number;
  }): void;
  /** One look at all instances of a place, for WatchHealth; `result`: an error's reason, or OK. */
  sweepEnded(sweep: {
    readonly account: string;
    readonly result: string;
    readonly durationMs: number;
    readonly instances: number;
  }): void;
  readonly vendor: {
    /** `result`: an error's reason, or OK. */
    requestEnded(request: {
      readonly account: string;
      readonly kind: "read" | "write";
      readonly result: string;
      readonly durationMs: number;
    }): void;
    circuitChanged(
      circuit: {
        readonly account: string;
        readonly endpoint: string;
        readonly kind: "read" | "write";
      },
      state: keyof typeof circuitStateNumber,
    ): void;
  };
}

const circuitStateNumber = { closed: 0, "half-open": 1, open: 2 } as const;
const operations = ["read", "write"] as const;
const rpcs = ["GetProviderInfo", "Ensure", "Describe", "List", "Delete", "Release", "WatchHealth"];
const rpcCodes = ["OK", "CANCELLED", "INTERNAL", ...new Set(Object.values(codeOfReason))];
const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Registers everything at zero. Call once a registry. */
export function adapterMetrics(metrics: Metrics, options: AdapterMetricsOptions): AdapterMetrics {
  return {
    onCall: rpcMetrics(metrics),
    sweepEnded: sweepMetrics(metrics, options),
    vendor: vendorMetrics(metrics, options),
  };
}

function sweepMetrics(
  metrics: Metrics,
  { accounts }: AdapterMetricsOptions,
): AdapterMetrics["sweepEnded"] {
  const total = metrics.counter({
    name: "dhp_adapter_sweeps_total",
    help: "Looks at all instances of a place for WatchHealth; code is OK or an error's reason.",
    labels: { account: accounts, code: ["OK", "INTERNAL", ...reasons] },
  });
  const seconds = metrics.histogram({
    name: "dhp_adapter_sweep_seconds",
    help: "Length of one look at all instances of a place.",
    labels: { account: accounts },
    buckets: secondsBuckets,
  });
  const instances = metrics.gauge({
    name: "dhp_adapter_sweep_instances",
    help: "Stamped instances that the last look at a place of the account knew.",
    labels: { account: accounts },
  });
  for (const account of accounts) instances.set({ account }, 0);
  return ({ account, result, durationMs, instances: count }) => {
    total.add({ account, code: result });
    seconds.observe({ account }, durationMs / 1_000);
    instances.set({ account }, count);
  };
}

function rpcMetrics(metrics: Metrics): AdapterMetrics["onCall"] {
  const total = metrics.counter({
    name: "dhp_adapter_rpc_total",
    help: "Calls of ProviderAPI that were answered, by RPC and gRPC code.",
    labels: { method: rpcs, code: rpcCodes },
  });
  const seconds = metrics.histogram({
    name: "dhp_adapter_rpc_seconds",
    help: "Length of a call of ProviderAPI; of WatchHealth, how long its stream lasted.",
    labels: { method: rpcs },
    buckets: secondsBuckets,
  });
  return ({ method, code, durationMs }) => {
    total.add({ method, code });
    seconds.observe({ method }, durationMs / 1_000);
  };
}

function vendorMetrics(metrics: Metrics, options: AdapterMetricsOptions): AdapterMetrics["vendor"] {
  const { accounts, circuits = [] } = options;
  const total = metrics.counter({
    name: "dhp_vendor_request_total",
    help: "Requests to the vendor; code is OK or the reason of the error that came of it.",
    labels: { operation: operations, account: accounts, code: ["OK", ...reasons] },
  });
  const seconds = metrics.histogram({
    name: "dhp_vendor_request_seconds",
    help: "Length of a request to the vendor.",
    labels: { operation: operations, account: accounts },
    buckets: secondsBuckets,
  });
  const circuit = metrics.gauge({
    name: "dhp_vendor_circuit_state",
    help: "Circuit breaker: 0 closed, 1 half-open, 2 open.",
    labels: { account: [], endpoint: [], operation: [] },
  });
  for (const { account, endpoint } of circuits) {
    for (const operation of operations) circuit.set({ account, endpoint, operation }, 0);
  }
  return {
    requestEnded: ({ account, kind, result, durationMs }) => {
      total.add({ operation: kind, account, code: result });
      seconds.observe({ operation: kind, account }, durationMs / 1_000);
    },
    circuitChanged: ({ account, endpoint, kind }, state) =>
      circuit.set({ account, endpoint, operation: kind }, circuitStateNumber[state]),
  };
}
