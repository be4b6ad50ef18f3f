/** ElevenLabs' agents and our instances. Pure. */
import type { FoundInstance, WantedInstance } from "../../services/adapter-host/adapter.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { FieldViolation } from "../../services/contract/provider-error.ts";
import type { AccountState } from "./account.ts";
import { readStampTags } from "./stamp-tags.ts";

type Json = Readonly<Record<string, unknown>>;

/** How a setting is written in JSON. */
type Kind = "text" | "number" | "truth";

/** Where our fields stand in an agent: the one table for bodies, answers and refusals. */
const places: Readonly<Record<string, { readonly at: readonly string[]; readonly kind: Kind }>> = {
  "parameters.firstMessage": place("conversation_config.agent.first_message"),
  "parameters.prompt": place("conversation_config.agent.prompt.prompt"),
  "parameters.llm": place("conversation_config.agent.prompt.llm"),
  "parameters.language": place("conversation_config.agent.language"),
  "parameters.voiceId": place("conversation_config.tts.voice_id"),
  "parameters.voiceModel": place("conversation_config.tts.model_id"),
  "parameters.maxDurationSeconds": place(
    "conversation_config.conversation.max_duration_seconds",
    "number",
  ),
  "parameters.archived": place("platform_settings.archived", "truth"),
  "quota.maxConcurrency": place("platform_settings.call_limits.agent_concurrency_limit", "number"),
  "quota.dailyCalls": place("platform_settings.call_limits.daily_limit", "number"),
  displayName: place("name"),
};

/** An agent as far as we use it; of a list it lacks all settings but `archived`. */
export interface Agent {
  readonly id: string;
  readonly name: string;
  readonly tags: readonly string[];
  readonly createdAtMs: number;
  readonly settings: unknown;
}

/** All that is wanted, as a body of create or PATCH, without tags. */
export function settingsBody(wanted: WantedInstance): Json {
  const body: Record<string, unknown> = {};
  const { displayName, parameters, quota } = wanted;
  const values: Json = {
    displayName,
    ...prefixed("parameters", parameters),
    ...prefixed("quota", quota),
  };
  for (const [field, { at, kind }] of Object.entries(places)) {
    const value = values[field];
    if (value !== undefined) put(body, at, written(value, kind));
  }
  return body;
}

/** Refuses before anything is sent what the vendor would lose or change. */
export function requireSettable({ displayName, quota }: WantedInstance): void {
  const fields: FieldViolation[] = [];
  if (displayName !== undefined && displayName !== displayName.trim()) {
    fields.push({ path: "displayName", description: "begins or ends with a space" });
  }
  if (quota.monthlyCredits !== undefined) {
    const description = "cannot be set for one agent; the account's plan limits credits";
    fields.push({ path: "quota.monthlyCredits", description });
  }
  if (fields.length === 0) return;
  const words = fields.map(({ path, description }) => `${path} ${description}`).join("; ");
  throw new ProviderError("INVALID_FIELD", words, { outcome: "NOT_APPLIED", fields });
}

/** An agent in the host's words, with what its account's state means for it. */
export function foundInstance(agent: Agent, account: AccountState): FoundInstance {
  const stamp = readStampTags(agent.tags);
  const { parameters, quota } = settingsOf(agent.settings);
  const isArchived = parameters["archived"] === "true";
  const message = isArchived ? "the agent is archived" : account.message;
  const limit = quota?.["maxConcurrency"];
  return {
    id: agent.id,
    ...(stamp === undefined ? {} : { stamp }),
    state: "READY",
    displayName: agent.name,
    parameters,
    ...(quota === undefined ? {} : { quota }),
    availability: isArchived ? "UNAVAILABLE" : "AVAILABLE",
    ...(account.billing === undefined ? {} : { billing: account.billing }),
    ...(message === undefined ? {} : { message }),
    usage: {
      ...(limit === undefined ? {} : { concurrency: { limit } }),
      ...(account.credits === undefined ? {} : { credits: account.credits }),
    },
    createdAtMs: agent.createdAtMs,
  };
}

/** GET of one agent. VENDOR_UNREADABLE when it is not that agent. */
export function parseAgent(json: unknown, id: string): Agent {
  if (fieldAt(json, ["agent_id"]) !== id) throw unreadable("not the agent that was asked for");
  return agentOf(json, fieldAt(json, ["metadata", "created_at_unix_secs"]), json);
}

export interface AgentPage {
  readonly agents: readonly Agent[];
  /** Absent: the last page. */
  readonly cursor?: string;
}

