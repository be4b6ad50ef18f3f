import assert from "node:assert/strict";
import { test } from "node:test";

import { adapterMetrics } from "./adapter-metrics.ts";
import { controllerMetrics } from "./controller-metrics.ts";
import { createMetrics } from "./metrics.ts";
import type { Metrics } from "./metrics.ts";

async function linesOf(metrics: Metrics): Promise<readonly string[]> {
  return (await metrics.text()).split("\n");
}

function assertLine(lines: readonly string[], line: string): void {
  const name = line.split(/[{ ]/u)[0] ?? "";
  assert.ok(
    lines.includes(line),
    `${line}\nnot in\n${lines.filter((one) => one.startsWith(name)).join("\n")}`,
  );
}

const controllerOptions = { controller: "dhp", lease: "dhp-controller", workersMax: 8 };

test("a metric is there at zero for each combination of known label values", async () => {
  const metrics = createMetrics();
  metrics.counter({ name: "c_total", help: "c", labels: { a: ["x", "y"], b: ["1", "2"] } });
  metrics.counter({ name: "bare_total", help: "bare", labels: {} });
  metrics.counter({ name: "unknown_total", help: "u", labels: { a: ["x"], b: [] } });
  metrics.gauge({ name: "g", help: "g", labels: { a: ["x"] } });
  metrics.histogram({ name: "h_seconds", help: "h", labels: { a: ["x"] }, buckets: [1, 2] });
  const lines = await linesOf(metrics);
  for (const line of [
    'c_total{a="x",b="1"} 0',
    'c_total{a="y",b="2"} 0',
    "bare_total 0",
    'g{a="x"} 0',
    'h_seconds_bucket{le="+Inf",a="x"} 0',
    'h_seconds_count{a="x"} 0',
    "# TYPE unknown_total counter",
  ]) {
    assertLine(lines, line);
  }
});

test("two registries count apart, and the same name twice in one is a mistake", async () => {
  const one = createMetrics();
  const two = createMetrics();
  const spec = { name: "n_total", help: "n", labels: {} };
  one.counter(spec).add({}, 5);
  two.counter(spec);
  assertLine(await linesOf(one), "n_total 5");
  assertLine(await linesOf(two), "n_total 0");
  assert.throws(() => one.counter(spec));
});

test("gauges that only pretend to be counters are not exposed; process metrics are", async () => {
  const text = await createMetrics().text();
  assert.doesNotMatch(text, /nodejs_active_\w+_total/u);
  for (const name of [
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "nodejs_version_info",
  ]) {
    assert.match(text, new RegExp(`^${name}`, "mu"));
  }
});

test("what is read at the scrape is read at each scrape", async () => {
  const metrics = createMetrics();
  const gauge = metrics.gauge({ name: "g", help: "g", labels: {} });
  let scrapes = 0;
  metrics.onScrape(() => gauge.set({}, (scrapes += 1)));
  await metrics.text();
  assertLine(await linesOf(metrics), "g 2");
});

test("a controller's metrics are there at zero under controller-runtime's names", async () => {
  const metrics = createMetrics();
  controllerMetrics(metrics, controllerOptions);
  const lines = await linesOf(metrics);
  for (const result of ["success", "error", "requeue", "requeue_after"]) {
    assertLine(lines, `controller_runtime_reconcile_total{controller="dhp",result="${result}"} 0`);
  }
  const queue = 'name="dhp",controller="dhp"';
  for (const line of [
    'controller_runtime_reconcile_errors_total{controller="dhp"} 0',
    'controller_runtime_terminal_reconcile_errors_total{controller="dhp"} 0',
    'controller_runtime_reconcile_time_seconds_bucket{le="60",controller="dhp"} 0',
    'controller_runtime_max_concurrent_reconciles{controller="dhp"} 8',
    'controller_runtime_active_workers{controller="dhp"} 0',
    `workqueue_depth{${queue},priority="change"} 0`,
    `workqueue_adds_total{${queue}} 0`,
    `workqueue_retries_total{${queue}} 0`,
    `workqueue_queue_duration_seconds_count{${queue}} 0`,
    `workqueue_work_duration_seconds_count{${queue}} 0`,
    `workqueue_unfinished_work_seconds{${queue}} 0`,
    `workqueue_longest_running_processor_seconds{${queue}} 0`,
    "# TYPE rest_client_requests_total counter",
    "dhp_api_tls_handshakes_total 0",
    'dhp_api_writes_total{resource="digitalhumanproviders",verb="patch"} 0',
    'dhp_api_writes_total{resource="digitalhumanproviders/status",verb="patch"} 0',
    'leader_election_master_status{name="dhp-controller"} 0',
    "# TYPE dhp_adapter_connection_state gauge",
  ]) {
    assertLine(lines, line);
  }
});

test("a controller's reports are counted, in seconds", async () => {
  const metrics = createMetrics();
  const report = controllerMetrics(metrics, controllerOptions);
  for (const result of ["done", "requeue", "error", "terminal"] as const) {
    report.reconcile.onReconcile({ result, durationMs: 1_500 });
  }
  report.queue.onQueueDuration(2_000);
  report.queue.onDepth("deletion", 3);
  report.readQueue(() => ({ unfinishedWorkMs: 4_000, longestRunningMs: 2_500 }));
  report.connection.onRequest({ method: "GET", host: "h:1", code: "200" });
  report.onWrite("status");
  report.onLeadership(true);
  report.onConnectionState("a:1", "READY");
  report.onConnectionState("b:1", "IDLE");
  report.onConnectionState("b:1", undefined);
  report.onCall({ method: "Ensure", code: "OK", durationMs: 20 });
  const lines = await linesOf(metrics);
  const queue = 'name="dhp",controller="dhp"';
  for (const line of [
    'controller_runtime_reconcile_total{controller="dhp",result="success"} 1',
    'controller_runtime_reconcile_total{controller="dhp",result="requeue_after"} 1',
    'controller_runtime_reconcile_total{controller="dhp",result="error"} 2',
    'controller_runtime_reconcile_errors_total{controller="dhp"} 2',
    'controller_runtime_terminal_reconcile_errors_total{controller="dhp"} 1',
    'controller_runtime_reconcile_time_seconds_sum{controller="dhp"} 6',
    `workqueue_queue_duration_seconds_sum{${queue}} 2`,
    `workqueue_depth{${queue},priority="deletion"} 3`,
    `workqueue_unfinished_work_seconds{${queue}} 4`,
    `workqueue_longest_running_processor_seconds{${queue}} 2.5`,
    'rest_client_requests_total{code="200",method="GET",host="h:1"} 1',
    'dhp_api_writes_total{resource="digitalhumanproviders/status",verb="patch"} 1',
    'leader_election_master_status{name="dhp-controller"} 1',
    'dhp_adapter_connection_state{adapter="a:1"} 2',
    'dhp_provider_calls_total{method="Ensure",code="OK"} 1',
  ]) {
    assertLine(lines, line);
  }
  assert.ok(!lines.some((line) => line.includes("b:1")));
});

test("an adapter's metrics are there at zero and count", async () => {
  const metrics = createMetrics();
  const circuits = [{ account: "main", endpoint: "https://v" }];
  const report = adapterMetrics(metrics, { accounts: ["main"], circuits });
  const zero = await linesOf(metrics);
  for (const line of [
    'dhp_adapter_rpc_total{method="Ensure",code="OK"} 0',
    'dhp_adapter_rpc_total{method="Delete",code="NOT_FOUND"} 0',
    'dhp_adapter_rpc_seconds_count{method="List"} 0',
    'dhp_vendor_request_total{operation="read",account="main",code="OK"} 0',
    'dhp_vendor_request_total{operation="write",account="main",code="THROTTLED"} 0',
    'dhp_vendor_request_seconds_count{operation="read",account="main"} 0',
    'dhp_vendor_circuit_state{account="main",endpoint="https://v",operation="write"} 0',
  ]) {
    assertLine(zero, line);
  }
  report.onCall({ method: "Ensure", code: "OK", durationMs: 250 });
  report.vendor.requestEnded({
    account: "main",
    kind: "read",
    result: "THROTTLED",
    durationMs: 30,
  });
  report.vendor.circuitChanged({ account: "main", endpoint: "https://v", kind: "write" }, "open");
  const lines = await linesOf(metrics);
  for (const line of [
    'dhp_adapter_rpc_total{method="Ensure",code="OK"} 1',
    'dhp_adapter_rpc_seconds_sum{method="Ensure"} 0.25',
    'dhp_vendor_request_total{operation="read",account="main",code="THROTTLED"} 1',
    'dhp_vendor_circuit_state{account="main",endpoint="https://v",operation="write"} 2',
  ]) {
    assertLine(lines, line);
  }
});
