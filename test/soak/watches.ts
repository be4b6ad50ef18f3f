/** Busy and quiet watches for some minutes: they end as planned and never otherwise, and miss nothing. */
import { collectionPath } from "../../controller/kubernetes/resource-client.ts";
import { startCluster } from "../../deploy/dev-cluster/cluster.ts";
import type { Cluster } from "../../deploy/dev-cluster/cluster.ts";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { systemClock } from "../../services/process/clock.ts";
import type { PartResult } from "./soak.ts";
import { configMaps, configMapsOf, connectWith, SoakWatch, versionOf } from "./soak-watch.ts";

const busy = ["busy-1", "busy-2"];
const quiet = ["quiet-1", "quiet-2"];
const writeEachMs = 500;
/** A change that no watch has shown after this is missed. */
const settleMs = 5_000;
const progressEachMs = 60_000;

export async function soakWatches(
  minutes: number,
  say: (line: string) => void,
): Promise<PartResult> {
  const cluster = await startCluster();
  const connection = connectWith(cluster.adminKubeconfig);
  const watches = new Map<string, SoakWatch>();
  try {
    for (const namespace of [...busy, ...quiet]) {
      expectDone(await cluster.kubectl(["create", "namespace", namespace]));
      const watch = new SoakWatch(connection, collectionPath(configMaps, namespace));
      await watch.start();
      watches.set(namespace, watch);
    }
    say(`${minutes} minutes begin`);
    const writes = await writeFor(cluster, minutes * 60_000, say);
    await systemClock.sleep(settleMs);
    const problems: string[] = [];
    for (const [namespace, watch] of watches) {
      const unplanned = watch.ends.filter((reason) => reason !== "end");
      if (unplanned.length > 0) problems.push(`${namespace} ended by ${unplanned.join(", ")}`);
      if (watch.lists.length !== 1)
        problems.push(`${namespace} was listed ${watch.lists.length} times`);
      const truth = (await listAll(cluster, namespace)).join(" ");
      if (watch.held().join(" ") !== truth)
        problems.push(`${namespace} holds something else than the API server`);
    }
    const planned = [...watches.values()].reduce((sum, { ends }) => sum + ends.length, 0);
    return { problems, watches: watches.size, writes, plannedEnds: planned };
  } finally {
    await Promise.all([...watches.values()].map((watch) => watch.stop()));
    await connection.close();
    await cluster.stop();
  }
}

/** Creates, changes and deletes in the busy namespaces; how many writes there were. */
async function writeFor(
  cluster: Cluster,
  forMs: number,
  say: (line: string) => void,
): Promise<number> {
  const connection = connectWith(cluster.adminKubeconfig);
  const client = configMapsOf(connection);
  const endMs = performance.now() + forMs;
  let count = 0;
  let saidMs = performance.now();
  try {
    while (performance.now() < endMs) {
      const namespace = busy[count % busy.length] ?? "";
      const name = `map-${count % 20}`;
      const found = await client.get(`${namespace}/${name}`).catch(() => undefined);
      const data = { count: String(count) };
      const metadata = { name, namespace };
      if (found === undefined) {
        await client.create({ apiVersion: "v1", kind: "ConfigMap", metadata, data });
      } else if (count % 3 === 0) await client.delete(found);
      else await client.patch(found, { ...found, data });
      count += 1;
      if (performance.now() - saidMs > progressEachMs) {
        saidMs = performance.now();
        say(`${count} writes`);
      }
      await systemClock.sleep(writeEachMs);
    }
    return count;
  } finally {
    await connection.close();
  }
}

async function listAll(cluster: Cluster, namespace: string): Promise<readonly string[]> {
  const get = ["get", "configmaps", "--namespace", namespace, "-o", "json"];
  const { items } = JSON.parse(expectDone(await cluster.kubectl(get)));
  return items.map(versionOf).sort();
}
