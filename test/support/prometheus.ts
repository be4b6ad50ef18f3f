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

export interface ScrapeTarget {
  readonly job: string;
  /** On the loopback address. */
  readonly port: number;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface PrometheusOptions {
  readonly targets: readonly ScrapeTarget[];
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

export interface Prometheus {
  /** Instant query, now. Rejects when Prometheus finds a mistake in it. */
  query(expression: string): Promise<readonly Sample[]>;
  /** Health ("up", "down", "unknown") by job. */
  targets(): Promise<ReadonlyMap<string, string>>;
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
      const { activeTargets }: Targets = await get("/api/v1/targets");
      return new Map(activeTargets.map(({ labels, health }) => [labels["job"] ?? "", health]));
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
function configOf({ targets, ruleFiles = [], scrapeInterval = "1s" }: PrometheusOptions): object {
  return {
    global: { scrape_interval: scrapeInterval, evaluation_interval: scrapeInterval },
    rule_files: ruleFiles,
    scrape_configs: targets.map(({ job, port, labels = {} }) => ({
      job_name: job,
      static_configs: [{ targets: [`127.0.0.1:${port}`], labels }],
    })),
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

interface Targets {
  readonly activeTargets: readonly {
    readonly labels: Readonly<Record<string, string>>;
    readonly health: string;
  }[];
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
