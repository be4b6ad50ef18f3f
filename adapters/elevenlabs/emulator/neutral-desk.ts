/**
 * The words that hold for every vendor (services/vendor-emulator/fault-words.ts), in ElevenLabs' own:
 * faults become faults of a script, switches settings, edits what somebody does at the console.
 */
import type { FaultDesk } from "../../../services/vendor-emulator/fault-server.ts";
import {
  editNames,
  networkEffects,
  operations,
} from "../../../services/vendor-emulator/fault-words.ts";
import type {
  Edit,
  EmulatedInstance,
  EmulatedRequest,
  Fault as NeutralFault,
  Operation,
  Switches,
  Vocabulary,
} from "../../../services/vendor-emulator/fault-words.ts";
import type { Director } from "./director.ts";
import type { Json } from "./json-shapes.ts";
import type { Effect, Fault } from "./script.ts";
import { defaultSettings } from "./settings.ts";
import type { VendorErrorName } from "./vendor-errors.ts";
import type { AgentRecord, RequestRecord, World } from "./world.ts";

/** What a request is for, by its method and path. */
const routes: readonly {
  readonly operation: Exclude<Operation, "any">;
  readonly method: string;
  readonly path: string;
}[] = [
  { operation: "create", method: "POST", path: "^/v1/convai/agents/create$" },
  { operation: "list", method: "GET", path: "^/v1/convai/agents$" },
  { operation: "read", method: "GET", path: "^/v1/convai/agents/[^/]+$" },
  { operation: "update", method: "PATCH", path: "^/v1/convai/agents/[^/]+$" },
  { operation: "delete", method: "DELETE", path: "^/v1/convai/agents/[^/]+$" },
];

const words = {
  throttled: "too_many_concurrent_requests",
  "quota-exhausted": "quota_exceeded",
  "billing-stopped": "payment_required",
  "bad-credential": "invalid_api_key",
  "missing-scope": "missing_permissions",
  busy: "conflict",
  "server-error": "internal_error",
} as const satisfies { readonly [effect in NeutralFault["effect"]]?: VendorErrorName };

const html = "<html><h1>Welcome</h1></html>";
const oversizedBytes = 20 << 20;
const limits = { character_count: 500_000, can_extend_character_limit: false };
const plenty = { character_count: 1_200, can_extend_character_limit: true };

/** What the subscription says for each standing of the account. */
const standings: Readonly<Record<NonNullable<Switches["billing"]>, object>> = {
  current: { status: "active", ...plenty },
  overdue: { status: "past_due", ...plenty },
  exhausted: { status: "active", ...limits },
};

export class NeutralDesk implements FaultDesk {
  readonly vocabulary: Vocabulary = {
    operations,
    effects: [...networkEffects, "bad-value", "wrong-path", "bad-gateway", ...effectWords()],
    switches: ["listLagMs", "pageSize", "credential", "billing"],
    edits: editNames.filter((name) => name !== "normalise"),
  };
  readonly #world: World;
  readonly #director: Director;

  constructor(world: World, director: Director) {
    this.#world = world;
    this.#director = director;
  }

  addFault(fault: NeutralFault): void {
    const { operation, moment, effect, times, skip = 0, delayMs = 0 } = fault;
    const route = routes.find((one) => one.operation === operation);
    const isSlow = effect === "slow";
    const step: Fault = {
      ...(route === undefined ? {} : { method: route.method, path: route.path }),
      skip,
      times,
      // Slow before or after the vendor acts: nobody outside can tell the two apart but by the record.
      delayMs: isSlow ? delayMs : 0,
      console: [],
      isAfter: moment === "after",
      effect: effectOf(effect, fault.retryAfterMs),
    };
    this.#director.run([{ do: "fault", ...step }]);
  }

  turn({ listLagMs, pageSize, credential, billing }: Switches): void {
    const world = this.#world;
    if (listLagMs !== undefined) world.set({ listLagMs });
    if (pageSize !== undefined) world.set({ pageSizeMax: Math.min(pageSize, 100) });
    if (billing !== undefined) world.changeSubscription("global", { ...standings[billing] });
    if (credential !== undefined) this.#judgeKeys(credential);
  }

