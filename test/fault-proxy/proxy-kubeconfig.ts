/** A kubeconfig that leads to the proxy in place of the API server; the user stays the same. */
import { readFile, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";

import { parse } from "yaml";

/** Where the API server is, by a kubeconfig. */
export interface Upstream {
  readonly url: string;
  readonly ca: string;
}

interface KubeConfigDocument {
  readonly clusters: readonly { readonly name: string; readonly cluster: ClusterEntry }[];
  readonly users: readonly {
    readonly name: string;
    readonly user: { readonly tokenFile?: string };
  }[];
}

interface ClusterEntry {
  readonly server: string;
  readonly "certificate-authority-data": string;
}

/** Of the only cluster in it. */
export async function readUpstream(kubeconfig: string): Promise<Upstream> {
  const { clusters } = await readDocument(kubeconfig);
  const [only] = clusters;
  if (only === undefined) throw new Error(`${kubeconfig} names no cluster`);
  const ca = Buffer.from(only.cluster["certificate-authority-data"], "base64").toString("utf8");
  return { url: only.cluster.server, ca };
}

/**
 * Writes `path`: everybody in `source`, with the proxy in the cluster's place. Tokens are passed on
 * by the proxy; a client certificate ends at it.
 */
export async function writeProxyKubeconfig(
  source: string,
  path: string,
  proxy: Upstream,
): Promise<void> {
  const document = await readDocument(source);
  const cluster: ClusterEntry = {
    server: proxy.url,
    "certificate-authority-data": Buffer.from(proxy.ca).toString("base64"),
  };
  const content = {
    ...document,
    clusters: document.clusters.map(({ name }) => ({ name, cluster })),
    users: document.users.map(({ name, user }) => ({
      name,
      user:
        user.tokenFile === undefined
          ? user
          : { ...user, tokenFile: resolve(dirname(source), user.tokenFile) },
    })),
  };
  await writeFile(path, JSON.stringify(content, undefined, 2), { mode: 0o600 });
}

async function readDocument(path: string): Promise<KubeConfigDocument> {
  // Written by the local control plane or by a test: its shape is ours.
  return parse(await readFile(path, "utf8")) as KubeConfigDocument;
}
