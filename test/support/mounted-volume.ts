/** Secrets and ConfigMaps of a cluster as folders, laid out and replaced as the kubelet does it. */
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import type { Cluster } from "../../deploy/dev-cluster/cluster.ts";

export interface MountedVolume {
  readonly folder: string;
  /** Brings the folder to the state of the object, all files in one instant. */
  refresh(): Promise<void>;
  remove(): Promise<void>;
}

/** @param what as for kubectl: "secret/dhp-controller-tls", in namespace dhp-system */
export async function mountVolume(cluster: Cluster, what: string): Promise<MountedVolume> {
  const folder = await mkdtemp(join(tmpdir(), "dhp-volume-"));
  let version = 0;
  const refresh = async (): Promise<void> => {
    const files = await readData(cluster, what);
    version += 1;
    const target = `..version_${version}`;
    await mkdir(join(folder, target));
    for (const [name, content] of files) {
      await writeFile(join(folder, target, name), content, { mode: 0o600 });
      // Each file is a link through ..data, so that one rename changes them all.
      if (version === 1) await symlink(join("..data", name), join(folder, name));
    }
    await symlink(target, join(folder, "..data_new"));
    await rename(join(folder, "..data_new"), join(folder, "..data"));
  };
  await refresh();
  return { folder, refresh, remove: () => rm(folder, { recursive: true, force: true }) };
}

async function readData(cluster: Cluster, what: string): Promise<[string, Buffer][]> {
  const got = ["get", what, "--namespace=dhp-system", "-o", "json"];
  const object: { kind: string; data: Record<string, string> } = JSON.parse(
    expectDone(await cluster.kubectl(got)),
  );
  const encoding = object.kind === "Secret" ? "base64" : "utf8";
  return Object.entries(object.data).map(([name, text]) => [name, Buffer.from(text, encoding)]);
}
