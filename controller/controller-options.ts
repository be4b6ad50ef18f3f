/** What the controller process can be told, with its defaults. */
import { join } from "node:path";
import { logLevels } from "../services/process/log.ts";
import {
  duration,
  file,
  hostPort,
  integer,
  oneOf,
  optional,
  text,
  toggle,
} from "../services/process/option-kinds.ts";
import { readOptions } from "../services/process/options.ts";
import type { OptionsSpec, ValuesOf } from "../services/process/options.ts";

const hour = 3_600_000;
const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const dnsSubdomain = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;

const options = {
  fleet: text({
    help: "First part of every instance key. Clusters that shall meet the same vendor instances share it; others must not. Never change it: what was made under another name is not found again.",
    pattern: dnsLabel,
    form: "a DNS label",
  }),
  cluster: optional(
    text({
      help: "Owner written to vendor instances; absent: the uid of namespace kube-system.",
      charsMax: 253,
    }),
  ),
  kubeconfig: optional(
    file({ help: "Access to the API server; absent: the pod's own ServiceAccount." }),
  ),
  adminListen: hostPort({
    help: "Where /metrics, /healthz and /readyz are served.",
    default: { host: "127.0.0.1", port: 8080 },
  }),
  portFile: optional(
    text({
      help: "Written as JSON {adminPort} once the admin port is open, for --admin-listen with port 0.",
    }),
  ),
  adapterTlsFolder: optional(
    text({
      help: "Folder with tls.crt, tls.key and ca.crt for mutual TLS with adapters; read again when they change.",
    }),
  ),
  allowPlaintextAdapters: toggle({
    help: "Allow adapters without TLS beyond loopback. Their answers decide what is deleted: use it in a closed network only.",
  }),
  workers: integer({
    help: "Objects reconciled at the same time. One account of a vendor gets at most a quarter of them.",
    default: 128,
    min: 2,
    max: 1_000,
  }),
  resyncMs: duration({
    help: "How often a ready instance is read again at the vendor.",
    default: 600_000,
    msMin: 1_000,
    msMax: 24 * hour,
  }),
  reprobeMs: duration({
    help: "How often that is tried again which only a person can mend.",
    default: 300_000,
    msMin: 1_000,
    msMax: 24 * hour,
  }),
  orphanSweepMs: duration({
    help: "How often vendor instances are looked for that carry our stamp and belong to no object.",
    default: 300_000,
    msMin: 1_000,
    msMax: 24 * hour,
  }),
  pollMs: duration({
    help: "Waits between looks at what a vendor is still making or removing, where it gives no hint.",
    default: 2_000,
    msMin: 50,
    msMax: hour,
  }),
  backOffMinMs: duration({
    help: "First wait after a failure.",
    default: 500,
    msMin: 10,
    msMax: hour,
  }),
  backOffMaxMs: duration({
    help: "Longest wait after failures.",
    default: 300_000,
    msMin: 100,
    msMax: 24 * hour,
  }),
  callDeadlineMs: duration({
    help: "Deadline of one call to an adapter.",
    default: 30_000,
    msMin: 100,
    msMax: 600_000,
  }),
  leaseName: text({
    help: "Lease by which replicas choose the one that works. Replicas share it; controllers of different fleets in one cluster must not.",
    default: "dhp-controller",
    charsMax: 253,
    pattern: dnsSubdomain,
    form: "a DNS subdomain",
  }),
  leaseNamespace: optional(
    text({
      help: "Namespace of the Lease; absent: the pod's own, or dhp-system with --kubeconfig.",
      pattern: dnsLabel,
      form: "a DNS label",
    }),
  ),
  leaseDurationMs: duration({
    help: "How long other replicas wait after the last renewal before one takes over; a third of it lies between renewals. No mutation begins at a vendor later than that.",
    default: 6_000,
    msMin: 2_000,
    msMax: 15_000,
  }),
  apiTimeoutMs: duration({
    help: "Deadline of one call to the API server.",
    default: 10_000,
    msMin: 100,
    msMax: 120_000,
  }),
  drainMs: duration({
    help: "How long running passes may go on after SIGTERM.",
    default: 10_000,
    msMin: 100,
    msMax: 120_000,
  }),
  logLevel: oneOf({ help: "Lowest level that is logged.", values: logLevels, default: "info" }),
};

export type ControllerProcessOptions = ValuesOf<typeof options>;

const spec: OptionsSpec<typeof options> = {
  program: "dhp-controller",
  summary: "makes DigitalHumanProvider objects true at their vendors",
  options,
  check: ({ backOffMinMs, backOffMaxMs }) =>
    backOffMinMs > backOffMaxMs ? ["--back-off-min is longer than --back-off-max"] : [],
};

/** @throws OptionsError, HelpRequested */
export function readControllerOptions(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>> = process.env,
): ControllerProcessOptions {
  return readOptions(spec, argv, environment);
}

/** The files of --adapter-tls-folder, named as in a mounted kubernetes.io/tls Secret. */
export function adapterTlsFiles(folder: string): {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
} {
  return {
    certFile: join(folder, "tls.crt"),
    keyFile: join(folder, "tls.key"),
    caFile: join(folder, "ca.crt"),
  };
}
