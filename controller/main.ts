/** The controller process. */
import { randomUUID } from "node:crypto";
import { rename, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { connectProvider } from "../services/contract/client.ts";
import type { ProviderClient } from "../services/contract/provider-client.ts";
import { startAdminServer } from "../services/process/admin-server.ts";
import type { AdminServer } from "../services/process/admin-server.ts";
import { systemClock } from "../services/process/clock.ts";
import { controllerMetrics } from "../services/process/controller-metrics.ts";
import type { ControllerMetrics } from "../services/process/controller-metrics.ts";
import { createLog } from "../services/process/log.ts";
import type { Log } from "../services/process/log.ts";
import { createMetrics } from "../services/process/metrics.ts";
import type { Metrics } from "../services/process/metrics.ts";
import { optionsOrExit, runProcess } from "../services/process/shutdown.ts";
import type { StopStack } from "../services/process/shutdown.ts";
import { Controller } from "./controller.ts";
import { adapterTlsFiles, readControllerOptions } from "./controller-options.ts";
import type { ControllerProcessOptions } from "./controller-options.ts";
import { readClusterId } from "./cluster-id.ts";
import { Connection } from "./kubernetes/connection.ts";
import { EventRecorder } from "./kubernetes/events.ts";
import { kubeConfigFile, kubeConfigInCluster, podNamespace } from "./kubernetes/kube-config.ts";
import { adapterSecurity } from "./providers/adapter-security.ts";
import { Providers } from "./providers/providers.ts";
import type { DigitalHumanProvider } from "./resource/digital-human-provider.ts";
import { apiGroup, apiVersion } from "./resource/names.ts";
import type { AdapterAddress, ProviderClass } from "./resource/provider-class.ts";
import { classResource, providerResource } from "./resource-kinds.ts";

const name = "dhp-controller";
const infoDeadlineMs = 3_000;
const infoMaxAgeMs = 60_000;
const eventsStopMs = 2_000;
/** Where the Lease is when neither an option nor a pod says it: the namespace of our manifests. */
const leaseNamespaceDefault = "dhp-system";
/** What stopping may take beyond the passes' own drain. */
const stopMarginMs = 10_000;

/** What stands while the process runs, in the order it was made. */
interface Parts {
  readonly options: ControllerProcessOptions;
  readonly log: Log;
  readonly metrics: ControllerMetrics;
  readonly connection: Connection;
  readonly events: EventRecorder;
  readonly providers: Providers;
  readonly fail: (error: Error) => void;
}

const options = optionsOrExit(() => readControllerOptions(process.argv.slice(2)));
const log = createLog({ name, level: options.logLevel });

await runProcess({
  log,
  stopTimeoutMs: options.drainMs + stopMarginMs,
  start: (stack, signal) => start(stack, signal),
});

async function start(stack: StopStack, signal: AbortSignal): Promise<void> {
  const registry = createMetrics();
  const metrics = controllerMetrics(registry, {
    controller: "digitalhumanprovider",
    lease: options.leaseName,
    workersMax: options.workers,
  });
  const connection = openConnection(metrics);
  stack.defer("connection to the API server", () => connection.close());
  const progress: { controller: Controller | undefined } = { controller: undefined };
  const admin = await openAdminPort(registry, progress);
  stack.defer("admin port", () => admin.close());
  const events = recordEvents(connection, metrics);
  stack.defer("events", () => events.stop(eventsStopMs));
  const providers = connectProviders(metrics);
  stack.defer("connections to adapters", () => providers.close());
  const cluster =
    options.cluster ?? (await readClusterId(connection, { clock: systemClock, log, signal }));
  const controller = createController(
    { options, log, metrics, connection, events, providers, fail: (error) => stack.fail(error) },
    cluster,
  );
  progress.controller = controller;
  metrics.readQueue(() => controller.queueSnapshot());
  metrics.readQuotaUse(() => controller.quotaUse());
  stack.defer("controller", async () => {
    const left = await controller.stop();
    if (left.length > 0) log.warn({ left }, "passes did not heed the stop");
  });
  await controller.start(signal);
}

function openConnection(metrics: ControllerMetrics): Connection {
  const { kubeconfig } = options;
  return new Connection({
    source: kubeconfig === undefined ? kubeConfigInCluster() : kubeConfigFile(kubeconfig),
    clock: systemClock,
    log,
    metrics: metrics.connection,
    userAgent: name,
  });
}

async function openAdminPort(
  registry: Metrics,
  progress: { readonly controller: Controller | undefined },
): Promise<AdminServer> {
  const waiting = registry.gauge({
    name: "dhp_watch_waiting_for_crd",
    help: "1 while the API server does not know the resource, 0 otherwise.",
    labels: { resource: [providerResource.plural, classResource.plural] },
  });
  registry.onScrape(() => {
    for (const { plural } of [providerResource, classResource]) {
      const isWaiting = progress.controller?.isWaitingForCrd(plural) ?? false;
      waiting.set({ resource: plural }, isWaiting ? 1 : 0);
    }
  });
  const check = (part: string) => () =>
    progress.controller === undefined
      ? "not started: no answer of the API server yet"
      : progress.controller.readiness()[part];
  const admin = await startAdminServer({
    ...options.adminListen,
    metrics: registry,
    readiness: {
      [providerResource.plural]: check(providerResource.plural),
      [classResource.plural]: check(classResource.plural),
      election: check("election"),
    },
    log,
  });
  await writePortFile(options.portFile, { adminPort: admin.port });
  return admin;
}

/** In one piece: whoever waits for it never reads half of it. */
async function writePortFile(path: string | undefined, ports: object): Promise<void> {
  if (path === undefined) return;
  await writeFile(`${path}.new`, JSON.stringify(ports));
  await rename(`${path}.new`, path);
}

function recordEvents(connection: Connection, metrics: ControllerMetrics): EventRecorder {
  return new EventRecorder({
    connection,
    clock: systemClock,
    log,
    reportingController: `${apiGroup}/controller`,
    reportingInstance: `${name}-${hostname()}-${process.pid}`,
    metrics: metrics.events,
  });
}

function connectProviders(metrics: ControllerMetrics): Providers {
  return new Providers({
    connect: (adapter) => connectAdapter(adapter, metrics),
    clock: systemClock,
    infoDeadlineMs,
    infoMaxAgeMs,
  });
}

/** @throws ProviderError when TLS is asked for and not configured, or plaintext not allowed */
function connectAdapter(adapter: AdapterAddress, metrics: ControllerMetrics): ProviderClient {
  const { adapterTlsFolder: folder, allowPlaintextAdapters: allowPlaintext } = options;
  const { address } = adapter;
  const tlsFiles = folder === undefined ? undefined : adapterTlsFiles(folder);
  const tls = adapterSecurity(adapter, { tlsFiles, allowPlaintext });
  const client = connectProvider({
    address,
    ...(tls === undefined ? {} : { tls }),
    allowPlaintext,
    log: log.child({ adapter: address }),
    onCall: (call) => metrics.onCall(call),
  });
  metrics.onConnectionState(address, client.state());
  const stopListening = client.onStateChange((state) => metrics.onConnectionState(address, state));
  return {
    ...client,
    close: () => {
      stopListening();
      client.close();
      metrics.onConnectionState(address, undefined);
    },
  };
}

function createController(parts: Parts, cluster: string): Controller {
  const { connection, events, metrics, providers } = parts;
  return new Controller({
    connection,
    providers,
    identity: { fleet: options.fleet, cluster },
    clock: systemClock,
    random: Math.random,
    log,
    metrics,
    onEvent: (object, event) => events.record({ ...event, regarding: referenceOf(object) }),
    onClassEvent: (found, event) => events.record({ ...event, regarding: classReference(found) }),
    onFailure: parts.fail,
    options: {
      workersMax: options.workers,
      apiTimeoutMs: options.apiTimeoutMs,
      lease: {
        namespace: leaseNamespace(),
        name: options.leaseName,
        durationMs: options.leaseDurationMs,
        identity: `${hostname()}_${randomUUID()}`,
      },
      drainMs: options.drainMs,
      callDeadlineMs: options.callDeadlineMs,
      resyncMs: options.resyncMs,
      reprobeMs: options.reprobeMs,
      backOffMsMin: options.backOffMinMs,
      backOffMsMax: options.backOffMaxMs,
      pollMs: options.pollMs,
      orphanSweepMs: options.orphanSweepMs,
    },
  });
}

function leaseNamespace(): string {
  const ofPod = options.kubeconfig === undefined ? podNamespace() : undefined;
  return options.leaseNamespace ?? ofPod ?? leaseNamespaceDefault;
}

function classReference({ name: className, uid }: ProviderClass) {
  const kind = "DigitalHumanProviderClass";
  return { apiVersion: `${apiGroup}/${apiVersion}`, kind, name: className, uid };
}

function referenceOf(object: DigitalHumanProvider) {
  const { namespace, name: objectName, uid } = object;
  return {
    apiVersion: `${apiGroup}/${apiVersion}`,
    kind: "DigitalHumanProvider",
    namespace,
    name: objectName,
    uid,
  };
}
