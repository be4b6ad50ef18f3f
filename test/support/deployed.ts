/**
 * Processes started as a Deployment would start them: its program, flags and environment, with
 * folders in place of its volumes and free loopback ports in place of its own. What a manifest says
 * wrongly fails here, without anything that runs pods.
 */
import assert from "node:assert/strict";
import { containerOf, deploymentsOf, renderFolder } from "../../deploy/manifest-folders.ts";
import type { Container, Probe } from "../../deploy/manifest-folders.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { httpGet } from "./http-get.ts";
import { startProgram } from "./program.ts";
import type { Program } from "./program.ts";

export interface DeployedOptions {
  /** Folder of manifests with one Deployment: "adapters/livekit/deploy". */
  readonly manifests: string;
  /** What is mounted: a local folder for each mountPath. */
  readonly mounts: Readonly<Record<string, string>>;
  /** Values of the variables that the manifest takes from elsewhere. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Added to the manifest's own, for what only a real cluster has. */
  readonly flags?: readonly string[];
  /** The port of ProviderAPI; a free one when absent. */
  readonly grpcPort?: number;
}

/** Starts it and waits until all its probes are answered well. */
export async function startDeployed(options: DeployedOptions): Promise<Program> {
  const [deployment] = deploymentsOf(await renderFolder(options.manifests));
  assert.ok(deployment, `${options.manifests} has a Deployment`);
  const container = containerOf(deployment);
  const { environment = {}, mounts } = options;
  const paths = container.volumeMounts.map(({ mountPath }) => mountPath).sort();
  assert.deepEqual(Object.keys(mounts).sort(), paths);
  const wanted = (container.env ?? []).map(({ name }) => name).sort();
  assert.deepEqual(Object.keys(environment).sort(), wanted);
  const [main = "", ...flags] = container.args.map((argument) => localized(argument, options));
  const program = await startProgram(main, [...flags, ...(options.flags ?? [])], environment);
  try {
    await expectProbes(program, container);
  } catch (cause) {
    await program.stop();
    throw cause;
  }
  return program;
}

function localized(argument: string, { mounts, grpcPort = 0 }: DeployedOptions): string {
  if (argument.startsWith("--listen=")) return `--listen=127.0.0.1:${grpcPort}`;
  if (argument.startsWith("--admin-listen=")) return "--admin-listen=127.0.0.1:0";
  const [mountPath, folder] =
    Object.entries(mounts).find(([path]) => new RegExp(`=${path}(/|$)`).test(argument)) ?? [];
  return mountPath === undefined || folder === undefined
    ? argument
    : argument.replace(mountPath, folder);
}

async function expectProbes(program: Program, container: Container): Promise<void> {
  const { startupProbe, livenessProbe, readinessProbe } = container;
  for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
    assert.equal(probe?.httpGet.port, "metrics");
    await eventually(() => expectOk(program, probe));
  }
}

async function expectOk(program: Program, { httpGet: { path } }: Probe): Promise<void> {
  const answer = await httpGet(program.ports.adminPort, path);
  assert.equal(answer.status, 200, answer.text);
}
