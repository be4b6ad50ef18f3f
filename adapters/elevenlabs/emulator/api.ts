/** The vendor's API: one request in, one answer out, and what it changed. No sockets, no faults. */
import type { Operation } from "../../../services/vendor-emulator/fault-words.ts";
import type { ApiAnswer, ApiRequest } from "../../../services/vendor-emulator/vendor-model.ts";
import { refusalsOf, voiceOf } from "./agent-settings.ts";
import { answerList } from "./agent-list.ts";
import { parseJson, recordOf } from "./json-shapes.ts";
import type { Json } from "./json-shapes.ts";
import { agentMissing, errorAnswer, noRoute, refused, voiceMissing } from "./vendor-errors.ts";
import type { ErrorAnswer } from "./vendor-errors.ts";
import type { AgentRecord, EmulatorKey, Permission, World } from "./world.ts";
import { workspaceOf } from "./workspaces.ts";

const agentsPath = "/v1/convai/agents";
const agentPath = /^\/v1\/convai\/agents\/[^/]+$/;

/** Serves one request; what it changes is committed when this returns. */
export function answerApi(world: World, request: ApiRequest): ApiAnswer {
  const { method, path } = request;
  const routes = routesOf(path);
  if (routes === undefined) return noRoute(404);
  const route = routes[method];
  if (route === undefined) return noRoute(405);
  const key = keyOf(world, request);
  if ("status" in key) return key;
  if (world.judgement === "wrong") return errorAnswer("invalid_api_key", world.settings);
  if (world.judgement === "scopeless") return errorAnswer("missing_permissions", world.settings);
  if (!key.permissions.includes(route.needs)) {
    return errorAnswer("missing_permissions", world.settings, ` Needed: ${route.needs}.`);
  }
  return route.serve({ world, request, key, id: decodeURIComponent(path.split("/").at(-1) ?? "") });
}

/** What a request is for; undefined: nothing of agents. */
export function operationOf({
  method,
  path,
}: Pick<ApiRequest, "method" | "path">): Exclude<Operation, "any"> | undefined {
  return routesOf(path)?.[method]?.operation;
}

function routesOf(path: string): Routes | undefined {
  return Object.hasOwn(fixedRoutes, path)
    ? fixedRoutes[path]
    : agentPath.test(path)
      ? agentRoutes
      : undefined;
}

/** Whose key a request carries; a key is good in its own workspace only. */
export function ownerOf(world: World, request: ApiRequest): EmulatorKey | undefined {
  const key = world.keys.get(request.headers["xi-api-key"] ?? "");
  return key?.workspace === workspaceOf(request.host) ? key : undefined;
}

function keyOf(world: World, request: ApiRequest): EmulatorKey | ErrorAnswer {
  const apiKey = request.headers["xi-api-key"];
  const { settings } = world;
  if (apiKey === undefined) return errorAnswer("needs_authorization", settings);
  const remark = settings.repeatsKey ? ` You sent ${apiKey}.` : "";
  return ownerOf(world, request) ?? errorAnswer("invalid_api_key", settings, remark);
}

interface Call {
  readonly world: World;
  readonly request: ApiRequest;
  readonly key: EmulatorKey;
  readonly id: string;
}

interface Route {
  /** Absent: something beside agents. */
  readonly operation?: Exclude<Operation, "any">;
  readonly needs: Permission;
  readonly serve: (call: Call) => ApiAnswer;
}

type Routes = Readonly<Record<string, Route>>;

const createPath = `${agentsPath}/create`;

const fixedRoutes: Readonly<Record<string, Routes>> = {
  [createPath]: { POST: { operation: "create", needs: "convai_write", serve: createAgent } },
  [agentsPath]: {
    GET: {
      operation: "list",
      needs: "convai_read",
      serve: ({ world, request, key }) => answerList(world, key.workspace, request.query),
    },
  },
  "/v1/user": { GET: { needs: "user_read", serve: readUser } },
  "/v1/user/subscription": {
    GET: {
      needs: "user_read",
      serve: ({ world, key }) => ({ status: 200, body: world.subscription(key.workspace) }),
    },
  },
};

