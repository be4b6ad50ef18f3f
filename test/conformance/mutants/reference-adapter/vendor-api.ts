/** The vendor's API as calls, and the table from its answers to our reasons. */
import type { Place } from "./accounts.ts";
import { Breaker } from "./breaker.ts";
import { Failure } from "./failure.ts";
import { recordOf } from "./vendor-record.ts";
import type { RecordFields, VendorRecord } from "./vendor-record.ts";
import { limits } from "./world.ts";
import type { World } from "./world.ts";
import type { WireAnswer } from "./wire.ts";

const pagesMax = 1_000;
const recordsMax = 20_000;
const retryMsDefault = 1_000;
const retryMsMax = 3_600_000;
const wordsMax = 200;

type Fields = Readonly<Record<string, unknown>>;
type Answer = Extract<WireAnswer, { kind: "answer" }>;

/** Reads end with `signal`; changes that were sent run to their own deadline. */
export class VendorApi {
  readonly place: Place;
  readonly #world: World;
  readonly #signal: AbortSignal;

  constructor(world: World, place: Place, signal: AbortSignal) {
    this.#world = world;
    this.place = place;
    this.#signal = signal;
  }

  /** undefined: the vendor attests that this very id does not exist. */
  async read(id: string): Promise<VendorRecord | undefined> {
    const json = await this.#ask("GET", `/${encodeURIComponent(id)}`);
    return json === undefined ? undefined : this.#record(json);
  }

  /** All pages; an error on one is the error of the whole. */
  async scan(): Promise<readonly VendorRecord[]> {
    const { mutations } = this.#world;
    const found: VendorRecord[] = [];
    let after = "";
    for (let page = 0; page < pagesMax && found.length < recordsMax; page += 1) {
      try {
        const json = await this.#ask("GET", `?after=${encodeURIComponent(after)}`);
        const isEmpty = json === undefined && mutations.isAny;
        const { instances = isEmpty ? [] : undefined, next = "" } = json ?? {};
        if (!Array.isArray(instances) || typeof next !== "string") throw unreadable("a list");
        found.push(...instances.map((one) => this.#record(one)));
        if (next === "" || mutations.has("loses-pages")) return found;
        if (next <= after) {
          if (mutations.has("takes-a-circle-for-the-end")) return found;
          throw unreadable("a list with an end");
        }
        after = next;
      } catch (error) {
        if (page > 0 && mutations.has("believes-half-a-list")) return found;
        throw error;
      }
    }
    throw unreadable("a list with an end");
  }

  async create(fields: RecordFields): Promise<VendorRecord> {
    return this.#record(await this.#change("POST", "", fields));
  }

  async update(id: string, fields: Partial<RecordFields>): Promise<void> {
    await this.#change("PATCH", `/${encodeURIComponent(id)}`, fields);
  }

  /** False: the vendor attests that it did not exist. */
  async remove(id: string): Promise<boolean> {
    return (await this.#change("DELETE", `/${encodeURIComponent(id)}`, undefined)) !== undefined;
  }

  #record(json: unknown): VendorRecord {
    const record = recordOf(json);
    if (record === undefined) throw unreadable("an instance");
    return record;
  }

  async #ask(method: string, path: string): Promise<Fields | undefined> {
    const own = AbortSignal.timeout(limits.readTimeoutMs);
    const isEndless = this.#world.mutations.has("reads-without-end");
    const signal = isEndless ? AbortSignal.timeout(60_000) : AbortSignal.any([own, this.#signal]);
    return await this.#send(method, path, { signal });
  }

  async #change(method: string, path: string, body: unknown): Promise<Fields | undefined> {
    const { mutations } = this.#world;
    const signal = mutations.has("cancelling-ends-changes")
      ? this.#signal
      : AbortSignal.timeout(limits.mutationDeadlineMs);
    try {
      return await this.#send(method, path, { signal, body });
    } catch (error) {
      const isLost = error instanceof Failure && error.facts.outcome === "UNKNOWN";
      if (!isLost || !mutations.has("repeats-changes")) throw error;
      return await this.#send(method, path, { signal, body });
    }
  }

  async #send(
    method: string,
    path: string,
    { signal, body }: { readonly signal: AbortSignal; readonly body?: unknown },
  ): Promise<Fields | undefined> {
    const { endpoint, workspace, region, token } = this.place;
    const url = new URL(`/v1/${workspace}/${region}/instances${path}`, endpoint);
    const breaker = this.#breaker();
    const isChange = method !== "GET";
    const asked = { method, url, token, signal, ...(body === undefined ? {} : { body }) };
    try {
      breaker.enter();
    } catch (error) {
      if (this.#world.mutations.has("circuit-asks-all-the-same"))
        await this.#world.wire.send(asked);
      throw error;
    }
    const answer = await this.#world.wire.send(asked);
    const isRefusal = answer.kind === "answer" && answer.status === 401;
    const isCounted = isRefusal && this.#world.mutations.has("circuit-counts-refusals");
    breaker.leave(isCounted || answer.kind !== "answer" || answer.status >= 500);
    if (answer.kind !== "answer") throw this.#lost(answer, isChange);
    return this.#understood(answer, isChange);
  }

  #breaker(): Breaker {
    const { breakers, mutations } = this.#world;
    const name = `${this.place.endpoint.host} ${this.place.account}`;
    const breaker = breakers.get(name) ?? new Breaker(limits.circuitOpenMs, mutations);
    breakers.set(name, breaker);
    return breaker;
  }

  #lost({ kind, problem }: Exclude<WireAnswer, Answer>, isChange: boolean): Failure {
    const isDenied = this.#world.mutations.has("denies-lost-changes");
    const outcome = isChange && !isDenied ? { outcome: "UNKNOWN" as const } : {};
    switch (kind) {
      case "refused":
        return new Failure("VENDOR_UNREACHABLE", `no connection to the vendor: ${problem}`);
      case "late":
        return new Failure("VENDOR_TIMEOUT", "the vendor did not answer in time", outcome);
      case "oversized":
        return new Failure("VENDOR_UNREADABLE", problem, outcome);
      default:
        return new Failure("VENDOR_UNREACHABLE", `the connection broke: ${problem}`, outcome);
    }
  }

