/** The folders of manifests, in the order in which they are installed, and what is in them. */
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import { expectDone, type Manifest } from "./crd/cluster-fixture.ts";
import { ensureBinary } from "./dev-cluster/binaries.ts";
import { runCommand } from "./dev-cluster/command.ts";

export const repositoryFolder = dirname(dirname(fileURLToPath(import.meta.url)));

/** Relative to the repository; the layers first, then a folder for each vendor. */
export function installedFolders(): readonly string[] {
  return ["deploy/crd", "deploy/policy", "deploy/controller", ...vendorFolders()];
}

/** Manifests of the vendors' adapters: "adapters/livekit/deploy". */
export function vendorFolders(): readonly string[] {
  return readdirSync(join(repositoryFolder, "adapters"))
    .map((vendor) => `adapters/${vendor}/deploy`)
    .filter((folder) => existsSync(join(repositoryFolder, folder)))
    .sort();
}

/** What `kubectl apply -k` of a folder would send. */
export async function renderFolder(folder: string): Promise<readonly Manifest[]> {
  const kubectl = await ensureBinary("kubectl");
  const rendered = await runCommand(kubectl, ["kustomize", join(repositoryFolder, folder)]);
  return parseAllDocuments(expectDone(rendered)).map((document) => document.toJS());
}

/** A Deployment as far as tests look into it. */
export interface Deployment {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: {
    readonly replicas: number;
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: PodSpec;
    };
  };
}

export interface PodSpec {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly Container[];
  readonly volumes: readonly Manifest[];
}

export interface Container {
  readonly image: string;
  /** The program, relative to the repository, and its flags. */
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
  readonly resources: { readonly requests: Manifest; readonly limits: Manifest };
  readonly securityContext: Manifest;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

/** The Deployments among manifests; the shape is what the API server accepts. */
export function deploymentsOf(manifests: readonly unknown[]): readonly Deployment[] {
  return manifests.filter(isDeployment);
}

function isDeployment(manifest: unknown): manifest is Deployment {
  return (
    typeof manifest === "object" &&
    manifest !== null &&
    "kind" in manifest &&
    manifest.kind === "Deployment"
  );
}

/** The only container of a Deployment's pods. */
export function containerOf(deployment: Deployment): Container {
  const [container, ...more] = deployment.spec.template.spec.containers;
  if (container === undefined || more.length > 0) {
    throw new Error(`Deployment ${deployment.metadata.name} has not exactly one container`);
  }
  return container;
}
