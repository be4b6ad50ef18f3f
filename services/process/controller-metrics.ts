/**
 * What a controller counts: under controller-runtime's and client-go's names where they have one, so
 * that their dashboards work, and dhp_* for the rest. Shaped as the parts that report: each member
 * is handed to one of them.
 */
import type { Metrics } from "./metrics.ts";

export interface ControllerMetricsOptions {
  /** Name of the controller and of its queue. */
  readonly controller: string;
  /** Name of the leader election's Lease. */
  readonly lease: string;
  readonly workersMax: number;
}

/** Numbers in milliseconds come in, seconds go out. */
export interface ControllerMetrics {
  readonly queue: {
    onDepth(priority: string, depth: number): void;
    onAdd(): void;
    onQueueDuration(durationMs: number): void;
    onWorkDuration(durationMs: number): void;
    onRetry(): void;
  };
  /** Makes the two gauges of running work read from the queue at each scrape. */
  readQueue(
    read: () => { readonly unfinishedWorkMs: number; readonly longestRunningMs: number },
  ): void;
  readonly reconcile: {
    onReconcile(run: {
      readonly result: "done" | "requeue" | "error" | "terminal";
      readonly durationMs: number;
    }): void;
    onActiveWorkers(count: number): void;
  };
  readonly connection: {
    onRequest(request: {
      readonly method: string;
      readonly host: string;
      readonly code: string;
    }): void;
    onHandshake(): void;
  };
  readonly watch: {
    onList(list: { readonly how: "stream" | "pages" }): void;
    onEnd(end: { readonly reason: string }): void;
    onDefect(defect: { readonly what: "handler" | "unreadable" }): void;
  };
  readonly events: { onEvent(outcome: "sent" | "merged" | "dropped"): void };
  /** A write to an object of ours or its status; Leases and events are not counted. */
  onWrite(what: "object" | "status"): void;
  onLeadership(isLeader: boolean): void;
  /** Instances of a class that belong to no object, as of the last look. */
  onOrphans(className: string, count: number): void;
  /** Read at each scrape: of each class and quota the highest use among its objects, 1 is all of it. */
  readQuotaUse(read: () => readonly QuotaUse[]): void;
  /** One call of ProviderAPI, as its client saw it. */
  onCall(call: {
    readonly method: string;
    readonly code: string;
    readonly durationMs: number;
  }): void;
  /** `undefined`: the connection is gone for good. */
  onConnectionState(adapter: string, state: ConnectionStateName | undefined): void;
}

export interface QuotaUse {
  readonly className: string;
  /** "calls", "concurrency" or "credits". */
  readonly quota: string;
  readonly share: number;
}

export type ConnectionStateName = keyof typeof connectionStateNumber;

const connectionStateNumber = {
  IDLE: 0,
  CONNECTING: 1,
  READY: 2,
  TRANSIENT_FAILURE: 3,
  SHUTDOWN: 4,
} as const;

const resourceOfWrite = {
  object: "digitalhumanproviders",
  status: "digitalhumanproviders/status",
} as const;

/** Registers everything at zero. Call once a registry. */
export function controllerMetrics(
  metrics: Metrics,
  options: ControllerMetricsOptions,
): ControllerMetrics {
  return {
    ...queueMetrics(metrics, options.controller),
    reconcile: reconcileMetrics(metrics, options),
    ...apiMetrics(metrics),
    ...adapterConnectionMetrics(metrics),
    onLeadership: leadershipMetric(metrics, options.lease),
    onOrphans: orphanMetric(metrics),
    readQuotaUse: quotaMetric(metrics),
  };
}

function orphanMetric(metrics: Metrics): ControllerMetrics["onOrphans"] {
  const orphans = metrics.gauge({
    name: "dhp_orphaned_instances",
    help: "Vendor instances that carry our stamp and belong to no object, by class.",
    labels: { class: [] },
  });
  return (className, count) => orphans.set({ class: className }, count);
}