  /** The vendor's JSON; undefined: it attests that the instance does not exist. */
  #understood(answer: Answer, isChange: boolean): Fields | undefined {
    const { mutations, accounts } = this.#world;
    const { status } = answer;
    const json = fieldsOf(answer.json);
    const outcome = isChange && !mutations.has("denies-lost-changes") ? "UNKNOWN" : "NOT_APPLIED";
    if (status >= 200 && status < 300) {
      if (json !== undefined) return json;
      if (mutations.has("html-is-empty")) return { instances: [] };
      throw new Failure("VENDOR_UNREADABLE", "the answer is no JSON", { outcome });
    }
    const problem = fieldsOf(json?.["error"]) ?? {};
    const code = textOf(problem["code"]);
    if (status === 404 && (code === "instance_not_found" || mutations.has("any-404-is-absence"))) {
      return undefined;
    }
    if (status === 403 && mutations.has("forbidden-is-absence")) return undefined;
    if (status >= 500 && mutations.has("failure-is-absence")) return undefined;
    const words = accounts.withoutSecrets(textOf(problem["message"])).slice(0, wordsMax);
    const message = `the vendor says ${status} ${code}: ${words}`;
    const refusal = refusalOf(code, problem, answer);
    if (refusal !== undefined) {
      const [reason, facts] = refusal;
      return raise(new Failure(reason, message, { outcome: "NOT_APPLIED", ...facts }));
    }
    const isTheirs = status >= 500;
    return raise(
      new Failure(isTheirs ? "VENDOR_ERROR" : "VENDOR_UNREADABLE", message, { outcome }),
    );
  }
}

/** The vendor's codes, row by row; statuses alone lie. */
function refusalOf(
  code: string,
  problem: Fields,
  { retryAfter }: Answer,
): ConstructorParameters<typeof Failure> extends [infer R, string, (infer F)?, unknown?]
  ? readonly [R, F] | undefined
  : never {
  switch (code) {
    case "bad_value":
      return ["INVALID_FIELD", { fields: [`parameters.${textOf(problem["field"])}`] }];
    case "slow_down":
      return ["THROTTLED", { quota: "requests", retryAfterMs: retryMsOf(retryAfter) }];
    case "quota_used_up": {
      const resetsAtMs = Number(problem["resets_at_ms"]);
      return ["QUOTA_EXHAUSTED", { quota: textOf(problem["quota"]), resetsAtMs }];
    }
    case "invoice_overdue":
      return ["BILLING_STOPPED", { precondition: { type: "BILLING", subjects: ["account"] } }];
    case "wrong_state":
      return ["BUSY", { retryAfterMs: retryMsDefault }];
    case "unknown_token":
      return ["BAD_CREDENTIAL", {}];
    case "not_allowed":
      return ["MISSING_SCOPE", {}];
    default:
      return undefined;
  }
}

function retryMsOf(header: string | undefined): number {
  const seconds = Number(header ?? Number.NaN);
  return Number.isFinite(seconds) && seconds > 0
    ? Math.min(seconds * 1_000, retryMsMax)
    : retryMsDefault;
}

function raise(failure: Failure): never {
  throw failure;
}

function unreadable(what: string): Failure {
  return new Failure("VENDOR_UNREADABLE", `the answer is not ${what}`);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function fieldsOf(value: unknown): Fields | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? { ...value } : undefined;
}