/** One page of the list. @param isArchived which of the two lists it is of */
export function parseAgents(json: unknown, isArchived: boolean): AgentPage {
  const listed = fieldAt(json, ["agents"]);
  const cursor = fieldAt(json, ["next_cursor"]);
  if (!Array.isArray(listed)) throw unreadable("no list of agents");
  const agents = listed.map((entry: unknown) => {
    const archived = fieldAt(entry, ["archived"]) ?? isArchived;
    const createdSeconds = fieldAt(entry, ["created_at_unix_secs"]);
    return agentOf(entry, createdSeconds, { platform_settings: { archived } });
  });
  const hasMore = fieldAt(json, ["has_more"]);
  if (hasMore === false) return { agents };
  if (hasMore === true && typeof cursor === "string" && cursor !== "") return { agents, cursor };
  throw unreadable("a page that says neither that it is the last nor how to go on");
}

/** The id that create names. */
export function parseCreated(json: unknown): string {
  const id = fieldAt(json, ["agent_id"]);
  if (typeof id === "string" && isAgentId(id)) return id;
  throw unreadable("create named no agent");
}

/** False: no agent can have it, and it must not become part of a path. */
export function isAgentId(id: string): boolean {
  return /^[A-Za-z0-9_-]{1,128}$/.test(id);
}

/** Our field at a place of the vendor's body; "tags" are the stamp's; others are told as they are. */
export function fieldOfPlace(at: readonly string[]): string {
  if (at[0] === "tags") return "tags";
  const path = at.join(".");
  const known = Object.entries(places).find(([, { at: place }]) => place.join(".") === path);
  return known?.[0] ?? (path === "" ? "parameters" : `parameters (${path})`);
}

/** What stands at a path of JSON; null counts as absent. */
export function fieldAt(json: unknown, at: readonly string[]): unknown {
  let value: unknown = json;
  for (const name of at) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    value = Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
  }
  return value ?? undefined;
}

export function unreadable(what: string): ProviderError {
  return new ProviderError("VENDOR_UNREADABLE", `unexpected answer: ${what}`);
}

function place(path: string, kind: Kind = "text"): (typeof places)[string] {
  return { at: path.split("."), kind };
}

function prefixed(prefix: string, values: object): Json {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [`${prefix}.${name}`, value]),
  );
}

function put(body: Record<string, unknown>, at: readonly string[], value: unknown): void {
  const [name = "", ...rest] = at;
  if (rest.length === 0) {
    body[name] = value;
    return;
  }
  const inner: Record<string, unknown> = { ...recordOf(body[name]) };
  put(inner, rest, value);
  body[name] = inner;
}

function recordOf(value: unknown): Json {
  return typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value))
    : {};
}

function written(value: unknown, kind: Kind): unknown {
  if (kind === "number") return Number(value);
  return kind === "truth" ? value === "true" : value;
}

interface Settings {
  readonly parameters: Readonly<Record<string, string>>;
  readonly quota: Readonly<Record<string, number>> | undefined;
}

/** A setting that is missing or of another type is not shown. -1 concurrent calls mean any number. */
function settingsOf(settings: unknown): Settings {
  const parameters: Record<string, string> = {};
  const quota: Record<string, number> = {};
  let isQuotaShown = false;
  for (const [field, { at, kind }] of Object.entries(places)) {
    const [group, name = ""] = field.split(".");
    const value = fieldAt(settings, at);
    const isShown = kind === "text" ? typeof value === "string" : value !== undefined;
    if (group === "parameters" && isShown) parameters[name] = String(value);
    if (group !== "quota" || typeof value !== "number") continue;
    isQuotaShown = true;
    if (value >= 0) quota[name] = value;
  }
  return { parameters, quota: isQuotaShown ? quota : undefined };
}

function agentOf(json: unknown, createdSeconds: unknown, settings: unknown): Agent {
  const id = fieldAt(json, ["agent_id"]);
  const name = fieldAt(json, ["name"]) ?? "";
  const tags = fieldAt(json, ["tags"]) ?? [];
  if (typeof id !== "string" || !isAgentId(id)) throw unreadable("an agent without id");
  if (typeof name !== "string") throw unreadable(`agent ${id} has a name that is no text`);
  if (!Array.isArray(tags) || !tags.every((tag) => typeof tag === "string")) {
    throw unreadable(`agent ${id} has tags that are no texts`);
  }
  const createdAtMs = typeof createdSeconds === "number" ? createdSeconds * 1000 : 0;
  return { id, name, tags, createdAtMs, settings };
}
