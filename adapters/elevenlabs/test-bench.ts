/** The adapter behind the host's handlers, over HTTPS to the emulator; for this folder's tests. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { openAccounts } from "../../services/adapter-host/accounts.ts";
import { createHost, defaultHostTimes } from "../../services/adapter-host/host.ts";
import type { AdapterHost } from "../../services/adapter-host/host.ts";
import type { Adapter } from "../../services/adapter-host/adapter.ts";
import { Asker } from "../../services/adapter-host/test-host.ts";
import { adapterMetrics } from "../../services/process/adapter-metrics.ts";
import { systemClock } from "../../services/process/clock.ts";
import type { Clock } from "../../services/process/clock.ts";
import { createLog } from "../../services/process/log.ts";
import { createMetrics } from "../../services/process/metrics.ts";
import { addressRules } from "../../services/vendor-http/allow-list.ts";
import { defaultBreakerOptions } from "../../services/vendor-http/breaker.ts";
import type { BreakerOptions } from "../../services/vendor-http/breaker.ts";
import { defaultGatewayOptions, VendorGateway } from "../../services/vendor-http/http-client.ts";
import { defaultWireOptions } from "../../services/vendor-http/wire.ts";
import { createElevenLabsAdapter } from "./adapter.ts";
import { emulatorApiKey, startEmulator } from "./emulator.ts";
import type { Emulator } from "./emulator.ts";
import { apiHosts } from "./emulator/workspaces.ts";
import type { EmulatorSettings } from "./emulator/settings.ts";
import type { AgentRecord, RequestRecord } from "./emulator/world.ts";

export const endpoint = "https://api.elevenlabs.io";
/** Short, so that a hung vendor is found out within a test. */
const readTimeoutMs = 1_000;

/** Steps of a script as the fault port takes them. */
export type ScriptStep = Readonly<Record<string, unknown>>;

export interface BenchOptions {
  readonly settings?: Partial<EmulatorSettings>;
  /** Default: the emulator's own. */
  readonly apiKey?: string;
  readonly breaker?: Partial<BreakerOptions>;
  /** The host's; the emulator has a time of its own. */
  readonly clock?: Clock;
  /** Another one than the vendor's own, for what the vendor itself cannot show. */
  readonly adapter?: Adapter;
}

export class Bench {
  readonly emulator: Emulator;
  readonly host: AdapterHost;
  readonly ask: Asker;
  /** Everything that was logged. */
  readonly logLines: string[];
  readonly #metricsText: () => Promise<string>;
  readonly #folder: string;
  readonly #gateway: VendorGateway;

  private constructor(parts: Parts) {
    this.emulator = parts.emulator;
    this.host = parts.host;
    this.ask = new Asker(parts.host.handlers);
    this.logLines = parts.logLines;
    this.#metricsText = parts.metricsText;
    this.#folder = parts.folder;
    this.#gateway = parts.gateway;
  }

  static async start(options: BenchOptions = {}): Promise<Bench> {
    const emulator = await startEmulator();
    const folder = await mkdtemp(join(tmpdir(), "dhp-bench-"));
    await writeAccounts(folder, options.apiKey ?? emulatorApiKey);
    const bench = new Bench(await buildParts(emulator, folder, options));
    await bench.script({ do: "set", settings: options.settings ?? {} });
    return bench;
  }

