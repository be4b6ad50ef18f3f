import { statusBody } from "./fake-api-server.ts";
import type { FakeCall, FakeWatch } from "./fake-api-server.ts";

interface StoredObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
  readonly [field: string]: unknown;
}

/**
 * For tests: one collection of objects in memory, listed and watched as the API server does it.
 * Faults are set as a function that may answer a call in the collection's place.
 */
export class FakeCollection {
  readonly path = "/apis/example.com/v1/widgets";
  /** Answers true where it has answered the call itself. */
  fault: (call: FakeCall) => boolean = () => false;
  /** Whether a streaming list ends its initial events with a bookmark. */
  isEndBookmarkSent = true;
  /** Whether changes reach open watches; a frozen watch misses them for good. */
  isDelivering = true;
  resourceVersion = 1_000;
  readonly #objects = new Map<string, StoredObject>();
  readonly #history: {
    readonly version: number;
    readonly type: string;
    readonly object: object;
  }[] = [];
  readonly #watches = new Set<FakeWatch>();
  #oldestVersion = 0;
  #uidCount = 0;

  /** Watches open now. */
  get watches(): readonly FakeWatch[] {
    return [...this.#watches].filter((watch) => watch.isOpen);
  }

  readonly handler = (call: FakeCall): void => {
    if (this.fault(call)) return;
    if (call.method !== "GET" || call.path !== this.path) {
      return call.answer(404, statusBody(404, "NotFound"));
    }
    if (call.query.get("watch") !== "true") return this.#list(call);
    return this.#watch(call);
  };

  /** Creates or changes an object. */
  put(name: string, fields: object = {}): StoredObject {
    const last = this.#objects.get(name);
    this.resourceVersion += 1;
    if (last === undefined) this.#uidCount += 1;
    const object: StoredObject = {
      apiVersion: "example.com/v1",
      kind: "Widget",
      metadata: {
        name,
        namespace: "default",
        uid: last?.metadata.uid ?? `uid-${this.#uidCount}`,
        resourceVersion: String(this.resourceVersion),
      },
      ...fields,
    };
    this.#objects.set(name, object);
    this.#publish(last === undefined ? "ADDED" : "MODIFIED", object);
    return object;
  }

  delete(name: string): void {
    const last = this.#objects.get(name);
    if (last === undefined) throw new Error(`no object "${name}"`);
    this.resourceVersion += 1;
    this.#objects.delete(name);
    const resourceVersion = String(this.resourceVersion);
    this.#publish("DELETED", { ...last, metadata: { ...last.metadata, resourceVersion } });
  }

  bookmark(): void {
    for (const watch of this.watches) watch.send("BOOKMARK", this.#bookmarkObject());
  }

  /** Forgets history: watches from before now are answered with 410. */
  compact(): void {
    this.#oldestVersion = this.resourceVersion;
    this.#history.length = 0;
  }

  #publish(type: string, object: object): void {
    this.#history.push({ version: this.resourceVersion, type, object });
    if (!this.isDelivering) return;
    for (const watch of this.watches) watch.send(type, object);
  }

  #list(call: FakeCall): void {
    const limit = Number(call.query.get("limit") ?? "0");
    const start = Number(call.query.get("continue") ?? "0");
    const all = [...this.#objects.values()].toSorted((a, b) =>
      a.metadata.name < b.metadata.name ? -1 : 1,
    );
    const end = limit === 0 ? all.length : start + limit;
    const items = all.slice(start, end).map(({ apiVersion: _v, kind: _k, ...item }) => item);
    call.answer(200, {
      apiVersion: "example.com/v1",
      kind: "WidgetList",
      metadata: {
        resourceVersion: String(this.resourceVersion),
        ...(end < all.length && { continue: String(end) }),
      },
      items,
    });
  }

  #watch(call: FakeCall): void {
    const isList = call.query.get("sendInitialEvents") === "true";
    const from = Number(call.query.get("resourceVersion") ?? "0");
    if (!isList && from < this.#oldestVersion) {
      return call.answer(410, statusBody(410, "Expired"));
    }
    const watch = call.openWatch();
    this.#watches.add(watch);
    if (isList) {
      for (const object of this.#objects.values()) watch.send("ADDED", object);
      if (!this.isEndBookmarkSent) return;
      watch.send("BOOKMARK", this.#bookmarkObject({ "k8s.io/initial-events-end": "true" }));
      return;
    }
    for (const { version, type, object } of this.#history) {
      if (version > from) watch.send(type, object);
    }
  }

  #bookmarkObject(annotations?: Readonly<Record<string, string>>): object {
    const metadata = { resourceVersion: String(this.resourceVersion), annotations };
    return { apiVersion: "example.com/v1", kind: "Widget", metadata };
  }
}
