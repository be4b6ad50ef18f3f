/** The adapter of the reference vendor: right in everything, and the ground that mutants stand on. */
import type {
  Adapter,
  AdapterInfo,
  FoundInstance,
  VendorCall,
  WantedInstance,
} from "../../../services/adapter-host/adapter.ts";
import { isShortStamp, makeStamp, readShortStamp } from "../../../services/adapter-host/stamp.ts";
import type { Stamp } from "../../../services/adapter-host/adapter.ts";
import { ProviderError } from "../../../services/contract/provider-error.ts";
import type { Reason } from "../../../services/contract/provider-error.ts";
import type { VendorRequest, VendorResponse } from "../../../services/vendor-http/vendor-http.ts";
import type { Item } from "./reference-vendor.ts";

export const referenceInfo: AdapterInfo = {
  name: "reference",
  capabilities: [
    "UPDATE",
    "DELETE",
    "RELEASE",
    "ADOPT",
    "LIST_BY_OWNER",
    "BULK_HEALTH",
    "WATCH_HEALTH",
    "VALIDATE_ONLY",
  ],
  stampPlace: "TAG",
  visibilityLagMs: 1_000,
  areListsConsistent: false,
  regions: ["global", "eu"],
  parameterSchema: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    additionalProperties: false,
    properties: {
      voice: { type: "string", pattern: "^[a-z-]{1,40}$" },
      speed: { type: "string", pattern: "^[1-9]$" },
      kind: { type: "string", enum: ["standard", "studio"], default: "standard" },
    },
  },
  immutableFields: ["parameters.kind"],
  nameBytesMax: 200,
  mutationDeadlineMs: 4_000,
};

export const referenceAdapter: Adapter = {
  info: referenceInfo,

  async realm({ target, credential }: VendorCall): Promise<string> {
    // One account each, whichever host leads to it.
    return `reference:${target.region}/${(credential["apiKey"] ?? "").split("-").slice(-2).join("-")}`;
  },

  async read(call: VendorCall, id: string): Promise<FoundInstance | undefined> {
    if (!isId(id)) return undefined;
    const request = { method: "GET", path: `/items/${id}`, isMutation: false } as const;
    const answer = await unlessMissing(send(call, request));
    return answer === undefined ? undefined : found(answer.json, await billingOf(call));
  },

  async list(call: VendorCall, token: string | undefined) {
    const query = token === undefined ? {} : { after: token };
    const request = { method: "GET", path: "/items", query, isMutation: false } as const;
    const { items, next } = recordOf((await send(call, request)).json);
    if (!Array.isArray(items)) throw unreadable("a list has no items");
    const billing = await billingOf(call);
    return {
      instances: items.map((item: unknown) => found(item, billing)),
      ...(typeof next === "string" ? { nextToken: next } : {}),
    };
  },

  async create(call: VendorCall, wanted: WantedInstance): Promise<string> {
    const body = { ...settings(wanted), tags: tagsOf(wanted.stamp) };
    const request = { method: "POST", path: "/items", body, isMutation: true } as const;
    const { id } = recordOf((await send(call, request)).json);
    if (typeof id !== "string") throw unreadable("create answered without an id");
    return id;
  },

  async update(call, { id }, wanted, changes): Promise<void> {
    // What cannot be changed is left out by the vendor; the host never asks for it.
    const body = { ...(changes.length > 0 ? settings(wanted) : {}), tags: tagsOf(wanted.stamp) };
    await send(call, { method: "PATCH", path: `/items/${id}`, body, isMutation: true });
  },

  async release(call, { id }): Promise<void> {
    await send(call, {
      method: "PATCH",
      path: `/items/${id}`,
      body: { tags: [] },
      isMutation: true,
    });
  },

  async delete(call, { id }): Promise<"deleted" | "deleting" | "absent"> {
    const request = { method: "DELETE", path: `/items/${id}`, isMutation: true } as const;
    return (await unlessMissing(send(call, request))) === undefined ? "absent" : "deleting";
  },

  classify(response: VendorResponse): ProviderError | undefined {
    const { status, json, headers } = response;
    if (status >= 200 && status < 300) return undefined;
    const { error, message, resetsAt } = recordOf(json, {});
    const reason = reasons[typeof error === "string" ? error : ""];
    const { sent } = recordOf(json, {});
    const words = `status ${status}: ${JSON.stringify(message ?? "no words")}; sent ${JSON.stringify(sent)}`;
    if (reason === undefined) {
      return new ProviderError(status >= 500 ? "VENDOR_ERROR" : "VENDOR_UNREADABLE", words);
    }
    const facts = {
      ...(reason === "BUSY" ? { retryAfterMs: 500 } : {}),
      ...(typeof resetsAt === "number" ? { resetsAtMs: resetsAt } : {}),
      ...(headers["retry-after"] === undefined
        ? {}
        : { retryAfterMs: Number(headers["retry-after"]) * 1_000 }),
      ...(reason === "INVALID_FIELD"
        ? { fields: [{ path: "parameters.speed", description: "is out of range" }] }
        : {}),
    };
    return new ProviderError(reason, words, facts);
  },
};

