/** GET /v1/convai/agents: filters, order, and pages by cursor. */
import { parseJson, recordOf, valueAt } from "./json-shapes.ts";
import { errorAnswer, refused } from "./vendor-errors.ts";
import type { ErrorAnswer, Refusal } from "./vendor-errors.ts";
import type { AgentRecord, World } from "./world.ts";

const pageSizeDefault = 30;
const pageSizeLimit = 100;
const sorts = ["name", "created_at", "call_count_7d"];

interface ListQuery {
  readonly pageSize: number;
  readonly search: string;
  readonly isArchived: boolean;
  readonly sortBy: string;
  readonly isDescending: boolean;
  readonly cursor: string | undefined;
}

export function answerList(
  world: World,
  workspace: string,
  parameters: URLSearchParams,
): ErrorAnswer {
  const refusals: Refusal[] = [];
  const query = queryOf(parameters, refusals);
  if (refusals.length > 0) return refused(refusals);
  const { settings } = world;
  const sorted = world
    .agents(settings.listLagMs)
    .filter((agent) => agent.workspace === workspace && isAskedFor(agent, query))
    .sort(byOrder(query));
  const start = startOf(sorted, query);
  if (start === undefined) return errorAnswer("invalid_cursor", settings);
  const end = start + Math.min(query.pageSize, settings.pageSizeMax);
  const page = sorted.slice(start, end);
  const last = page.at(-1);
  const hasMore = end < sorted.length && last !== undefined;
  const after = last && { id: last.id, name: last.name, createdSeconds: last.createdSeconds };
  const position = settings.cursor === "offset" ? { offset: end } : { after };
  return {
    status: 200,
    body: {
      agents: page.map(summaryOf),
      has_more: hasMore,
      next_cursor: hasMore ? Buffer.from(JSON.stringify(position)).toString("base64url") : null,
    },
  };
}

function queryOf(parameters: URLSearchParams, refusals: Refusal[]): ListQuery {
  const refuse = (name: string, msg: string): void =>
    void refusals.push({ loc: ["query", name], msg, type: "value_error" });
  const pageSize = Number(parameters.get("page_size") ?? pageSizeDefault);
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > pageSizeLimit) {
    refuse("page_size", `Input should be from 1 to ${pageSizeLimit}`);
  }
  const archived = parameters.get("archived") ?? "false";
  if (!["true", "false"].includes(archived)) refuse("archived", "Input should be a boolean");
  const sortBy = parameters.get("sort_by") ?? "created_at";
  if (!sorts.includes(sortBy)) refuse("sort_by", `Input should be one of ${sorts.join(", ")}`);
  const direction = parameters.get("sort_direction") ?? "desc";
  if (!["asc", "desc"].includes(direction)) refuse("sort_direction", "Input should be asc or desc");
  return {
    pageSize,
    search: (parameters.get("search") ?? "").toLowerCase(),
    isArchived: archived === "true",
    sortBy,
    isDescending: direction === "desc",
    cursor: parameters.get("cursor") ?? undefined,
  };
}

function isAskedFor(agent: AgentRecord, query: ListQuery): boolean {
  const isSameKind = isArchived(agent) === query.isArchived;
  return isSameKind && agent.name.toLowerCase().includes(query.search);
}

type Place = Pick<AgentRecord, "id" | "name" | "createdSeconds">;

function byOrder({ sortBy, isDescending }: ListQuery): (left: Place, right: Place) => number {
  const sign = isDescending ? -1 : 1;
  return (left, right) => {
    const byName = sortBy === "name" ? left.name.localeCompare(right.name) : 0;
    const byAge = left.createdSeconds - right.createdSeconds;
    const byId = left.id === right.id ? 0 : left.id < right.id ? -1 : 1;
    return sign * (byName || byAge || byId);
  };
}

/** Index of the page's first agent; `undefined`: the cursor is none. */
function startOf(sorted: readonly AgentRecord[], query: ListQuery): number | undefined {
  if (query.cursor === undefined) return 0;
  const position = parseJson(Buffer.from(query.cursor, "base64url").toString("utf8"));
  const offset = valueAt(position, ["offset"]);
  if (typeof offset === "number") return offset;
  const { id, name, createdSeconds } = recordOf(valueAt(position, ["after"])) ?? {};
  if (typeof id !== "string" || typeof name !== "string") return undefined;
  const after = { id, name, createdSeconds: Number(createdSeconds) };
  const at = sorted.findIndex((agent) => byOrder(query)(agent, after) > 0);
  return at < 0 ? sorted.length : at;
}

function summaryOf(agent: AgentRecord): object {
  return {
    agent_id: agent.id,
    name: agent.name,
    tags: agent.tags,
    created_at_unix_secs: agent.createdSeconds,
    access_info: { is_creator: true, creator_name: "", creator_email: "", role: "admin" },
    last_call_time_unix_secs: null,
    archived: isArchived(agent),
  };
}

function isArchived(agent: AgentRecord): boolean {
  return valueAt(agent.platform_settings, ["archived"]) === true;
}
