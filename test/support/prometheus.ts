/** A real Prometheus on the loopback address, which scrapes processes of a test. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChild } from "../../deploy/dev-cluster/child-process.ts";
import type { RunningChild } from "../../deploy/dev-cluster/child-process.ts";
import { readDevClusterOptions } from "../../deploy/dev-cluster/dev-cluster-options.ts";
import { findFreeTcpPort } from "../../deploy/dev-cluster/free-port.ts";
import { httpGet } from "./http-get.ts";
import { ensurePrometheus } from "./prometheus-package.ts";

const attemptsMax = 5;
const startTimeoutMs = 30_000;

export interface PrometheusOptions {
  /** As in Prometheus's own configuration. */
  readonly scrapeConfigs: readonly object[];
  readonly ruleFiles?: readonly string[];
  /** Also the interval of rules; 1 s when absent. */
  readonly scrapeInterval?: string;
}

/** One series of an instant query's answer. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  /** NaN and infinities included. */
  readonly value: number;
}

/** What is scraped, as it is after relabelling. */
export interface Target {
  readonly labels: Readonly<Record<string, string>>;
  readonly health: "up" | "down" | "unknown";
  readonly lastError: string;
}

export interface Rule {
  readonly name: string;
  readonly type: "recording" | "alerting";
  readonly health: "ok" | "err" | "unknown";
  /** Of an alert alone. */
  readonly state?: "inactive" | "pending" | "firing";
}

export interface Prometheus {
  /** Instant query, now. Rejects when Prometheus finds a mistake in it. */
  query(expression: string): Promise<readonly Sample[]>;
  targets(): Promise<readonly Target[]>;
  /** All rules that were loaded, with how their last evaluation went. */
  rules(): Promise<readonly Rule[]>;
  stop(): Promise<void>;
}

export async function startPrometheus(options: PrometheusOptions): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), "dhp-prometheus-"));
  const config = join(folder, "prometheus.json");
  await writeFile(config, JSON.stringify(configOf(options)));
  const { port, child } = await launch(folder, config);
  const get = async (path: string) => {
    const answer = await httpGet(port, path);
    assert.equal(answer.status, 200, answer.text);
    return JSON.parse(answer.text).data;
  };
  return {
    query: async (expression) => samplesOf(await get(queryPath(expression))),
    targets: async () => {
      const { activeTargets }: { activeTargets: Target[] } = await get("/api/v1/targets");
      return activeTargets;
    },
    rules: async () => {
      const { groups }: { groups: { rules: Rule[] }[] } = await get("/api/v1/rules");
      return groups.flatMap(({ rules }) => rules);
    },
    stop: async () => {
      await child.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function queryPath(expression: string): string {
  return `/api/v1/query?${new URLSearchParams({ query: expression }).toString()}`;
}

/** JSON is YAML. */
function configOf({
  scrapeConfigs,
  ruleFiles = [],
  scrapeInterval = "1s",
}: PrometheusOptions): object {
  return {
    global: { scrape_interval: scrapeInterval, evaluation_interval: scrapeInterval },
    rule_files: ruleFiles,
    scrape_configs: scrapeConfigs,
  };
}

interface Launched {
  readonly port: number;
  readonly child: RunningChild;
}

/** It says its port only in its log: so it is given a free one, and another if that was taken. */
async function launch(folder: string, config: string): Promise<Launched> {
  const { prometheus } = await ensurePrometheus();
  for (let attempt = 1; ; attempt += 1) {
    const port = await findFreeTcpPort();
    try {
      const child = await startChild({
        name: "prometheus",
        program: prometheus,
        args: [
          `--config.file=${config}`,
          `--storage.tsdb.path=${join(folder, "data")}`,
          "--storage.tsdb.retention.time=1h",
          `--web.listen-address=127.0.0.1:${port}`,
        ],
        cwd: folder,
        environment: readDevClusterOptions().environment,
        readiness: { kind: "probe", probe: () => isReady(port) },
        startTimeoutMs,
      });
      return { port, child };
    } catch (cause) {
      if (attempt >= attemptsMax) throw cause;
    }
  }
}

async function isReady(port: number): Promise<boolean> {
  try {
    return (await httpGet(port, "/-/ready")).status === 200;
  } catch {
    // Not listening yet: the starter's deadline ends the asking.
    return false;
  }
}

interface QueryData {
  readonly resultType: string;
  readonly result: readonly {
    readonly metric: Readonly<Record<string, string>>;
    readonly value: readonly [number, string];
  }[];
}

function samplesOf({ resultType, result }: QueryData): readonly Sample[] {
  assert.equal(resultType, "vector");
  return result.map(({ metric, value }) => ({ labels: metric, value: numberOf(value[1]) }));
}

function numberOf(text: string): number {
  if (text.endsWith("Inf")) return text.startsWith("-") ? -Infinity : Infinity;
  return Number(text);
}