function quotaMetric(metrics: Metrics): ControllerMetrics["readQuotaUse"] {
  const used = metrics.gauge({
    name: "dhp_quota_used_ratio",
    help: "The highest use of a quota among a class's objects, by class and quota; 1 is all of it.",
    labels: { class: [], quota: [] },
  });
  let told: readonly QuotaUse[] = [];
  return (read) =>
    metrics.onScrape(() => {
      for (const { className, quota } of told) used.remove({ class: className, quota });
      told = read();
      for (const { className, quota, share } of told) used.set({ class: className, quota }, share);
    });
}

function queueMetrics(
  metrics: Metrics,
  name: string,
): Pick<ControllerMetrics, "queue" | "readQueue"> {
  const labels = { name, controller: name };
  const known = { name: [name], controller: [name] };
  const depth = metrics.gauge({
    name: "workqueue_depth",
    help: "Keys that are ready to run, by priority.",
    labels: { ...known, priority: ["deletion", "change", "resync"] },
  });
  const counter = (suffix: string, help: string) =>
    metrics.counter({ name: `workqueue_${suffix}`, help, labels: known });
  const gauge = (suffix: string, help: string) =>
    metrics.gauge({ name: `workqueue_${suffix}`, help, labels: known });
  const histogram = (suffix: string, help: string) =>
    metrics.histogram({ name: `workqueue_${suffix}`, help, labels: known, buckets: queueBuckets });
  const adds = counter("adds_total", "Keys that were added.");
  const retries = counter("retries_total", "Keys that were added again after a failure.");
  const waited = histogram("queue_duration_seconds", "How long a key was ready before it ran.");
  const worked = histogram("work_duration_seconds", "How long the work on a key took.");
  const unfinished = gauge(
    "unfinished_work_seconds",
    "Work that is going on and not yet in work_duration, summed over running keys.",
  );
  const longest = gauge("longest_running_processor_seconds", "Age of the longest running work.");
  return {
    queue: {
      onDepth: (priority, count) => depth.set({ ...labels, priority }, count),
      onAdd: () => adds.add(labels),
      onQueueDuration: (durationMs) => waited.observe(labels, durationMs / 1_000),
      onWorkDuration: (durationMs) => worked.observe(labels, durationMs / 1_000),
      onRetry: () => retries.add(labels),
    },
    readQueue: (read) =>
      metrics.onScrape(() => {
        const { unfinishedWorkMs, longestRunningMs } = read();
        unfinished.set(labels, unfinishedWorkMs / 1_000);
        longest.set(labels, longestRunningMs / 1_000);
      }),
  };
}

const resultOfKind = {
  done: "success",
  requeue: "requeue_after",
  error: "error",
  terminal: "error",
} as const;

function reconcileMetrics(
  metrics: Metrics,
  { controller, workersMax }: ControllerMetricsOptions,
): ControllerMetrics["reconcile"] {
  const known = { controller: [controller] };
  const counter = (suffix: string, help: string) =>
    metrics.counter({ name: `controller_runtime_${suffix}`, help, labels: known });
  const gauge = (suffix: string, help: string) =>
    metrics.gauge({ name: `controller_runtime_${suffix}`, help, labels: known });
  const total = metrics.counter({
    name: "controller_runtime_reconcile_total",
    help: "Reconciles by result.",
    labels: { ...known, result: ["success", "error", "requeue", "requeue_after"] },
  });
  const errors = counter("reconcile_errors_total", "Reconciles that failed.");
  const terminal = counter(
    "terminal_reconcile_errors_total",
    "Reconciles that failed in a way that trying again soon cannot help.",
  );
  const seconds = metrics.histogram({
    name: "controller_runtime_reconcile_time_seconds",
    help: "Length of a reconcile.",
    labels: known,
    buckets: reconcileBuckets,
  });
  const active = gauge("active_workers", "Reconciles that are going on.");
  gauge("max_concurrent_reconciles", "Reconciles that may go on at the same time.").set(
    { controller },
    workersMax,
  );
  return {
    onReconcile: ({ result, durationMs }) => {
      total.add({ controller, result: resultOfKind[result] });
      seconds.observe({ controller }, durationMs / 1_000);
      if (result === "error" || result === "terminal") errors.add({ controller });
      if (result === "terminal") terminal.add({ controller });
    },
    onActiveWorkers: (count) => active.set({ controller }, count),
  };
}

