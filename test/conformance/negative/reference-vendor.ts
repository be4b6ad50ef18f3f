/** A small imaginary vendor that can do, and says, everything that the suite can ask for. */
import { randomUUID } from "node:crypto";
import { vendorEffects } from "../../../services/vendor-emulator/fault-words.ts";
import type {
  Edit,
  EmulatedInstance,
  Switches,
  VendorEffect,
} from "../../../services/vendor-emulator/fault-words.ts";
import { LaggingStore } from "../../../services/vendor-emulator/lagging-store.ts";
import type {
  ApiAnswer,
  ApiRequest,
  VendorModel,
} from "../../../services/vendor-emulator/vendor-model.ts";

/** The key of each account; it appears in what is refused, as vendors do. */
export const apiKeys: Readonly<Record<string, string>> = {
  first: "sk-reference-sentinel-of-the-first-account",
  second: "sk-reference-sentinel-of-the-second-account",
};
export const referenceHosts: readonly string[] = ["api.reference.example", "eu.reference.example"];

export interface Item {
  readonly id: string;
  readonly account: string;
  readonly name: string;
  readonly voice: string;
  /** As somebody wrote it: "1", "1.0". */
  readonly speed: string;
  readonly kind: string;
  readonly tags: readonly string[];
  readonly works: boolean;
  readonly createdAt: number;
  /** Epoch ms; 0: from the start. */
  readonly readyAt: number;
  readonly awaits: boolean;
  /** Epoch ms at which it is gone; 0: it stays. */
  readonly goneAt: number;
}

const words: Readonly<Record<VendorEffect, ApiAnswer>> = {
  "bad-value": said(422, "bad_value", "speed is out of range"),
  "wrong-path": said(404, "no_route", "there is nothing here"),
  busy: said(409, "item_busy", "the item is being changed"),
  throttled: said(429, "slow_down", "too many requests"),
  "quota-exhausted": said(429, "quota_used_up", "no calls are left this month"),
  "billing-stopped": said(402, "account_stopped", "the invoice is overdue"),
  "bad-credential": said(401, "bad_key", "the key is not known"),
  "missing-scope": said(403, "no_right", "the key may not do this"),
  "server-error": said(500, "internal", "something broke"),
  "bad-gateway": { status: 502, body: "<html><h1>502 Bad Gateway</h1></html>" },
};

