/**
 * "Reference", a small imaginary vendor, as a model for the emulator: instances with ids of its own
 * choice, tags, paged lists that may lag, removals that take time, and answers that lie as vendors'
 * do (quota as 401, a refused token repeated in the error). It knows all words of fault-words.ts.
 *
 *     GET, POST          /v1/WORKSPACE/REGION/instances        ?after=ID; {"instances": [...], "next": ID}
 *     GET, PATCH, DELETE /v1/WORKSPACE/REGION/instances/ID
 */
import {
  editNames,
  switchNames,
  vendorEffects,
} from "../../../services/vendor-emulator/fault-words.ts";
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

export const vendorHost = "api.reference.example";
/** The same API, in front of the other region. */
export const otherVendorHost = "east.reference.example";
/** Somebody else's, to which a redirect leads: it answers whoever comes with an empty list. */
export const strangeHost = "elsewhere.example";
export const vendorWorkspace = "acme";
export const vendorToken = "ref-token-5f2c9a71d0e84b36";

/** As the API shows it, but for what depends on the time. */
interface VendorRecord {
  readonly id: string;
  readonly region: string;
  readonly name: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
  readonly limits: Readonly<Record<string, number>>;
  readonly created_at_ms: number;
  readonly works: boolean;
  readonly awaits_human: boolean;
  /** Until then it is being made. */
  readonly ready_at_ms: number;
  /** From then on it is gone; absent: nobody removes it. */
  readonly gone_at_ms?: number;
}

type Fields = Readonly<Record<string, unknown>>;

const switchesAtFirst: Required<Switches> = {
  listLagMs: 0,
  deletionMs: 0,
  provisionMs: 0,
  awaitsHuman: false,
  pageSize: 1_000,
  credential: "good",
  billing: "current",
};

export class ReferenceVendor implements VendorModel {
  readonly hosts = [vendorHost, otherVendorHost, strangeHost];
  readonly vocabulary = { switches: switchNames, edits: editNames, effects: vendorEffects };
  readonly #records = new LaggingStore<VendorRecord>();
  #switches = switchesAtFirst;
  readonly #resetsAtMs = Date.now() + 3_600_000;
  #count = 0;

  operationOf({ method, path }: ApiRequest): ReturnType<VendorModel["operationOf"]> {
    const place = placeOf(path);
    if (place === undefined) return undefined;
    if (place.id === "") return method === "POST" ? "create" : "list";
    return method === "PATCH" ? "update" : method === "DELETE" ? "delete" : "read";
  }

  answer(request: ApiRequest): ApiAnswer {
    if (request.host === strangeHost) return { status: 200, body: { instances: [], next: "" } };
    const { credential } = this.#switches;
    if (credential === "wrong" || !isKnownToken(request)) return refusedToken(request);
    if (credential === "scopeless") return this.say("missing-scope", request, undefined);
    const place = placeOf(request.path);
    if (place === undefined) return this.say("wrong-path", request, undefined);
    if (place.id === "") {
      return request.method === "POST" ? this.#create(place, request) : this.#list(place, request);
    }
    const record = this.#present(place.id);
    if (record === undefined || record.region !== place.region) {
      return problem(404, "instance_not_found", `there is no ${place.id}`, { id: place.id });
    }
    switch (request.method) {
      case "PATCH":
        return this.#update(record, request);
      case "DELETE":
        return this.#remove(record);
      default:
        return { status: 200, body: this.#shown(record) };
    }
  }

  say(effect: VendorEffect, request: ApiRequest, retryAfterMs: number | undefined): ApiAnswer {
    switch (effect) {
      case "bad-value":
        return problem(422, "bad_value", "the voice is not to be had", { field: "voice" });
      case "wrong-path":
        return problem(404, "no_such_route", `no route ${request.path}`);
      case "busy":
        return problem(409, "wrong_state", "something else is under way");
      case "throttled":
        return {
          ...problem(429, "slow_down", "too many requests"),
          ...(retryAfterMs === undefined
            ? {}
            : { headers: { "retry-after": `${Math.ceil(retryAfterMs / 1_000)}` } }),
        };
      case "quota-exhausted": {
        return problem(401, "quota_used_up", "no calls left", {
          quota: "daily calls",
          resets_at_ms: this.#resetsAtMs,
        });
      }
      case "billing-stopped":
        return problem(402, "invoice_overdue", "the account is stopped");
      case "bad-credential":
        return refusedToken(request);
      case "missing-scope":
        return problem(403, "not_allowed", "the token lacks the scope instances");
      case "server-error":
        return problem(500, "oops", "something broke");
      default:
        return { status: 502, body: "<html><h1>502 Bad Gateway</h1></html>" };
    }
  }

  turn(switches: Required<Switches>): void {
    this.#switches = switches;
  }

  edit({ edit, id }: Edit): readonly string[] {
    if (edit === "stranger") return [this.#add({ region: "west", name: "a stranger's" }).id];
    const record = this.#present(id);
    if (record === undefined) throw new Error(`id: there is no ${id}`);
    const change = (own: Partial<VendorRecord>): readonly string[] => {
      this.#records.put(id, { ...record, ...own });
      return [];
    };
    switch (edit) {
      case "rename":
        return change({ name: `${record.name} (renamed)` });
      case "change":
        return change({ parameters: { ...record.parameters, voice: "bass" } });
      case "normalise": {
        const { speed = "1" } = record.parameters;
        return change({ parameters: { ...record.parameters, speed: `0${Number(speed)}0e0` } });
      }
      case "remove":
        this.#records.put(id, undefined);
        return [];
      case "unstamp":
        return change({ tags: {} });
      case "twin":
        return [this.#add({ ...record }).id];
      case "break":
        return change({ works: false });
      default:
        return change({ works: true });
    }
  }

  instances(): readonly EmulatedInstance[] {
    return this.#records.all().flatMap(({ id }) => {
      const record = this.#present(id);
      return record === undefined
        ? []
        : [{ id, text: JSON.stringify(record), createdAtMs: record.created_at_ms }];
    });
  }

  #present(id: string, lagMs = 0): VendorRecord | undefined {
    const record = this.#records.get(id, lagMs);
    return record === undefined || isGone(record, Date.now() - lagMs) ? undefined : record;
  }

