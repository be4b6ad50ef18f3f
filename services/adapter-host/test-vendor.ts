/**
 * A small vendor over real HTTP for this folder's tests, and an adapter that speaks with it. It keeps
 * things in a store, and goes wrong on request: before or after it has committed, or by lagging.
 */
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";

import { ProviderError } from "../contract/provider-error.ts";
import type { VendorResponse } from "../vendor-http/vendor-http.ts";
import type { Adapter, AdapterInfo, FoundInstance, Stamp, VendorCall } from "./adapter.ts";

/** What the vendor keeps. */
export interface Thing {
  readonly id: string;
  name: string;
  parameters: Record<string, string>;
  /** Absent: without a stamp. */
  stamp?: Stamp | undefined;
  state: FoundInstance["state"];
  createdAtMs: number;
  /** True: lists do not show it (yet). */
  isUnlisted?: boolean;
  /** True: reads by id do not show it (yet) either. */
  isInvisible?: boolean;
}

/** The next request of `method` goes wrong; "after": when its effect has been stored. */
export interface Fault {
  readonly method: string;
  readonly when: "before" | "after";
  readonly effect: (request: IncomingMessage, response: ServerResponse) => void;
}

export const reset: Fault["effect"] = (request) => request.socket.resetAndDestroy();
export const status =
  (code: number, body: unknown = {}): Fault["effect"] =>
  (_request, response) =>
    send(response, code, body);
export const html: Fault["effect"] = (_request, response) =>
  response.writeHead(200, { "content-type": "text/html" }).end("<html>");

/** See the file comment. */
export class TestVendor {
  readonly things = new Map<string, Thing>();
  /** "POST /things", in order of arrival. */
  readonly requests: string[] = [];
  readonly faults: Fault[] = [];
  /** The key that the last change came with. */
  lastApiKey: string | undefined;
  /** Instances per page. */
  pageSize = 100;
  /** What each new thing starts as. */
  newThing: Partial<Thing> = {};
  isDeletingSlowly = false;
  /** Runs before a list page is answered: lists that shift while they are read. */
  onList: () => void = () => undefined;
  readonly #server: Server;
  readonly #held: (() => void)[] = [];
  #nextId = 1;

  private constructor() {
    this.#server = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => this.#serve(request, response, body));
    });
  }

  static async start(): Promise<TestVendor> {
    const vendor = new TestVendor();
    await new Promise<void>((resolve) => vendor.#server.listen(0, "127.0.0.1", resolve));
    return vendor;
  }

  get origin(): string {
    const address = this.#server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    return `http://127.0.0.1:${port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Puts a thing there, past the API. */
  put(thing: Partial<Thing>): Thing {
    const id = thing.id ?? `t${this.#nextId++}`;
    const made: Thing = {
      id,
      name: "",
      parameters: {},
      state: "READY",
      createdAtMs: 1_000_000 + this.#nextId,
      ...thing,
    };
    this.things.set(id, made);
    return made;
  }

  /** How many mutations arrived. */
  get mutationCount(): number {
    return this.requests.filter((request) => !request.startsWith("GET")).length;
  }

  /** A fault's effect: keeps the answer until `releaseHeld`. */
  readonly hold: Fault["effect"] = (request, response) => {
    this.#held.push(() => this.#answer(request, response, heldBodies.get(request) ?? ""));
  };

  /** A fault's effect for "after": keeps the answer {} until `releaseHeld`. */
  holdAnswer(body: () => unknown): Fault["effect"] {
    return (_request, response) => {
      this.#held.push(() => send(response, 200, body()));
    };
  }

  get heldCount(): number {
    return this.#held.length;
  }

  releaseHeld(): void {
    for (const answer of this.#held.splice(0)) answer();
  }

  #serve(request: IncomingMessage, response: ServerResponse, body: string): void {
    this.requests.push(`${request.method} ${request.url}`);
    heldBodies.set(request, body);
    const apiKey = request.headers["x-api-key"];
    if (typeof apiKey === "string") this.lastApiKey = apiKey;
    const at = this.faults.findIndex(({ method }) => method === request.method);
    const [fault] = at < 0 ? [] : this.faults.splice(at, 1);
    if (fault?.when === "before") {
      fault.effect(request, response);
      return;
    }
    if (fault !== undefined) this.#apply(request, body);
    if (fault === undefined) this.#answer(request, response, body);
    else fault.effect(request, response);
  }

  #answer(request: IncomingMessage, response: ServerResponse, body: string): void {
    const [code, answer] = this.#apply(request, body);
    send(response, code, answer);
  }

  #apply(request: IncomingMessage, body: string): readonly [number, unknown] {
    const url = new URL(request.url ?? "/", "http://vendor");
    const id = url.pathname.split("/")[2];
    if (!url.pathname.startsWith("/things")) return [404, {}];
    if (id === undefined) {
      if (request.method === "POST") return this.#create(JSON.parse(body));
      return this.#list(Number(url.searchParams.get("offset") ?? "0"));
    }
    const thing = this.things.get(id);
    if (thing === undefined || thing.isInvisible === true) return [404, { error: "not_found" }];
    switch (request.method) {
      case "PATCH":
        Object.assign(thing, JSON.parse(body));
        return [200, thing];
      case "DELETE":
        if (this.isDeletingSlowly) thing.state = "DELETING";
        else this.things.delete(id);
        return [200, {}];
      default:
        return [200, thing];
    }
  }

  #create(fields: Partial<Thing>): readonly [number, unknown] {
    const existing = fields.id === undefined ? undefined : this.things.get(fields.id);
    const thing = existing ?? this.put({ ...fields, ...this.newThing });
    return [200, { id: thing.id }];
  }

  #list(offset: number): readonly [number, unknown] {
    this.onList();
    const listed = [...this.things.values()].filter(({ isUnlisted }) => isUnlisted !== true);
    const things = listed.slice(offset, offset + this.pageSize);
    const next = offset + this.pageSize < listed.length ? offset + this.pageSize : undefined;
    return [200, { things, next }];
  }
}

