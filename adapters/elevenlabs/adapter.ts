/** ElevenLabs' conversational agents as instances; see README.md. */
import { createHash } from "node:crypto";

import type {
  Adapter,
  AdapterInfo,
  FieldChange,
  FoundInstance,
  FoundPage,
  Stamp,
  VendorCall,
  WantedInstance,
} from "../../services/adapter-host/adapter.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { VendorRequest, VendorResponse } from "../../services/vendor-http/vendor-http.ts";
import { accountState, accountStateOfError } from "./account.ts";
import type { AccountState } from "./account.ts";
import { classifyElevenLabs } from "./errors.ts";
import { tagsWith, tagsWithout } from "./stamp-tags.ts";
import {
  fieldAt,
  foundInstance,
  isAgentId,
  parseAgent,
  parseAgents,
  parseCreated,
  requireSettable,
  settingsBody,
  unreadable,
} from "./translate.ts";
import type { Agent } from "./translate.ts";

const agentsPath = "/v1/convai/agents";
const pageSize = 100;

/** The vendor's hosts by region. `workspace`: hosts of one lead to the same agents. */
const regionOfHost: Readonly<
  Record<string, { readonly region: string; readonly workspace: string }>
> = {
  "api.elevenlabs.io": { region: "global", workspace: "global" },
  "api.us.elevenlabs.io": { region: "us", workspace: "global" },
  "api.eu.residency.elevenlabs.io": { region: "eu", workspace: "eu" },
  "api.in.residency.elevenlabs.io": { region: "in", workspace: "in" },
  "api.sg.residency.elevenlabs.io": { region: "sg", workspace: "sg" },
};

/** Text without white space at its ends, which the vendor may cut off: cut text would be drift. */
const trimmedText = { type: "string", pattern: "^(\\S([\\s\\S]*\\S)?)?$" } as const;

const info: AdapterInfo = {
  name: "elevenlabs",
  capabilities: [
    "UPDATE",
    "DELETE",
    "RELEASE",
    "ADOPT",
    "LIST_BY_OWNER",
    "BULK_HEALTH",
    "USAGE",
    "QUOTA_SETTABLE",
    "WATCH_HEALTH",
    "VALIDATE_ONLY",
  ],
  stampPlace: "TAG",
  // Neither is documented: the careful assumption.
  visibilityLagMs: 10_000,
  areListsConsistent: false,
  // A list has names, tags and the archive; settings and limits only the agent itself.
  listsLackFields: true,
  regions: Object.values(regionOfHost).map(({ region }) => region),
  parameterSchema: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    additionalProperties: false,
    properties: {
      firstMessage: { ...trimmedText, description: "What the agent says first; empty: it waits." },
      prompt: { ...trimmedText, description: "Who the agent is and what it does." },
      llm: {
        type: "string",
        pattern: "^[a-z0-9][a-z0-9._-]{0,63}$",
        description: "The language model, as the vendor names it.",
      },
      language: {
        type: "string",
        pattern: "^[a-z]{2,3}(-[a-z]{2,4})?$",
        description: "Language code in lower case.",
      },
      voiceId: {
        type: "string",
        pattern: "^[A-Za-z0-9]{1,64}$",
        description: "The voice, by the vendor's id.",
      },
      voiceModel: {
        type: "string",
        pattern: "^eleven_[a-z0-9_]{1,57}$",
        description: "The speech model, by the vendor's id.",
      },
      maxDurationSeconds: {
        type: "string",
        pattern: "^[1-9][0-9]{0,5}$",
        description: "Longest conversation.",
      },
      archived: {
        type: "string",
        enum: ["false", "true"],
        default: "false",
        description: "An archived agent is out of use and keeps its settings.",
      },
    },
  },
  immutableFields: [],
  callsPerSecond: 20,
  mutationDeadlineMs: 20_000,
};