  edit({ edit, id }: Edit): readonly string[] {
    const world = this.#world;
    if (edit === "stranger") return [world.create("global", { name: "somebody else's" }).id];
    const agent = world.agent(id);
    if (agent === undefined) throw new Error(`there is no agent ${id}`);
    switch (edit) {
      case "rename":
        world.update(id, { name: `${agent.name} at the console` });
        return [];
      case "change":
        world.update(id, { conversation_config: { agent: { first_message: "changed by hand" } } });
        world.update(id, { conversation_config: { agent: { prompt: { prompt: "by hand" } } } });
        return [];
      case "remove":
        world.delete(id);
        return [];
      case "unstamp":
        world.update(id, { tags: [] });
        return [];
      case "twin":
        return [world.create(agent.workspace, twinOf(agent)).id];
      case "break":
      case "mend":
        world.update(id, { platform_settings: { archived: edit === "break" } });
        return [];
      default:
        throw new Error(`nobody can ${edit} an agent`);
    }
  }

  reset(): void {
    const { listLagMs, pageSizeMax } = defaultSettings;
    this.#director.run([{ do: "clear-faults" }]);
    this.#world.set({ listLagMs, pageSizeMax });
    this.#world.changeSubscription("global", { ...standings.current });
    this.#judgeKeys("good");
  }

  instances(): readonly EmulatedInstance[] {
    return this.#world.agents().map((agent) => ({
      id: agent.id,
      text: JSON.stringify(agent),
      createdAtMs: agent.createdSeconds * 1_000,
    }));
  }

  requestsSince(since: number): {
    readonly requests: readonly EmulatedRequest[];
    readonly next: number;
  } {
    const { requests, requestsDropped } = this.#world;
    return {
      requests: requests.slice(Math.max(0, since - requestsDropped)).map(neutralRequest),
      next: requestsDropped + requests.length,
    };
  }

  #judgeKeys(credential: NonNullable<Switches["credential"]>): void {
    this.#world.judgement = credential;
  }
}

function effectWords(): readonly (keyof typeof words)[] {
  return Object.keys(words).filter((name): name is keyof typeof words => name in words);
}

function effectOf(effect: NeutralFault["effect"], retryAfterMs: number | undefined): Effect {
  const answer = (status: number, text: string, headers = {}): Effect => ({
    kind: "answer",
    status,
    headers: { "content-type": "text/html; charset=utf-8", ...headers },
    text,
  });
  switch (effect) {
    case "reset":
    case "cut":
    case "hang":
      return { kind: effect };
    case "slow":
      return { kind: "pass" };
    case "html":
      return answer(200, html);
    case "oversized":
      return answer(200, `"${" ".repeat(oversizedBytes)}"`, { "content-type": "application/json" });
    case "redirect":
      return answer(302, "", { location: "https://elsewhere.example/" });
    case "bad-gateway":
      return answer(502, "<html><h1>502 Bad Gateway</h1></html>");
    case "wrong-path":
      return answer(404, '{"detail":"Not Found"}', { "content-type": "application/json" });
    case "bad-value":
      return answer(422, badValue, { "content-type": "application/json" });
    default: {
      const headers =
        retryAfterMs === undefined ? {} : { "retry-after": `${Math.ceil(retryAfterMs / 1_000)}` };
      return { kind: "error", name: words[effect], headers };
    }
  }
}

const badValue = JSON.stringify({
  detail: [{ loc: ["body", "conversation_config", "agent", "language"], msg: "no", type: "enum" }],
});

function twinOf({ name, tags, conversation_config, platform_settings }: AgentRecord): Json {
  return { name, tags, conversation_config, platform_settings };
}

function neutralRequest(request: RequestRecord): EmulatedRequest {
  const route = routes.find(
    ({ method, path }) => method === request.method && new RegExp(path).test(request.path),
  );
  const { atMs, change, agentId: id } = request;
  return { operation: route?.operation ?? "any", atMs, change, id };
}