const reasons: Readonly<Record<string, Reason | undefined>> = {
  bad_value: "INVALID_FIELD",
  item_missing: "NOT_FOUND",
  item_busy: "BUSY",
  slow_down: "THROTTLED",
  quota_used_up: "QUOTA_EXHAUSTED",
  account_stopped: "BILLING_STOPPED",
  bad_key: "BAD_CREDENTIAL",
  no_right: "MISSING_SCOPE",
};

const billings = { current: "CURRENT", overdue: "OVERDUE", exhausted: "EXHAUSTED" } as const;

/** Asked once for all reads of one call. */
const billingKnown = new WeakMap<VendorCall, Promise<FoundInstance["billing"]>>();

function billingOf(call: VendorCall): Promise<FoundInstance["billing"]> {
  const known = billingKnown.get(call);
  if (known !== undefined) return known;
  const asked = send(call, { method: "GET", path: "/account", isMutation: false }).then(
    ({ json }) => {
      const { billing } = recordOf(json);
      return Object.entries(billings).find(([word]) => word === billing)?.[1];
    },
  );
  billingKnown.set(call, asked);
  return asked;
}

function found(json: unknown, billing: FoundInstance["billing"]): FoundInstance {
  const item = recordOf(json) as Partial<Item> & { readonly state?: string };
  const { id, name, voice, speed, kind, tags = [], works, createdAt, state } = item;
  if (typeof id !== "string" || !Array.isArray(tags)) throw unreadable("an item without id");
  const stamp = stampIn(tags);
  const isWaiting = state === "waiting";
  return {
    id,
    ...(stamp === undefined ? {} : { stamp }),
    state: stateOf(state),
    ...(isWaiting
      ? { action: { text: "confirm the voice", url: `https://reference.example/confirm/${id}` } }
      : {}),
    displayName: name ?? "",
    parameters: { voice: voice ?? "", speed: `${Number(speed)}`, kind: kind ?? "" },
    availability: works === true ? "AVAILABLE" : "UNAVAILABLE",
    ...(billing === undefined ? {} : { billing }),
    createdAtMs: createdAt ?? 0,
  };
}

function stateOf(state: string | undefined): FoundInstance["state"] {
  switch (state) {
    case "making":
      return "PROVISIONING";
    case "waiting":
      return "AWAITING_HUMAN";
    case "leaving":
      return "DELETING";
    default:
      return "READY";
  }
}

function settings({ displayName, parameters }: WantedInstance): Readonly<Record<string, string>> {
  return { ...(displayName === undefined ? {} : { name: displayName }), ...parameters };
}

/** The short stamp, then key, cluster, uid and hash as one JSON text. */
export function tagsOf(stamp: Stamp): readonly string[] {
  const { short, key, cluster, uid, specHash } = stamp;
  return [short, JSON.stringify([key, cluster, uid, specHash])];
}

function stampIn(tags: readonly unknown[]): Stamp | undefined {
  const [short, long] = tags;
  if (typeof short !== "string" || !isShortStamp(short)) return undefined;
  if (typeof long !== "string") return readShortStamp(short);
  const [key, cluster, uid, specHash]: readonly string[] = JSON.parse(long);
  return makeStamp(key ?? "", { cluster: cluster ?? "", uid: uid ?? "" }, specHash ?? "");
}

export function send(call: VendorCall, request: VendorRequest): Promise<VendorResponse> {
  return call.http.send({ ...request, headers: { "x-key": call.credential["apiKey"] ?? "" } });
}

async function unlessMissing<T>(asking: Promise<T>): Promise<T | undefined> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof ProviderError && error.reason === "NOT_FOUND") return undefined;
    throw error;
  }
}

function recordOf(json: unknown, absent?: object): Readonly<Record<string, unknown>> {
  if (typeof json === "object" && json !== null && !Array.isArray(json)) return { ...json };
  if (absent !== undefined) return { ...absent };
  throw unreadable("an answer is no JSON object");
}

function isId(text: string): boolean {
  return /^[A-Za-z0-9-]{1,80}$/.test(text);
}

function unreadable(what: string): ProviderError {
  return new ProviderError("VENDOR_UNREADABLE", what);
}