const heldBodies = new WeakMap<IncomingMessage, string>();

function send(response: ServerResponse, code: number, body: unknown): void {
  response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
}

export const testInfo: AdapterInfo = {
  name: "test",
  capabilities: ["UPDATE", "DELETE", "RELEASE", "ADOPT", "LIST_BY_OWNER", "VALIDATE_ONLY"],
  stampPlace: "TAG",
  visibilityLagMs: 0,
  areListsConsistent: true,
  regions: [],
  parameterSchema: {
    type: "object",
    additionalProperties: false,
    properties: {
      size: { type: "string", pattern: "^[0-9]+$" },
      fixed: { type: "string" },
    },
  },
  immutableFields: ["parameters.fixed"],
  mutationDeadlineMs: 5000,
};

/**
 * The adapter of TestVendor; only lists tell where a key is, unless `find` is given. It has the methods
 * that its capabilities name.
 */
export function testAdapter(info: Partial<AdapterInfo> = {}, own: Partial<Adapter> = {}): Adapter {
  const { update, release, ...rest } = wholeAdapter({ ...testInfo, ...info }, own);
  const { capabilities } = rest.info;
  return {
    ...rest,
    ...(capabilities.includes("UPDATE") && update !== undefined ? { update } : {}),
    ...(capabilities.includes("RELEASE") && release !== undefined ? { release } : {}),
  };
}

function wholeAdapter(info: AdapterInfo, own: Partial<Adapter>): Adapter {
  return {
    info,
    realm: async ({ target }) => `test:${target.account}`,
    read: async (call, id) => {
      try {
        const path = `/things/${encodeURIComponent(id)}`;
        return found(await call.http.send({ method: "GET", path, isMutation: false }));
      } catch (error) {
        if (error instanceof ProviderError && error.reason === "NOT_FOUND") return undefined;
        throw error;
      }
    },
    list: async (call, token) => {
      const query = token === undefined ? {} : { offset: token };
      const request = { method: "GET", path: "/things", query, isMutation: false } as const;
      const { json } = await call.http.send(request);
      const page = json as { things: Thing[]; next?: number };
      return {
        instances: page.things.map(foundThing),
        ...(page.next === undefined ? {} : { nextToken: String(page.next) }),
      };
    },
    create: async (call, wanted) => {
      const body = {
        ...(info.stampPlace === "ID" ? { id: wanted.stamp.keyShort } : {}),
        name: wanted.displayName ?? "",
        parameters: wanted.parameters,
        stamp: wanted.stamp,
      };
      const response = await mutate(call, "POST", "/things", body);
      return (response.json as { id: string }).id;
    },
    update: async (call, { id }, wanted, changes) => {
      const body: Partial<Thing> = { stamp: wanted.stamp };
      if (changes.length > 0) body.parameters = { ...wanted.parameters };
      if (wanted.displayName !== undefined) body.name = wanted.displayName;
      await mutate(call, "PATCH", `/things/${id}`, body);
    },
    delete: async (call, { id }) => {
      try {
        await mutate(call, "DELETE", `/things/${id}`, undefined);
        return "deleted";
      } catch (error) {
        if (error instanceof ProviderError && error.reason === "NOT_FOUND") return "absent";
        throw error;
      }
    },
    release: async (call, { id }) => {
      await mutate(call, "PATCH", `/things/${id}`, { stamp: null });
    },
    classify: ({ status, json }) => {
      if (status < 300) return undefined;
      const isOurs = typeof json === "object" && json !== null && "error" in json;
      if (status === 404 && isOurs) return new ProviderError("NOT_FOUND", "not_found");
      if (status === 401) return new ProviderError("BAD_CREDENTIAL", "unauthenticated");
      if (status === 403) return new ProviderError("MISSING_SCOPE", "forbidden");
      if (status === 429) return new ProviderError("THROTTLED", "slow down");
      if (status === 422) return new ProviderError("INVALID_FIELD", "bad value");
      if (status === 402) return new ProviderError("BILLING_STOPPED", "pay first");
      return new ProviderError("VENDOR_ERROR", `status ${status}`);
    },
    ...own,
  };
}

function mutate(
  call: VendorCall,
  method: "POST" | "PATCH" | "DELETE",
  path: string,
  body: unknown,
): Promise<VendorResponse> {
  const headers = { "x-api-key": call.credential["apiKey"] ?? "" };
  return call.http.send({ method, path, headers, body, isMutation: true });
}

function found({ json }: VendorResponse): FoundInstance {
  return foundThing(json as Thing);
}

function foundThing(thing: Thing): FoundInstance {
  return {
    id: thing.id,
    // Null where it was taken off.
    ...(thing.stamp ? { stamp: thing.stamp } : {}),
    state: thing.state,
    displayName: thing.name,
    parameters: thing.parameters,
    availability: "AVAILABLE",
    createdAtMs: thing.createdAtMs,
  };
}
