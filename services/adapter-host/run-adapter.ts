/** The main of every adapter process: options, log, metrics, admin port, gRPC server, clean end. */
import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { getCACertificates } from "node:tls";

import { serveProvider } from "../contract/server.ts";
import type { ProviderServer } from "../contract/server.ts";
import { adapterMetrics } from "../process/adapter-metrics.ts";
import type { AdapterMetrics } from "../process/adapter-metrics.ts";
import { startAdminServer } from "../process/admin-server.ts";
import { systemClock } from "../process/clock.ts";
import { createLog } from "../process/log.ts";
import type { Log } from "../process/log.ts";
import { createMetrics } from "../process/metrics.ts";
import { optionsOrExit, runProcess } from "../process/shutdown.ts";
import type { StopStack } from "../process/shutdown.ts";
import { addressRules } from "../vendor-http/allow-list.ts";
import { defaultBreakerOptions } from "../vendor-http/breaker.ts";
import { parseConnectTo } from "../vendor-http/connect-to.ts";
import { defaultGatewayOptions, VendorGateway } from "../vendor-http/http-client.ts";
import { defaultWireOptions } from "../vendor-http/wire.ts";
import { openAccounts } from "./accounts.ts";
import type { Accounts } from "./accounts.ts";
import type { Adapter } from "./adapter.ts";
import { createHost, defaultHostTimes } from "./host.ts";
import type { AdapterHost } from "./host.ts";
import { readAdapterOptions } from "./host-options.ts";
import type { AdapterOptions } from "./host-options.ts";

/** Closing after the drain: connections, timers, the admin port. */
const closeTimeoutMs = 5_000;

/** Serves `adapter` until SIGTERM or SIGINT; ends the process with the exit code of shutdown.ts. */
export async function runAdapter(adapter: Adapter): Promise<void> {
  const options = optionsOrExit(() => readAdapterOptions(adapter.info.name));
  const log = createLog({ name: `dhp-adapter-${adapter.info.name}`, level: options.logLevel });
  await runProcess({
    log,
    stopTimeoutMs: options.drainTimeoutMs + closeTimeoutMs,
    start: (stack) => startParts({ adapter, options, log, stack }),
  });
}

interface Parts {
  readonly adapter: Adapter;
  readonly options: AdapterOptions;
  readonly log: Log;
  readonly stack: StopStack;
}

interface HostParts {
  readonly accounts: Accounts;
  readonly gateway: VendorGateway;
  readonly counters: AdapterMetrics;
}

async function startParts({ adapter, options, log, stack }: Parts): Promise<void> {
  const publicFields = adapter.info.publicCredentialFields ?? [];
  const accountsOptions = { path: options.accounts, clock: systemClock, log, publicFields };
  const accounts = await openAccounts(accountsOptions);
  const metrics = createMetrics();
  const counters = adapterMetrics(metrics, { accounts: accounts.names });
  const gateway = openGateway(options, counters);
  stack.defer("vendor connections", () => gateway.close());
  const host = hostOf({ adapter, options, log, stack }, { accounts, gateway, counters });
  let isServing = false;
  const admin = await startAdminServer({
    ...options.adminListen,
    metrics,
    readiness: { serving: () => (isServing ? undefined : "not serving ProviderAPI") },
    log,
  });
  stack.defer("admin port", () => admin.close());
  const server = await serve({ adapter, options, log, stack }, host, counters);
  isServing = true;
  stack.defer("ProviderAPI", async () => {
    isServing = false;
    await drain(server, host, { log, limitMs: options.drainTimeoutMs });
  });
  const ports = { grpcPort: server.port, adminPort: admin.port };
  log.info({ ...ports, accounts: accounts.names.length }, "adapter started");
  if (options.portFile !== undefined) await writePorts(options.portFile, ports);
}

function hostOf(
  { adapter, options, log }: Parts,
  { accounts, gateway, counters }: HostParts,
): AdapterHost {
  return createHost({
    adapter,
    accounts,
    gateway,
    clock: systemClock,
    log,
    onSweep: (sweep) => counters.sweepEnded(sweep),
    options: {
      ...defaultHostTimes,
      sweepIntervalMs: options.sweepIntervalMs,
      buildVersion: options.buildVersion,
      clockSkewMs: options.clockSkewMs,
      allowsPlainLoopback: options.allowPlainLoopback,
      allowedNetworks: addressRules(options.allowNetwork),
    },
  });
}

function openGateway(options: AdapterOptions, counters: AdapterMetrics): VendorGateway {
  const { vendorCa } = options;
  const trusted =
    vendorCa === undefined
      ? undefined
      : [...getCACertificates("default"), readFileSync(vendorCa, "utf8")];
  return new VendorGateway({
    clock: systemClock,
    options: {
      ...defaultGatewayOptions,
      readTimeoutMs: options.readTimeoutMs,
      wire: {
        ...defaultWireOptions,
        ...(trusted === undefined ? {} : { trustedCertificates: trusted }),
      },
      breaker: { ...defaultBreakerOptions, openMs: options.circuitOpenMs },
    },
    addresses: addressRules(options.allowNetwork),
    connectTo: parseConnectTo(options.connectTo),
    metrics: counters.vendor,
  });
}

function serve(
  { options, log }: Parts,
  host: AdapterHost,
  counters: AdapterMetrics,
): Promise<ProviderServer> {
  const { tlsCert: certFile, tlsKey: keyFile, tlsCa: caFile } = options;
  const hasTls = certFile !== undefined && keyFile !== undefined && caFile !== undefined;
  return serveProvider({
    handlers: host.handlers,
    ...options.listen,
    ...(hasTls ? { tls: { certFile, keyFile, caFile } } : {}),
    allowPlaintext: options.allowPlaintext,
    log,
    onCall: (call) => counters.onCall(call),
  });
}

/** Calls first; then the changes that outlived their callers, in what is left of the time. */
async function drain(
  server: ProviderServer,
  host: AdapterHost,
  { log, limitMs }: { readonly log: Log; readonly limitMs: number },
): Promise<void> {
  const over = new AbortController();
  const timer = systemClock.setTimer(limitMs, () => over.abort());
  const { unfinished } = await server.drain(limitMs);
  await host.idle(over.signal);
  timer.cancel();
  const isCut = unfinished > 0 || over.signal.aborted;
  if (isCut) log.warn({ unfinished, limitMs }, "stopped with calls in flight");
  await server.close();
}

/** In one piece: whoever waits for the file never reads half of it. */
async function writePorts(path: string, ports: object): Promise<void> {
  const draft = `${path}.${process.pid}.tmp`;
  await writeFile(draft, `${JSON.stringify(ports)}\n`);
  await rename(draft, path);
}