  #list({ region }: Place, { query }: ApiRequest): ApiAnswer {
    const { listLagMs, pageSize } = this.#switches;
    const after = query.get("after") ?? "";
    const all = this.#records
      .all(listLagMs)
      .filter((one) => one.region === region && !isGone(one, Date.now() - listLagMs))
      .filter(({ id }) => id > after)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    const page = all.slice(0, Math.min(pageSize, 100));
    const next = page.length < all.length ? (page.at(-1)?.id ?? "") : "";
    return { status: 200, body: { instances: page.map((one) => this.#shown(one)), next } };
  }

  #create({ region }: Place, request: ApiRequest): ApiAnswer {
    const fields = fieldsOf(request.body);
    if (fields === undefined) return problem(400, "bad_json", "the body is no object");
    const { billing } = this.#switches;
    if (billing !== "current") return this.say("billing-stopped", request, undefined);
    const record = this.#add({ region, ...changesOf(fields) });
    const { id: instanceId } = record;
    return { status: 201, body: this.#shown(record), change: "created", instanceId };
  }

  #update(record: VendorRecord, { body }: ApiRequest): ApiAnswer {
    const fields = fieldsOf(body);
    if (fields === undefined) return problem(400, "bad_json", "the body is no object");
    const changes = changesOf(fields);
    const parameters = { ...record.parameters, ...changes.parameters };
    const limits = { ...record.limits, ...changes.limits };
    if (parameters["engine"] !== record.parameters["engine"]) {
      return problem(422, "bad_value", "the engine cannot be changed", { field: "engine" });
    }
    const next = { ...record, ...changes, parameters, limits };
    this.#records.put(record.id, next);
    const instanceId = record.id;
    return { status: 200, body: this.#shown(next), change: "updated", instanceId };
  }

  #remove(record: VendorRecord): ApiAnswer {
    const { deletionMs } = this.#switches;
    const next = deletionMs === 0 ? undefined : { ...record, gone_at_ms: Date.now() + deletionMs };
    this.#records.put(record.id, record.gone_at_ms === undefined ? next : record);
    return { status: 202, body: {}, change: "deleted", instanceId: record.id };
  }

  #add(own: Partial<VendorRecord>): VendorRecord {
    this.#count += 1;
    const nowMs = Date.now();
    const record: VendorRecord = {
      name: "",
      parameters: {},
      tags: {},
      limits: {},
      works: true,
      region: "west",
      ...own,
      id: `ref-${String(this.#count).padStart(6, "0")}`,
      created_at_ms: nowMs,
      awaits_human: this.#switches.awaitsHuman,
      ready_at_ms: nowMs + this.#switches.provisionMs,
    };
    this.#records.put(record.id, record);
    return record;
  }

  #shown({ region: _region, ready_at_ms, gone_at_ms, ...record }: VendorRecord): Fields {
    const isMaking = Date.now() < ready_at_ms;
    const idle = record.awaits_human ? "waiting" : isMaking ? "making" : "active";
    return {
      ...record,
      state: gone_at_ms === undefined ? idle : "deleting",
      ...(record.awaits_human ? { confirm_url: `https://${vendorHost}/confirm/${record.id}` } : {}),
      billing: this.#switches.billing,
      usage: { streams: 0, streams_max: 4, calls: 7, calls_reset_at_ms: this.#resetsAtMs },
    };
  }
}

interface Place {
  readonly region: string;
  /** Empty: all of them. */
  readonly id: string;
}

function placeOf(path: string): Place | undefined {
  const match = /^\/v1\/acme\/(west|east)\/instances(?:\/([^/]+))?$/.exec(path);
  if (match === null) return undefined;
  const [, region = "", id = ""] = match;
  return { region, id: decodeURIComponent(id) };
}

function isGone({ gone_at_ms }: VendorRecord, atMs: number): boolean {
  return gone_at_ms !== undefined && gone_at_ms <= atMs;
}

function isKnownToken({ headers }: ApiRequest): boolean {
  return headers["authorization"] === `Bearer ${vendorToken}`;
}

/** As vendors do, it repeats what it was sent. */
function refusedToken({ headers }: ApiRequest): ApiAnswer {
  return problem(401, "unknown_token", `nobody has the token "${headers["authorization"] ?? ""}"`);
}

function problem(status: number, code: string, message: string, more: Fields = {}): ApiAnswer {
  return { status, body: { error: { code, message, ...more } } };
}

function fieldsOf(body: string): Fields | undefined {
  try {
    const json: unknown = JSON.parse(body);
    return typeof json === "object" && json !== null ? { ...json } : undefined;
  } catch (_notJson) {
    return undefined;
  }
}

/** What a create or an update may say; the rest is the vendor's own. */
function changesOf(fields: Fields): Partial<VendorRecord> {
  const known = ["name", "parameters", "tags", "limits"].filter((name) => name in fields);
  return Object.fromEntries(known.map((name) => [name, fields[name]]));
}