const agentRoutes: Routes = {
  GET: { operation: "read", needs: "convai_read", serve: readAgent },
  PATCH: { operation: "update", needs: "convai_write", serve: updateAgent },
  DELETE: { operation: "delete", needs: "convai_write", serve: deleteAgent },
};

function createAgent({ world, request, key }: Call): ApiAnswer {
  const body = bodyOf(world, request.body, true);
  if (body.kind === "refused") return body.answer;
  const { id } = world.create(key.workspace, body.fields);
  return { status: 200, body: { agent_id: id }, change: "created", instanceId: id };
}

function readAgent({ world, key, id }: Call): ApiAnswer {
  const agent = world.agent(id, world.settings.readLagMs);
  if (agent?.workspace !== key.workspace) return agentMissing(id, world.settings);
  return { status: 200, body: agentBody(agent), instanceId: id };
}

function updateAgent({ world, request, key, id }: Call): ApiAnswer {
  if (world.agent(id)?.workspace !== key.workspace) return agentMissing(id, world.settings);
  const body = bodyOf(world, request.body, false);
  if (body.kind === "refused") return body.answer;
  const agent = world.update(id, body.fields);
  if (agent === undefined) return agentMissing(id, world.settings);
  return { status: 200, body: agentBody(agent), change: "updated", instanceId: id };
}

function deleteAgent({ world, key, id }: Call): ApiAnswer {
  const isTheirs = world.agent(id)?.workspace === key.workspace;
  if (!isTheirs || !world.delete(id)) return agentMissing(id, world.settings);
  const { deleteStatus } = world.settings;
  const empty = deleteStatus === 200 ? { body: {} } : {};
  return { status: deleteStatus, ...empty, change: "deleted", instanceId: id };
}

function readUser({ world, request, key }: Call): ApiAnswer {
  // Invoices are told in /v1/user/subscription alone.
  const invoices = { open_invoices: undefined, has_open_invoices: undefined };
  const subscription = { ...world.subscription(key.workspace), ...invoices };
  const isOlder = world.settings.repeatsKey;
  const body = {
    user_id: key.userId,
    subscription,
    is_new_user: false,
    is_api_key_hashed: !isOlder,
    xi_api_key_preview: "***",
    ...(isOlder ? { xi_api_key: request.headers["xi-api-key"] } : {}),
    created_at: 1_753_999_199,
    seat_type: "workspace_member",
  };
  return { status: 200, body };
}

function agentBody(agent: AgentRecord): object {
  const { id, name, tags, conversation_config, platform_settings } = agent;
  return {
    agent_id: id,
    name,
    tags,
    conversation_config,
    platform_settings,
    metadata: {
      created_at_unix_secs: agent.createdSeconds,
      updated_at_unix_secs: agent.updatedSeconds,
    },
    phone_numbers: [],
    access_info: null,
  };
}

type Body =
  | { readonly kind: "sound"; readonly fields: Json }
  | { readonly kind: "refused"; readonly answer: ApiAnswer };

function bodyOf(world: World, text: string, isCreate: boolean): Body {
  const { settings } = world;
  const fields = recordOf(parseJson(text));
  if (fields === undefined) {
    const refusal = { loc: ["body"], msg: "JSON decode error", type: "json_invalid" };
    return { kind: "refused", answer: refused([refusal]) };
  }
  const refusals = refusalsOf(fields, isCreate, settings);
  if (refusals.length > 0) return { kind: "refused", answer: refused(refusals) };
  const voice = voiceOf(fields);
  const isKnown = voice === undefined || settings.knownVoices.length === 0;
  if (!isKnown && !settings.knownVoices.includes(voice)) {
    return { kind: "refused", answer: voiceMissing(voice, settings) };
  }
  return { kind: "sound", fields };
}
