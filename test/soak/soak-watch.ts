/** A watch over ConfigMaps of one namespace that counts how it went, and what it knows in the end. */
import { Connection } from "../../controller/kubernetes/connection.ts";
import { kubeConfigFile } from "../../controller/kubernetes/kube-config.ts";
import { readIdentity } from "../../controller/kubernetes/raw-object.ts";
import type { RawObject } from "../../controller/kubernetes/raw-object.ts";
import { ResourceClient } from "../../controller/kubernetes/resource-client.ts";
import type { ResourceType } from "../../controller/kubernetes/resource-client.ts";
import { Watch } from "../../controller/kubernetes/watch.ts";
import { systemClock } from "../../services/process/clock.ts";
import { silentLog } from "../../services/process/log.ts";

const callTimeoutMs = 30_000;
export const configMaps: ResourceType = {
  group: "",
  version: "v1",
  plural: "configmaps",
  isNamespaced: true,
};

export function connectWith(kubeconfig: string): Connection {
  return new Connection({
    source: kubeConfigFile(kubeconfig),
    clock: systemClock,
    log: silentLog,
    metrics: { onRequest: () => undefined, onHandshake: () => undefined },
    userAgent: "dhp-soak",
  });
}

export function configMapsOf(connection: Connection): ResourceClient<RawObject> {
  return new ResourceClient({
    connection,
    type: configMaps,
    parse: (raw) => raw,
    timeoutMs: callTimeoutMs,
  });
}

export class SoakWatch {
  readonly watch: Watch<RawObject>;
  /** Why watches ended, each time; "end" is as planned. */
  readonly ends: string[] = [];
  /** How the collection was listed, each time. */
  readonly lists: string[] = [];
  /** When each key was told last, on the monotonic scale. */
  readonly toldAtMs = new Map<string, number>();
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(connection: Connection, path: string) {
    this.watch = new Watch<RawObject>({
      connection,
      path,
      parse: (raw) => raw,
      onEvent: ({ key }) => this.toldAtMs.set(key, performance.now()),
      clock: systemClock,
      random: Math.random,
      log: silentLog,
      metrics: {
        onList: ({ how }) => this.lists.push(how),
        onEnd: ({ reason }) => this.ends.push(reason),
        onDefect: ({ what }) => this.ends.push(`defect: ${what}`),
      },
    });
  }

  async start(): Promise<void> {
    this.#running = this.watch.run(this.#stopping.signal);
    await this.watch.whenSynced(AbortSignal.timeout(callTimeoutMs));
  }

  /** "name@version" of all that it holds. */
  held(): readonly string[] {
    return this.watch.list().map(versionOf).sort();
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the soak is over"));
    await this.#running;
  }
}

export function versionOf(object: RawObject): string {
  const { name, resourceVersion } = readIdentity(object);
  return `${name}@${resourceVersion}`;
}