/** The adapter; it remembers which user each key belongs to, and nothing else. */
export function createElevenLabsAdapter(): Adapter {
  const users = new Map<string, string>();
  return {
    info,
    realm: (call) => realm(call, users),
    read,
    list,

    async create(call: VendorCall, wanted: WantedInstance): Promise<string> {
      requireSettable(wanted);
      const path = `${agentsPath}/create`;
      // Required, be it empty.
      const body = { conversation_config: {}, ...settingsBody(wanted) };
      return parseCreated(
        await writeStamped(call, { method: "POST", path, body }, wanted.stamp, []),
      );
    },

    /** All wanted fields, changed or not: should PATCH replace whole sections, none gets lost. */
    async update(
      call: VendorCall,
      found: FoundInstance,
      wanted: WantedInstance,
      changes: readonly FieldChange[],
    ): Promise<void> {
      if (changes.length > 0) requireSettable(wanted);
      const { tags } = await getAgent(call, found.id);
      const body = changes.length > 0 ? settingsBody(wanted) : {};
      const request = { method: "PATCH", path: pathOf(found.id), body } as const;
      await writeStamped(call, request, wanted.stamp, tags);
    },

    async release(call: VendorCall, found: FoundInstance): Promise<void> {
      const { tags } = await getAgent(call, found.id);
      const body = { tags: tagsWithout(tags) };
      await send(call, { method: "PATCH", path: pathOf(found.id), body, isMutation: true });
    },

    async delete(call: VendorCall, found: FoundInstance): Promise<"deleted" | "absent"> {
      const request = { method: "DELETE", path: pathOf(found.id), isMutation: true } as const;
      return (await unlessMissing(send(call, request))) === undefined ? "absent" : "deleted";
    },

    classify: classifyElevenLabs,
  };
}

async function read(call: VendorCall, id: string): Promise<FoundInstance | undefined> {
  if (!isAgentId(id)) return undefined;
  const agent = await unlessMissing(getAgent(call, id));
  return agent && foundInstance(agent, await accountOf(call));
}

/** Two lists, one after the other: archived agents are in one of their own. */
async function list(call: VendorCall, token = "current"): Promise<FoundPage> {
  const [phase = "", ...rest] = token.split(":");
  const cursor = rest.join(":");
  const isArchived = phase === "archived";
  const query = {
    page_size: String(pageSize),
    archived: String(isArchived),
    // Oldest first: what is created meanwhile shifts nothing.
    sort_by: "created_at",
    sort_direction: "asc",
    ...(cursor === "" ? {} : { cursor }),
  };
  const answer = await send(call, { method: "GET", path: agentsPath, query, isMutation: false });
  const page = parseAgents(answer.json, isArchived);
  const account = page.agents.length === 0 ? {} : await accountOf(call);
  const next = page.cursor === undefined ? undefined : `${phase}:${page.cursor}`;
  const nextToken = next ?? (isArchived ? undefined : "archived");
  return {
    instances: page.agents.map((agent) => foundInstance(agent, account)),
    ...(nextToken === undefined ? {} : { nextToken }),
  };
}

/** The workspace's place and the key's user: a rotated key of the same user is the same realm. */
async function realm(call: VendorCall, users: Map<string, string>): Promise<string> {
  const { host } = new URL(call.target.endpoint);
  const known = Object.hasOwn(regionOfHost, host) ? regionOfHost[host] : undefined;
  if (known !== undefined && known.region !== call.target.region) {
    const words = `is ${call.target.region}, but ${host} serves ${known.region}`;
    const fields = [{ path: "region", description: words }];
    throw new ProviderError("INVALID_FIELD", `region ${words}`, { outcome: "NOT_APPLIED", fields });
  }
  const workspace = known?.workspace ?? host;
  const digest = createHash("sha256")
    .update(JSON.stringify([workspace, apiKeyOf(call)]))
    .digest("hex");
  const user = users.get(digest) ?? (await askUser(call));
  users.delete(digest);
  users.set(digest, user);
  for (const oldest of users.keys()) if (users.size > usersMax) users.delete(oldest);
  return `elevenlabs:${workspace}/${user}`;
}

