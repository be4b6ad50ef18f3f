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
  return { onCall: rpcMetrics(metrics), vendor: vendorMetrics(metrics, options) };
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