function apiMetrics(
  metrics: Metrics,
): Pick<ControllerMetrics, "connection" | "watch" | "events" | "onWrite"> {
  const requests = metrics.counter({
    name: "rest_client_requests_total",
    help: 'Requests to the API server by HTTP status, or "<error>" where no answer came.',
    labels: { code: [], method: [], host: [] },
  });
  const handshakes = metrics.counter({
    name: "dhp_api_tls_handshakes_total",
    help: "TLS handshakes with the API server; a healthy process makes very few.",
    labels: {},
  });
  const writes = metrics.counter({
    name: "dhp_api_writes_total",
    help: "Writes to objects of our kinds. Settled objects cause none.",
    labels: { resource: Object.values(resourceOfWrite), verb: ["patch"] },
  });
  const lists = metrics.counter({
    name: "dhp_watch_lists_total",
    help: "Collections that were listed, by streaming list or in pages.",
    labels: { how: ["stream", "pages"] },
  });
  const ends = metrics.counter({
    name: "dhp_watch_ends_total",
    help: "Watches that ended: as planned (end), in silence, or on an error.",
    labels: { reason: ["end", "silence"] },
  });
  const defects = metrics.counter({
    name: "dhp_watch_defects_total",
    help: "Watch events whose handler threw, or whose object could not be read.",
    labels: { what: ["handler", "unreadable"] },
  });
  const events = metrics.counter({
    name: "dhp_events_total",
    help: "Kubernetes events: sent, merged into a series, or dropped.",
    labels: { outcome: ["sent", "merged", "dropped"] },
  });
  return {
    connection: {
      onRequest: ({ code, method, host }) => requests.add({ code, method, host }),
      onHandshake: () => handshakes.add({}),
    },
    watch: {
      onList: ({ how }) => lists.add({ how }),
      onEnd: ({ reason }) => ends.add({ reason }),
      onDefect: ({ what }) => defects.add({ what }),
    },
    events: { onEvent: (outcome) => events.add({ outcome }) },
    onWrite: (what) => writes.add({ resource: resourceOfWrite[what], verb: "patch" }),
  };
}

function adapterConnectionMetrics(
  metrics: Metrics,
): Pick<ControllerMetrics, "onCall" | "onConnectionState"> {
  const calls = metrics.counter({
    name: "dhp_provider_calls_total",
    help: "Calls of ProviderAPI by RPC and gRPC code, as the controller saw them.",
    labels: { method: [], code: [] },
  });
  const seconds = metrics.histogram({
    name: "dhp_provider_call_seconds",
    help: "Length of a call of ProviderAPI, connecting included.",
    labels: { method: [] },
    buckets: callBuckets,
  });
  const state = metrics.gauge({
    name: "dhp_adapter_connection_state",
    help: "Connection to an adapter: 0 idle, 1 connecting, 2 ready, 3 failing, 4 closed.",
    labels: { adapter: [] },
  });
  return {
    onCall: ({ method, code, durationMs }) => {
      calls.add({ method, code });
      seconds.observe({ method }, durationMs / 1_000);
    },
    onConnectionState: (adapter, name) => {
      if (name === undefined) state.remove({ adapter });
      else state.set({ adapter }, connectionStateNumber[name]);
    },
  };
}

function leadershipMetric(metrics: Metrics, lease: string): ControllerMetrics["onLeadership"] {
  const leader = metrics.gauge({
    name: "leader_election_master_status",
    help: "1 while this process leads, 0 otherwise.",
    labels: { name: [lease] },
  });
  return (isLeader) => leader.set({ name: lease }, isLeader ? 1 : 0);
}

/** controller-runtime's own. */
const reconcileBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
  1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
/** client-go's: ten to the power of -8 to 3. */
const queueBuckets = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000];
const callBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
