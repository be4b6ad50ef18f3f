/** A real Prometheus, set up as deploy/monitoring says, on a running controller and adapter. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parse } from "yaml";
import { runCommand } from "../../deploy/dev-cluster/command.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { containerOf, deploymentsOf, renderFolder } from "../../deploy/manifest-folders.ts";
import { repositoryFolder } from "../../deploy/manifest-folders.ts";
import { httpGet } from "../support/http-get.ts";
import { startPrometheus } from "../support/prometheus.ts";
import type { Prometheus } from "../support/prometheus.ts";
import { ensurePrometheus } from "../support/prometheus-package.ts";
import { applyDhp, deleteDhp, dhp, untilGone, untilReady } from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

const monitoring = join(repositoryFolder, "deploy/monitoring");
const answerTimeoutMs = 20_000;
let stack: Stack;
let prometheus: Prometheus;

before(async () => {
  stack = await startStack();
  prometheus = await startPrometheus({
    scrapeConfigs: await scrapeConfigs(),
    ruleFiles: [join(monitoring, "rules.yaml")],
  });
});
after(async () => {
  await prometheus?.stop();
  await stack.stop();
});

/**
 * deploy/monitoring/scrape.yaml with the discovery replaced: the pods of the Deployments as
 * Kubernetes would tell of them, each port of each container a target.
 */
async function scrapeConfigs(): Promise<readonly object[]> {
  const text = await readFile(join(monitoring, "scrape.yaml"), "utf8");
  const [{ kubernetes_sd_configs: discovery, ...config }] = parse(text).scrape_configs;
  assert.equal(discovery[0].role, "pod");
  const pods = [
    ...(await podTargets("deploy/controller", stack.controller.ports)),
    ...(await podTargets("adapters/livekit/deploy", stack.adapter.ports)),
  ];
  return [{ ...config, static_configs: pods }];
}

interface Ports {
  readonly adminPort: number;
  readonly grpcPort?: number;
}

async function podTargets(folder: string, { adminPort, grpcPort }: Ports): Promise<object[]> {
  const [deployment] = deploymentsOf(await renderFolder(folder));
  assert.ok(deployment);
  const { labels } = deployment.spec.template.metadata;
  const podLabels = Object.entries(labels).map(([name, value]) => [
    `__meta_kubernetes_pod_label_${name.replaceAll(/[^a-zA-Z0-9_]/g, "_")}`,
    value,
  ]);
  return containerOf(deployment).ports.map(({ name }) => ({
    targets: [`127.0.0.1:${name === "metrics" ? adminPort : grpcPort}`],
    labels: {
      ...Object.fromEntries(podLabels),
      __meta_kubernetes_pod_name: `${deployment.metadata.name}-0`,
      __meta_kubernetes_pod_container_port_name: name,
    },
  }));
}

test("controller and adapter are scraped under their jobs, other ports are not", async () => {
  await eventually(async () => {
    const targets = await prometheus.targets();
    const shown = targets.map(({ labels, health, lastError }) => {
      assert.equal(health, "up", lastError);
      return `${labels["job"]} ${labels["vendor"] ?? ""} ${labels["pod"]}`;
    });
    const expected = [
      "dhp-adapter livekit dhp-adapter-livekit-0",
      "dhp-controller  dhp-controller-0",
    ];
    assert.deepEqual(shown.sort(), expected);
  });
});

test("each query of deploy/monitoring/README.md has an answer", async () => {
  for (const name of ["first", "second"]) {
    await applyDhp(stack.cluster, dhp(name));
    await untilReady(stack.cluster, name);
  }
  await deleteDhp(stack.cluster, "first");
  await untilGone(stack.cluster, "first", 60_000);
  const text = await readFile(join(monitoring, "README.md"), "utf8");
  const queries = [...text.matchAll(/```promql\n(.+?)```/gs)].map((match) => match[1] ?? "");
  assert.ok(queries.length >= 7);
  for (const query of queries) {
    await eventually(async () => {
      const samples = await prometheus.query(query);
      assert.ok(samples.length > 0, `nothing answers ${query}`);
      for (const { value } of samples) assert.ok(Number.isFinite(value), `${value}: ${query}`);
    }, answerTimeoutMs);
  }
});

test("each rule can be evaluated, and each record has a value", async () => {
  await eventually(async () => {
    const rules = await prometheus.rules();
    assert.ok(rules.length > 10);
    for (const { name, health, type } of rules) {
      assert.equal(health, "ok", name);
      if (type === "recording") assert.ok((await prometheus.query(name)).length > 0, name);
    }
  }, answerTimeoutMs);
});

test("each metric that a rule names is there, also those that never rose", async () => {
  const text = await readFile(join(monitoring, "rules.yaml"), "utf8");
  const named = text.match(/\b(dhp|controller_runtime|workqueue)_[a-z_]+(?=[{)[]| *==)/g) ?? [];
  assert.ok(named.length > 10);
  for (const name of new Set(named)) {
    assert.ok((await prometheus.query(name)).length > 0, name);
  }
});

test("nothing is alarmed but the missing spare of the adapter", async () => {
  const alerts = (await prometheus.rules()).filter(({ type }) => type === "alerting");
  const alarmed = alerts.filter(({ state }) => state !== "inactive").map(({ name }) => name);
  assert.deepEqual(alarmed, ["DhpAdapterWithoutSpare"]);
});

test("promtool finds nothing to say about either process's metrics", async () => {
  const { promtool } = await ensurePrometheus();
  for (const { ports } of [stack.controller, stack.adapter]) {
    const { text } = await httpGet(ports.adminPort, "/metrics");
    assert.ok(text.length > 10_000);
    const checked = await runCommand(promtool, ["check", "metrics"], { input: text });
    assert.deepEqual(checked, { code: 0, stdout: "", stderr: "" });
  }
});