  /** A second adapter process, as it were, with an empty memory, at the same vendor. */
  async restarted(): Promise<Asker> {
    const { host } = await buildParts(this.emulator, this.#folder, {}, this.#gateway);
    return new Asker(host.handlers);
  }

  /** Puts another key in place, as a rotated Secret does. */
  async useKey(apiKey: string): Promise<void> {
    await writeAccounts(this.#folder, apiKey);
  }

  /** Ids of the agents that the steps made. */
  async script(...steps: readonly ScriptStep[]): Promise<readonly string[]> {
    const body = await this.#fault("POST", "/script", JSON.stringify(steps));
    return JSON.parse(body).agentIds;
  }

  async agents(): Promise<readonly AgentRecord[]> {
    return JSON.parse(await this.#fault("GET", "/world")).agents;
  }

  /** The one agent there is. */
  async onlyAgent(): Promise<AgentRecord> {
    const [agent, ...others] = await this.agents();
    assert.ok(agent !== undefined && others.length === 0, "there is not exactly one agent");
    return agent;
  }

  async requests(): Promise<readonly RequestRecord[]> {
    return JSON.parse(await this.#fault("GET", "/requests")).requests;
  }

  /** How many requests other than GET arrived. */
  async mutationCount(): Promise<number> {
    return (await this.requests()).filter(({ method }) => method !== "GET").length;
  }

  metricsText(): Promise<string> {
    return this.#metricsText();
  }

  async stop(): Promise<void> {
    await this.#gateway.close();
    await this.emulator.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #fault(method: string, path: string, body?: string): Promise<string> {
    const { status, text } = await exchange(method, `${this.emulator.faultUrl}${path}`, body);
    assert.equal(status, 200, text);
    return text;
  }
}

/** One plain request to this machine. */
export function exchange(
  method: string,
  url: string,
  body?: string,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, timeout: 10_000 }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

export function target(own: { readonly endpoint?: string; readonly region?: string } = {}): {
  readonly endpoint: string;
  readonly region: string;
  readonly account: string;
} {
  return { endpoint, region: "global", account: "default", ...own };
}

/** An accounts file and its credential. */
export async function writeAccounts(folder: string, apiKey: string): Promise<string> {
  const credentialFile = join(folder, "credential.json");
  await writeFile(credentialFile, JSON.stringify({ apiKey }), { mode: 0o600 });
  const path = join(folder, "accounts.yaml");
  const account = { endpointHosts: apiHosts, credentialFile, callsPerSecond: 10_000 };
  await writeFile(path, JSON.stringify({ accounts: { default: account } }));
  return path;
}

interface Parts {
  readonly emulator: Emulator;
  readonly host: AdapterHost;
  readonly logLines: string[];
  readonly metricsText: () => Promise<string>;
  readonly folder: string;
  readonly gateway: VendorGateway;
}

async function buildParts(
  emulator: Emulator,
  folder: string,
  options: BenchOptions,
  shared?: VendorGateway,
): Promise<Parts> {
  const { clock = systemClock, adapter = createElevenLabsAdapter() } = options;
  const logLines: string[] = [];
  const destination = { write: (line: string) => void logLines.push(line) };
  const log = createLog({ name: "dhp-adapter-elevenlabs", level: "debug", destination });
  const metrics = createMetrics();
  const counters = adapterMetrics(metrics, { accounts: ["default"] });
  const gateway = shared ?? gatewayTo(emulator, options, counters.vendor);
  const accounts = await openAccounts({
    path: join(folder, "accounts.yaml"),
    clock,
    log,
    publicFields: [],
  });
  const host = createHost({
    adapter,
    accounts,
    gateway,
    clock,
    log,
    options: {
      ...defaultHostTimes,
      settle: { waitMsMax: 0, stepMs: 10 },
      buildVersion: "test",
      allowsPlainLoopback: false,
      allowedNetworks: addressRules([]),
    },
  });
  return { emulator, host, logLines, metricsText: () => metrics.text(), folder, gateway };
}

function gatewayTo(
  emulator: Emulator,
  options: BenchOptions,
  metrics: ReturnType<typeof adapterMetrics>["vendor"],
): VendorGateway {
  return new VendorGateway({
    clock: options.clock ?? systemClock,
    options: {
      ...defaultGatewayOptions,
      readTimeoutMs,
      wire: {
        ...defaultWireOptions,
        trustedCertificates: [readFileSync(emulator.caFile, "utf8")],
      },
      breaker: { ...defaultBreakerOptions, verdictCountMin: 1_000, ...options.breaker },
    },
    addresses: addressRules([]),
    connectTo: new Map(apiHosts.map((host) => [`https://${host}`, emulator.url])),
    metrics,
  });
}
