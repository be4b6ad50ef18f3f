import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startCluster, type Cluster } from "../dev-cluster/cluster.ts";
import { eventually } from "../dev-cluster/eventually.ts";
import type { CommandResult } from "../dev-cluster/command.ts";

/** A folder of manifests under deploy/. */
export type Layer = "crd" | "policy" | "controller" | "samples";

/** A manifest as tests write it: any JSON, since they send wrong ones too. */
export type Manifest = Readonly<Record<string, unknown>>;

export const finalizer = "dhp.example.com/provider-cleanup";
export const firstPlacementAnnotation = "dhp.example.com/first-placement";

const deployFolder = dirname(dirname(fileURLToPath(import.meta.url)));

/** Starts an API server, applies the layers in order and waits until both kinds are served. */
export async function startClusterWith(layers: readonly Layer[]): Promise<Cluster> {
  const cluster = await startCluster();
  try {
    for (const layer of layers) {
      expectDone(await cluster.kubectl(["apply", "-k", layerFolder(layer)]));
      if (layer === "crd") await untilEstablished(cluster);
    }
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** Waits until both kinds are served. */
export async function untilEstablished(cluster: Cluster): Promise<void> {
  const kinds = ["digitalhumanproviders", "digitalhumanproviderclasses"];
  const names = kinds.map((kind) => `crd/${kind}.dhp.example.com`);
  const args = ["wait", "--for=condition=Established", "--timeout=30s", ...names];
  // kubectl gives up at once on a kind so new that it has no conditions yet.
  await eventually(async () => expectDone(await cluster.kubectl(args)));
}

/** Path of a layer's folder. */
export function layerFolder(layer: Layer): string {
  return join(deployFolder, layer);
}

/** A DigitalHumanProvider that is right in every field but those given. */
export function provider(name: string, fields: { spec?: Manifest; metadata?: Manifest } = {}) {
  return {
    apiVersion: "dhp.example.com/v1alpha1",
    kind: "DigitalHumanProvider",
    metadata: { name, namespace: "default", ...fields.metadata },
    spec: { endpoint: "https://tts.example.com/openapi", region: "cn-hangzhou", ...fields.spec },
  };
}

/** A DigitalHumanProviderClass that is right in every field but those given. */
export function providerClass(name: string, fields: { spec?: Manifest; metadata?: Manifest } = {}) {
  return {
    apiVersion: "dhp.example.com/v1alpha1",
    kind: "DigitalHumanProviderClass",
    metadata: { name, ...fields.metadata },
    spec: { adapter: { address: "127.0.0.1:50051" }, ...fields.spec },
  };
}

/** A placement as the controller records it. */
export function placement(fields: Manifest = {}): Manifest {
  return {
    version: 1,
    realm: "account-1/cn-hangzhou",
    class: "livekit",
    endpoint: "https://tts.example.com/openapi",
    region: "cn-hangzhou",
    providerID: "room-1",
    state: "Recorded",
    ...fields,
  };
}

/** Runs kubectl with a manifest on its standard input. */
export function send(
  cluster: Cluster,
  args: readonly string[],
  manifest: Manifest,
): Promise<CommandResult> {
  return cluster.kubectl([...args, "-f", "-"], { input: JSON.stringify(manifest) });
}

/** Merge-patches one object, named as in "dhp/name". */
export function mergePatch(
  cluster: Cluster,
  what: string,
  patch: Manifest,
  args: readonly string[] = [],
): Promise<CommandResult> {
  return cluster.kubectl(["patch", what, "--type=merge", "-p", JSON.stringify(patch), ...args]);
}

/** Asserts that a command or request succeeded, with its own words when it did not. */
export function expectDone(result: CommandResult): string {
  assert.equal(result.code, 0, `failed: ${result.stderr}`);
  return result.stdout;
}

/** Asserts that the API server refused, and that the refusal says why. */
export function expectRefused(result: CommandResult, says: RegExp): void {
  assert.notEqual(result.code, 0, `was admitted: ${result.stdout}`);
  assert.match(result.stderr, says);
}

/** One object as the API server has it. */
export async function read(cluster: Cluster, what: readonly string[]): Promise<ReadObject> {
  return JSON.parse(expectDone(await cluster.kubectl(["get", ...what, "-o", "json"])));
}

/** What tests look at in an object that was read. */
export interface ReadObject {
  readonly metadata: {
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation: number;
    readonly finalizers?: readonly string[];
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: Manifest;
  readonly status?: Manifest;
}