const usersMax = 1000;

async function askUser(call: VendorCall): Promise<string> {
  const { json } = await send(call, { method: "GET", path: "/v1/user", isMutation: false });
  const user = fieldAt(json, ["user_id"]);
  if (typeof user === "string" && /^[\w.@-]{1,128}$/.test(user)) return user;
  throw unreadable("the key's user has no id");
}

/** Asked at most once for all reads of one call. Its failure hides the account's state, no more. */
function accountOf(call: VendorCall): Promise<AccountState> {
  const known = accounts.get(call);
  if (known !== undefined) return known;
  const asked = askAccount(call);
  accounts.set(call, asked);
  return asked;
}

const accounts = new WeakMap<VendorCall, Promise<AccountState>>();

async function askAccount(call: VendorCall): Promise<AccountState> {
  const path = "/v1/user/subscription";
  try {
    const answer = await call.http.send({ ...keyed(call), method: "GET", path, isMutation: false });
    return accountState(answer.json);
  } catch (error) {
    if (error instanceof ProviderError) return accountStateOfError(error);
    throw error;
  }
}

async function getAgent(call: VendorCall, id: string): Promise<Agent> {
  const answer = await send(call, { method: "GET", path: pathOf(id), isMutation: false });
  return parseAgent(answer.json, id);
}

type Write = Pick<VendorRequest, "method" | "path"> & { readonly body: object };

/** Writes with the whole stamp, or with what fits where the vendor refuses the long tags. */
async function writeStamped(
  call: VendorCall,
  request: Write,
  stamp: Stamp,
  others: readonly string[],
): Promise<unknown> {
  const write = async (extent: "full" | "short"): Promise<unknown> => {
    const body = { ...request.body, tags: tagsWith(stamp, others, extent) };
    return (await send(call, { ...request, body, isMutation: true })).json;
  };
  try {
    return await write("full");
  } catch (error) {
    const isOfTags =
      error instanceof ProviderError &&
      error.reason === "INVALID_FIELD" &&
      error.facts.fields?.every(({ path }) => path === "tags") === true;
    if (!isOfTags) throw error;
    return write("short");
  }
}

async function send(call: VendorCall, request: VendorRequest): Promise<VendorResponse> {
  try {
    return await call.http.send({ ...request, ...keyed(call) });
  } catch (error) {
    if (!(error instanceof ProviderError) || error.reason !== "QUOTA_EXHAUSTED") throw error;
    // The refusal does not say until when; the subscription does.
    const resetsAtMs = (await accountOf(call)).credits?.expiresAtMs;
    const facts = { ...error.facts, ...(resetsAtMs === undefined ? {} : { resetsAtMs }) };
    throw new ProviderError("QUOTA_EXHAUSTED", error.message, facts);
  }
}

/** `undefined` where the vendor attests that the agent does not exist. */
async function unlessMissing<T>(asking: Promise<T>): Promise<T | undefined> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof ProviderError && error.reason === "NOT_FOUND") return undefined;
    throw error;
  }
}

function pathOf(id: string): string {
  if (!isAgentId(id)) throw new Error(`not an agent's id: ${id}`);
  return `${agentsPath}/${id}`;
}

function keyed(call: VendorCall): Pick<VendorRequest, "headers"> {
  return { headers: { "xi-api-key": apiKeyOf(call) } };
}

function apiKeyOf(call: VendorCall): string {
  const key = call.credential["apiKey"] ?? "";
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  const what = key === "" ? "has no field apiKey" : "holds an apiKey that no header can carry";
  const message = `credential of account "${call.target.account}" ${what}`;
  throw new ProviderError("BAD_CREDENTIAL", message, { outcome: "NOT_APPLIED" });
}
