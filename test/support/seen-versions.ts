/** Every version of one object that a watch shows, as `kubectl get -w` would print it. */
import { Connection } from "../../controller/kubernetes/connection.ts";
import { kubeConfigFile } from "../../controller/kubernetes/kube-config.ts";
import type { RawObject } from "../../controller/kubernetes/raw-object.ts";
import { Watch } from "../../controller/kubernetes/watch.ts";
import type { Cluster } from "../../deploy/dev-cluster/cluster.ts";
import { systemClock } from "../../services/process/clock.ts";
import { silentLog } from "../../services/process/log.ts";
import type { Dhp } from "./providers.ts";

const path = "/apis/dhp.example.com/v1alpha1/namespaces/default/digitalhumanproviders";
const syncTimeoutMs = 30_000;

export class SeenVersions {
  /** In the order they were seen. */
  readonly seen: Dhp[] = [];
  readonly #connection: Connection;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  private constructor(connection: Connection) {
    this.#connection = connection;
  }

  static async of(cluster: Cluster, name: string): Promise<SeenVersions> {
    const connection = new Connection({
      source: kubeConfigFile(cluster.adminKubeconfig),
      clock: systemClock,
      log: silentLog,
      metrics: { onRequest: () => undefined, onHandshake: () => undefined },
      userAgent: "dhp-test",
    });
    const versions = new SeenVersions(connection);
    const watch = new Watch<RawObject>({
      connection,
      path,
      fieldSelector: `metadata.name=${name}`,
      parse: (raw) => raw,
      onEvent: (event) => {
        // What the API server sends of a kind of ours has the shape that its CRD enforces.
        if (event.kind !== "deleted") versions.seen.push(event.object as unknown as Dhp);
      },
      clock: systemClock,
      random: Math.random,
      log: silentLog,
    });
    versions.#running = watch.run(versions.#stopping.signal);
    await watch.whenSynced(AbortSignal.timeout(syncTimeoutMs));
    return versions;
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the test is over"));
    await this.#running;
    await this.#connection.close();
  }
}
