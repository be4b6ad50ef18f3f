/** Objects of an API server in memory, as many as a test wants, seen by the controller without delay. */
import { ApiObjects } from "../../controller/reconcile/api-objects.ts";
import type { ObjectEvent, ProviderObjects } from "../../controller/reconcile/provider-objects.ts";
import { ApiServer } from "../../controller/reconcile/simulation/api-server.ts";
import { objectKey, readIdentity } from "../../controller/kubernetes/raw-object.ts";
import type { RawObject } from "../../controller/kubernetes/raw-object.ts";
import type { DigitalHumanProvider } from "../../controller/resource/digital-human-provider.ts";
import type { JsonObject } from "../../controller/resource/json-door.ts";
import type { ProviderClass } from "../../controller/resource/provider-class.ts";

const namespace = "media";

export class MemoryObjects {
  readonly events: (ObjectEvent & { readonly key: string })[] = [];
  readonly #classes: readonly ProviderClass[];
  readonly #servers = new Map<string, ApiServer>();

  constructor(classes: readonly ProviderClass[]) {
    this.#classes = classes;
  }

  /** The new object's key. */
  create(name: string, spec: JsonObject): string {
    const key = `${namespace}/${name}`;
    const server = new ApiServer({
      turns: { wait: async () => undefined },
      key,
      fateOfWrite: () => "applied",
      ignoresPreconditions: false,
    });
    server.create(spec);
    this.#servers.set(key, server);
    return key;
  }

  /** Undefined: it is gone. */
  get(key: string): DigitalHumanProvider | undefined {
    return this.#server(key).object;
  }

  annotate(key: string, annotations: JsonObject): void {
    this.#server(key).annotate(annotations);
  }

  editSpec(key: string, change: JsonObject): void {
    this.#server(key).editSpec(change);
  }

  /** A user deletes it: finalizers keep it. */
  delete(key: string): void {
    this.#server(key).delete();
  }

  /** Writes of the controller to all objects. */
  get writeCount(): number {
    return [...this.#servers.values()].reduce((sum, { writeCount }) => sum + writeCount, 0);
  }

  asSeenByController(): ProviderObjects {
    const client = (key: string) => this.#server(key).clientOf("controller");
    const keyOf = (raw: RawObject): string => objectKey(readIdentity(raw));
    return new ApiObjects({
      watch: { get: (key) => this.#servers.get(key)?.current.object },
      classes: () => this.#classes,
      protectClass: async () => "protected",
      client: {
        get: (key) => client(key).get(key),
        patch: (before, after) => client(keyOf(before)).patch(before, after),
        patchStatus: (before, after) => client(keyOf(before)).patchStatus(before, after),
      },
      ownWrites: { record: () => undefined, recordEnd: () => undefined, hasSeen: () => true },
      onEvent: (object, event) => this.events.push({ ...event, key: object.key }),
      onWrite: () => undefined,
    });
  }

  #server(key: string): ApiServer {
    const server = this.#servers.get(key);
    if (server === undefined) throw new Error(`there is no object "${key}"`);
    return server;
  }
}