export class ReferenceVendor implements VendorModel {
  readonly hosts = referenceHosts;
  readonly vocabulary = {
    effects: vendorEffects,
    switches: [
      "listLagMs",
      "deletionMs",
      "provisionMs",
      "awaitsHuman",
      "pageSize",
      "credential",
      "billing",
    ],
    edits: [
      "rename",
      "change",
      "normalise",
      "remove",
      "unstamp",
      "twin",
      "break",
      "mend",
      "stranger",
    ],
  } as const;
  readonly #items = new LaggingStore<Item>();
  #switches: Required<Switches> = {
    listLagMs: 0,
    deletionMs: 0,
    provisionMs: 0,
    awaitsHuman: false,
    pageSize: 1_000,
    credential: "good",
    billing: "current",
  };

  operationOf({ method, path }: ApiRequest): ReturnType<VendorModel["operationOf"]> {
    if (!/^\/items(\/[^/]+)?$/.test(path)) return undefined;
    if (path === "/items") return method === "POST" ? "create" : "list";
    if (method === "GET") return "read";
    return method === "DELETE" ? "delete" : "update";
  }

  answer(request: ApiRequest): ApiAnswer {
    const { credential, billing } = this.#switches;
    const account = accountOf(request);
    if (account === undefined || credential === "wrong") return this.say("bad-credential", request);
    if (credential === "scopeless") return this.say("missing-scope", request);
    if (request.path === "/account") return { status: 200, body: { billing } };
    switch (this.operationOf(request)) {
      case "create":
        return this.#create(account, bodyOf(request));
      case "list":
        return this.#list(account, request.query);
      case "read":
      case "update":
      case "delete":
        return this.#one(account, request);
      default:
        return this.say("wrong-path", request);
    }
  }

  say(effect: VendorEffect, request: ApiRequest, retryAfterMs?: number): ApiAnswer {
    const word = words[effect];
    const hint = effect === "throttled" ? retryAfterMs : undefined;
    const headers = hint === undefined ? {} : { "retry-after": `${Math.ceil(hint / 1_000)}` };
    if (typeof word.body === "string") return word;
    const sent = request.headers["x-key"] ?? "no key";
    const resetsAt = effect === "quota-exhausted" ? Date.now() + 3_600_000 : undefined;
    return { ...word, headers, body: { ...recordIn(word.body), sent, resetsAt } };
  }

  turn(switches: Required<Switches>): void {
    this.#switches = switches;
  }

  edit({ edit, id }: Edit): readonly string[] {
    if (edit === "stranger") return [this.#put({ ...fresh, account: "first", name: "theirs" })];
    const item = this.#here(id);
    if (item === undefined) throw new Error(`there is no item ${id}`);
    switch (edit) {
      case "rename":
        this.#put({ ...item, name: `${item.name} by hand` });
        return [];
      case "change":
        this.#put({ ...item, voice: `${item.voice}-by-hand` });
        return [];
      case "normalise":
        this.#put({ ...item, speed: `${item.speed}.0` });
        return [];
      case "remove":
        this.#items.put(id, undefined);
        return [];
      case "unstamp":
        this.#put({ ...item, tags: [] });
        return [];
      case "twin":
        return [this.#put({ ...item, id: randomUUID(), createdAt: Date.now() })];
      case "break":
      case "mend":
        this.#put({ ...item, works: edit === "mend" });
        return [];
      default:
        throw new Error("nobody can do that to an item");
    }
  }

  instances(): readonly EmulatedInstance[] {
    return this.#items
      .all()
      .flatMap((item) =>
        isGone(item)
          ? []
          : [{ id: item.id, text: JSON.stringify(item), createdAtMs: item.createdAt }],
      );
  }

  #here(id: string): Item | undefined {
    const item = this.#items.get(id);
    return item === undefined || isGone(item) ? undefined : item;
  }

  #put(item: Omit<Item, "id" | "createdAt"> & Partial<Item>): string {
    const id = item.id ?? randomUUID();
    this.#items.put(id, { ...item, id, createdAt: item.createdAt ?? Date.now() });
    return id;
  }

  #create(account: string, body: Partial<Item>): ApiAnswer {
    const { provisionMs, awaitsHuman } = this.#switches;
    const id = this.#put({
      ...fresh,
      ...settable(body),
      ...(body.kind === undefined ? {} : { kind: body.kind }),
      account,
      readyAt: provisionMs === 0 ? 0 : Date.now() + provisionMs,
      awaits: awaitsHuman,
    });
    return { status: 201, body: { id }, change: "created", instanceId: id };
  }

  #list(account: string, query: URLSearchParams): ApiAnswer {
    const { listLagMs, pageSize } = this.#switches;
    const all = this.#items
      .all(listLagMs)
      .filter((item) => item.account === account && !isGone(item));
    const cursor = query.get("after");
    const start = cursor === null ? 0 : all.findIndex(({ id }) => id === cursor) + 1;
    const end = start + pageSize;
    const items = all.slice(start, end);
    const next = end < all.length ? items.at(-1)?.id : undefined;
    return { status: 200, body: { items: items.map(shown), next } };
  }

  #one(account: string, request: ApiRequest): ApiAnswer {
    const id = request.path.split("/")[2] ?? "";
    const item = this.#here(id);
    if (item === undefined || item.account !== account) {
      return said(404, "item_missing", `there is no item ${id}`);
    }
    switch (request.method) {
      case "PATCH":
        this.#put({ ...item, ...settable(bodyOf(request)) });
        return { status: 200, body: {}, change: "updated", instanceId: id };
      case "DELETE": {
        const { deletionMs } = this.#switches;
        if (deletionMs === 0) this.#items.put(id, undefined);
        else this.#put({ ...item, goneAt: Date.now() + deletionMs });
        return { status: 202, body: {}, change: "deleted", instanceId: id };
      }
      default:
        return { status: 200, body: shown(item) };
    }
  }
}

const fresh: Omit<Item, "id" | "createdAt" | "account"> = {
  name: "",
  voice: "plain",
  speed: "1",
  kind: "standard",
  tags: [],
  works: true,
  readyAt: 0,
  awaits: false,
  goneAt: 0,
};

function accountOf({ headers }: ApiRequest): string | undefined {
  return Object.entries(apiKeys).find(([, key]) => key === headers["x-key"])?.[0];
}

function isGone({ goneAt }: Item): boolean {
  return goneAt !== 0 && Date.now() >= goneAt;
}

/** As a client sees it. */
function shown(item: Item): object {
  const { id, name, voice, speed, kind, tags, works, createdAt, readyAt, awaits, goneAt } = item;
  const state =
    goneAt !== 0 ? "leaving" : awaits ? "waiting" : Date.now() < readyAt ? "making" : "ready";
  return { id, name, voice, speed, kind, tags, works, createdAt, state };
}

function settable({ name, voice, speed, tags }: Partial<Item>): Partial<Item> {
  return {
    ...(name === undefined ? {} : { name }),
    ...(voice === undefined ? {} : { voice }),
    ...(speed === undefined ? {} : { speed }),
    ...(tags === undefined ? {} : { tags }),
  };
}

function said(status: number, word: string, message: string): ApiAnswer {
  return { status, body: { error: word, message } };
}

function bodyOf({ body }: ApiRequest): Partial<Item> {
  return recordIn(JSON.parse(body));
}

function recordIn(json: unknown): Readonly<Record<string, never>> {
  // The door of a test: only the adapter next door writes here.
  return typeof json === "object" && json !== null ? { ...json } : {};
}
