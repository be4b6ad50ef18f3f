/**
 * Acme's API on this machine, for tests: the vendor's world, and its own words for what goes wrong.
 * What the vendor's documents do not say stands in README.md; be careful where you guess.
 */
import { randomUUID } from "node:crypto";

import type {
  Edit,
  EmulatedInstance,
  Switches,
  VendorEffect,
} from "../../services/vendor-emulator/fault-words.ts";
import { vendorEffects } from "../../services/vendor-emulator/fault-words.ts";
import { LaggingStore } from "../../services/vendor-emulator/lagging-store.ts";
import type {
  ApiAnswer,
  ApiRequest,
  VendorModel,
} from "../../services/vendor-emulator/vendor-model.ts";

/** A key that is good from the start. */
export const emulatorApiKey = "acme-emulator-key-of-the-first-account";

/** Fill in: hosts of the vendor's API. */
export const apiHosts: readonly string[] = ["api.acme.example"];

/**
 * Fill in: what the vendor answers when things go wrong, from its documents. Each row here needs its
 * row in errors.ts. A word that this vendor never says is taken out of `vocabulary` below.
 */
const words: { readonly [effect in VendorEffect]?: ApiAnswer } = {
  "server-error": { status: 500, body: { error: { code: "internal", message: "try again" } } },
  "bad-gateway": { status: 502, body: "<html><h1>502 Bad Gateway</h1></html>" },
};

/** Fill in: an instance as the vendor keeps it. */
interface Instance {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly voice: string;
  readonly speed: number;
  readonly tags: readonly string[];
  readonly created_at: string;
}

const fresh = { name: "", status: "active", voice: "default", speed: 1, tags: [] };

export class AcmeModel implements VendorModel {
  readonly hosts = apiHosts;
  readonly vocabulary = {
    effects: vendorEffects,
    switches: ["listLagMs", "pageSize", "credential"],
    edits: ["rename", "change", "remove", "unstamp", "twin", "break", "mend", "stranger"],
  } as const;
  readonly #instances = new LaggingStore<Instance>();
  #switches: Pick<Required<Switches>, "listLagMs" | "pageSize" | "credential"> = {
    listLagMs: 0,
    pageSize: 1_000,
    credential: "good",
  };

  operationOf({ method, path }: ApiRequest): ReturnType<VendorModel["operationOf"]> {
    if (!path.startsWith("/v1/instances")) return undefined;
    if (path === "/v1/instances") return method === "POST" ? "create" : "list";
    if (method === "GET") return "read";
    return method === "DELETE" ? "delete" : "update";
  }

  answer(request: ApiRequest): ApiAnswer {
    const { credential } = this.#switches;
    const isKnown = request.headers["authorization"] === `Bearer ${emulatorApiKey}`;
    if (!isKnown || credential === "wrong") return this.say("bad-credential");
    if (credential === "scopeless") return this.say("missing-scope");
    switch (this.operationOf(request)) {
      case "create":
        return this.#create(bodyOf(request));
      case "list":
        return this.#list(request.query);
      case "read":
      case "update":
      case "delete":
        return this.#one(request);
      default:
        return this.say("wrong-path");
    }
  }

  say(effect: VendorEffect, _request?: ApiRequest, retryAfterMs?: number): ApiAnswer {
    const word = words[effect];
    if (word === undefined) {
      const message = `Fill in, emulator.ts, words: what Acme answers for "${effect}"; then its row in errors.ts`;
      return { status: 418, body: { error: { code: "fill_in", message } } };
    }
    if (effect !== "throttled" || retryAfterMs === undefined) return word;
    const seconds = Math.ceil(retryAfterMs / 1_000);
    return { ...word, headers: { ...word.headers, "retry-after": `${seconds}` } };
  }

  turn({ listLagMs, pageSize, credential }: Required<Switches>): void {
    this.#switches = { listLagMs, pageSize, credential };
  }

  edit({ edit, id }: Edit): readonly string[] {
    if (edit === "stranger") return [this.#put({ ...fresh, name: "somebody else's" })];
    const instance = this.#instances.get(id);
    if (instance === undefined) throw new Error(`there is no instance ${id}`);
    switch (edit) {
      case "rename":
        this.#put({ ...instance, name: `${instance.name} at the console` });
        return [];
      case "change":
        this.#put({ ...instance, speed: instance.speed + 1 });
        return [];
      case "remove":
        this.#instances.put(id, undefined);
        return [];
      case "unstamp":
        this.#put({ ...instance, tags: [] });
        return [];
      case "twin": {
        const { name, status, voice, speed, tags } = instance;
        return [this.#put({ name, status, voice, speed, tags })];
      }
      case "break":
      case "mend":
        this.#put({ ...instance, status: edit === "break" ? "broken" : "active" });
        return [];
      default:
        throw new Error(`nobody can ${edit} an instance of Acme`);
    }
  }

  instances(): readonly EmulatedInstance[] {
    return this.#instances.all().map((instance) => ({
      id: instance.id,
      text: JSON.stringify(instance),
      createdAtMs: Date.parse(instance.created_at),
    }));
  }

  #put(fields: Omit<Instance, "id" | "created_at"> & Partial<Instance>): string {
    const id = fields.id ?? randomUUID();
    const created = fields.created_at ?? new Date().toISOString();
    this.#instances.put(id, { ...fields, id, created_at: created });
    return id;
  }

  #create(body: Partial<Instance>): ApiAnswer {
    const id = this.#put({ ...fresh, ...settingsOf(body) });
    return { status: 201, body: { id }, change: "created", instanceId: id };
  }

  #list(query: URLSearchParams): ApiAnswer {
    const { listLagMs, pageSize } = this.#switches;
    const all = this.#instances.all(listLagMs);
    const cursor = query.get("cursor");
    const start = cursor === null ? 0 : all.findIndex(({ id }) => id === cursor) + 1;
    const end = start + Math.min(pageSize, Number(query.get("limit") ?? "100"));
    const data = all.slice(start, end);
    const next = end < all.length ? data.at(-1)?.id : undefined;
    return { status: 200, body: { data, ...(next === undefined ? {} : { next }) } };
  }

  #one(request: ApiRequest): ApiAnswer {
    const id = request.path.split("/")[3] ?? "";
    const instance = this.#instances.get(id);
    if (instance === undefined) {
      const error = { code: "instance_not_found", message: `no instance ${id}` };
      return { status: 404, body: { error } };
    }
    switch (request.method) {
      case "PATCH":
        this.#put({ ...instance, ...settingsOf(bodyOf(request)) });
        return { status: 200, body: this.#instances.get(id), change: "updated", instanceId: id };
      case "DELETE":
        this.#instances.put(id, undefined);
        return { status: 204, change: "deleted", instanceId: id };
      default:
        return { status: 200, body: instance };
    }
  }
}

/** Fill in: what a client may set. */
function settingsOf({ name, voice, speed, tags }: Partial<Instance>): Partial<Instance> {
  return {
    ...(name === undefined ? {} : { name }),
    ...(voice === undefined ? {} : { voice }),
    ...(speed === undefined ? {} : { speed }),
    ...(tags === undefined ? {} : { tags }),
  };
}

function bodyOf({ body }: ApiRequest): Partial<Instance> {
  const json: unknown = JSON.parse(body);
  // The door of a test: only the adapter next door writes here, and its tests say what it writes.
  return typeof json === "object" && json !== null ? { ...json } : {};
}
