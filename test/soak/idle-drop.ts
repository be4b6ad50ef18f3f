/** Something between drops a watch that was idle for four minutes, without a word to either side. */
import { join } from "node:path";

import { collectionPath } from "../../controller/kubernetes/resource-client.ts";
import { TcpRelay } from "../../controller/kubernetes/tcp-relay.ts";
import { startCluster } from "../../deploy/dev-cluster/cluster.ts";
import { expectDone } from "../../deploy/crd/cluster-fixture.ts";
import { systemClock } from "../../services/process/clock.ts";
import { readUpstream, writeProxyKubeconfig } from "../fault-proxy/proxy-kubeconfig.ts";
import type { PartResult } from "./soak.ts";
import { configMaps, connectWith, SoakWatch } from "./soak-watch.ts";

const namespace = "idle";
/** As long as widespread load balancers leave a silent connection alone. */
const idleMsMax = 240_000;
const seenMsMax = 90_000;
const lookEachMs = 100;

export async function soakIdleDrop(
  minutes: number,
  say: (line: string) => void,
): Promise<PartResult> {
  const idleMs = Math.min(idleMsMax, minutes * 60_000);
  const cluster = await startCluster();
  const upstream = await readUpstream(cluster.adminKubeconfig);
  const relay = await TcpRelay.start(Number(new URL(upstream.url).port));
  const kubeconfig = join(cluster.folder, "through-relay.kubeconfig");
  await writeProxyKubeconfig(cluster.adminKubeconfig, kubeconfig, {
    ...upstream,
    url: `https://127.0.0.1:${relay.port}`,
  });
  const connection = connectWith(kubeconfig);
  const watch = new SoakWatch(connection, collectionPath(configMaps, namespace));
  try {
    expectDone(await cluster.kubectl(["create", "namespace", namespace]));
    await watch.start();
    say(`idle for ${idleMs / 1_000} s`);
    await systemClock.sleep(idleMs);
    const endsBefore = watch.ends.length;
    relay.blackHole();
    const droppedMs = performance.now();
    const create = ["create", "configmap", "missed", "--namespace", namespace];
    expectDone(await cluster.kubectl(create));
    const problems: string[] = [];
    while (!watch.toldAtMs.has(`${namespace}/missed`)) {
      if (performance.now() - droppedMs > seenMsMax) {
        problems.push(`a change was not seen ${seenMsMax / 1_000} s after the drop`);
        break;
      }
      await systemClock.sleep(lookEachMs);
    }
    const seenMs = Math.round(performance.now() - droppedMs);
    say(`the change was seen ${seenMs} ms after the drop`);
    if (watch.lists.length > 1) problems.push(`listed ${watch.lists.length} times`);
    return { problems, idleMs, seenMs, endsBefore, ends: watch.ends };
  } finally {
    await watch.stop();
    await connection.close();
    relay.stop();
    await cluster.stop();
  }
}
