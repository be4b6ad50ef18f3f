import { fileURLToPath } from "node:url";
import { buildCached, type BuildProgress, type BuildRecipe } from "./cached-build.ts";
import { createProgressPrinter } from "./build-progress.ts";
import { readDevClusterOptions } from "./dev-cluster-options.ts";

const kubernetesVersion = "v1.36.3";

/** The programs that are built from Go modules, by the name of their file. */
export type BinaryName = "cluster" | "kubectl" | "livekit" | "grpcurl" | "guard" | "adapter-go";

const versionVariables = [
  ["gitVersion", kubernetesVersion],
  ["gitMajor", "1"],
  ["gitMinor", "36"],
  ["gitTreeState", "clean"],
] as const;

// Without these the modules call themselves v0.0.0-master, and kubectl rejects such a server.
const kubernetesVariables = versionVariables
  .map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
  .join(" ");

const recipes: Readonly<Record<BinaryName, BuildRecipe>> = {
  guard: recipe("guard", "guard", "."),
  cluster: recipe("cluster", "cluster", ".", kubernetesVariables),
  kubectl: recipe("kubectl", "cluster", "k8s.io/kubernetes/cmd/kubectl", kubernetesVariables),
  livekit: recipe("livekit", "livekit", "github.com/livekit/livekit-server/cmd/server"),
  grpcurl: recipe("grpcurl", "grpcurl", "github.com/fullstorydev/grpcurl/cmd/grpcurl"),
  "adapter-go": recipe("adapter-go", "../../examples/adapter-go", "."),
};

/** All names, in the order in which builds are best run: the small ones say early what is wrong. */
export const binaryNames = [
  "guard",
  "adapter-go",
  "cluster",
  "kubectl",
  "livekit",
  "grpcurl",
] as const satisfies readonly BinaryName[];

export interface EnsureBinaryOptions {
  /** Told about a build that takes place or is waited for; lines on standard error when absent. */
  readonly onProgress?: (progress: BuildProgress) => void;
}

const found = new Map<BinaryName, Promise<string>>();

/**
 * Returns the absolute path of a program, and builds it first when the cache has none of the
 * same content. A program of that name on the PATH is never used: versions must be ours.
 *
 * The first build of all takes minutes (README.md has figures). Rejects with one message when
 * Go is missing or the build fails.
 */
export function ensureBinary(name: BinaryName, options: EnsureBinaryOptions = {}): Promise<string> {
  const known = found.get(name);
  if (known !== undefined) return known;
  const path = buildCached(recipes[name], {
    ...readDevClusterOptions(),
    onProgress: options.onProgress ?? createProgressPrinter(process.stderr),
  });
  found.set(name, path);
  // A failed build may be tried again, after Go was installed for example.
  path.catch(() => found.delete(name));
  return path;
}

/** @param module folder of go.mod, relative to this one */
function recipe(
  name: BinaryName,
  module: string,
  packagePath: string,
  variables = "",
): BuildRecipe {
  return {
    name,
    moduleFolder: fileURLToPath(new URL(`${module}/`, import.meta.url)),
    packagePath,
    linkerFlags: `-s -w ${variables}`.trim(),
  };
}
