/** ElevenLabs as the kit's emulator serves it: its true words for the common ones, and its scripts. */
import { assertNever } from "../../../services/process/assert-never.ts";
import type {
  Edit,
  EmulatedInstance,
  Switches,
  VendorEffect,
} from "../../../services/vendor-emulator/fault-words.ts";
import type { Incident } from "../../../services/vendor-emulator/incident.ts";
import type {
  ApiAnswer,
  ApiRequest,
  RequestEnd,
  VendorModel,
} from "../../../services/vendor-emulator/vendor-model.ts";
import { answerApi, operationOf, ownerOf } from "./api.ts";
import type { Director } from "./director.ts";
import type { Json } from "./json-shapes.ts";
import type { Effect, Fault } from "./script.ts";
import { errorAnswer, noRoute, refused } from "./vendor-errors.ts";
import type { VendorErrorName } from "./vendor-errors.ts";
import type { World } from "./world.ts";
import { apiHosts } from "./workspaces.ts";

const words = {
  busy: "system_busy",
  throttled: "too_many_concurrent_requests",
  "quota-exhausted": "quota_exceeded",
  "billing-stopped": "payment_required",
  "bad-credential": "invalid_api_key",
  "missing-scope": "missing_permissions",
  "server-error": "internal_error",
} as const satisfies { readonly [effect in VendorEffect]?: VendorErrorName };

const badValue = {
  loc: ["body", "conversation_config", "agent", "language"],
  msg: "Language is not supported",
  type: "value_error",
};

/** What a subscription says beside its own fields, for each standing of the account. */
const standings: Readonly<Record<NonNullable<Switches["billing"]>, Json>> = {
  current: {},
  overdue: {
    status: "past_due",
    has_open_invoices: true,
    open_invoices: [{ amount_due_cents: 9_900, next_payment_attempt_unix: -1 }],
  },
  exhausted: { character_count: 500_000, character_limit: 500_000 },
};

export class AgentsModel implements VendorModel {
  readonly hosts = apiHosts;
  readonly vocabulary = {
    effects: [
      "bad-value",
      "wrong-path",
      "busy",
      "throttled",
      "quota-exhausted",
      "billing-stopped",
      "bad-credential",
      "missing-scope",
      "server-error",
      "bad-gateway",
    ],
    // Agents are there, and gone, at once; nobody has to agree.
    switches: ["listLagMs", "pageSize", "credential", "billing"],
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
  readonly #world: World;
  readonly #director: Director;

  constructor(world: World, director: Director) {
    this.#world = world;
    this.#director = director;
  }

  operationOf(request: ApiRequest): ReturnType<VendorModel["operationOf"]> {
    return operationOf(request);
  }

  answer(request: ApiRequest): ApiAnswer {
    return answerApi(this.#world, request);
  }

  say(effect: VendorEffect, _request: ApiRequest, retryAfterMs?: number): ApiAnswer {
    switch (effect) {
      case "bad-value":
        return refused([badValue]);
      case "wrong-path":
        return noRoute(404);
      case "bad-gateway":
        return { status: 502, body: "<html><h1>502 Bad Gateway</h1></html>" };
      default: {
        const answer = errorAnswer(words[effect], this.#world.settings);
        if (retryAfterMs === undefined) return answer;
        return { ...answer, headers: { "retry-after": `${Math.ceil(retryAfterMs / 1_000)}` } };
      }
    }
  }

  /** Takes back what a script has set of the same. */
  turn({ listLagMs, pageSize, credential, billing }: Required<Switches>): void {
    this.#world.set({ listLagMs, pageSizeMax: Math.min(pageSize, 100) });
    this.#world.judgement = credential;
    this.#world.standing = standings[billing];
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
        world.update(id, { conversation_config: { agent: { prompt: { prompt: "by hand" } } } });
        return [];
      case "normalise":
        // Tags are a set.
        world.update(id, { tags: agent.tags.toReversed() });
        return [];
      case "remove":
        world.delete(id);
        return [];
      case "unstamp":
        world.update(id, { tags: [] });
        return [];
      case "twin":
        return [world.create(agent.workspace, { ...agent }).id];
      case "break":
      case "mend":
        world.update(id, { platform_settings: { archived: edit === "break" } });
        return [];
      default:
        return assertNever(edit);
    }
  }

  instances(): readonly EmulatedInstance[] {
    return this.#world.agents().map((agent) => ({
      id: agent.id,
      text: JSON.stringify(agent),
      createdAtMs: agent.createdSeconds * 1_000,
    }));
  }

  incidentOf(request: ApiRequest): Incident | undefined {
    const userId = ownerOf(this.#world, request)?.userId ?? "";
    const fault = this.#director.meet(request.method, request.path, userId);
    return fault && this.#scripted(fault);
  }

  ended(request: ApiRequest, { truth, sent, isDisturbed }: RequestEnd): void {
    this.#world.record({
      method: request.method,
      path: request.path,
      query: Object.fromEntries(request.query),
      userId: ownerOf(this.#world, request)?.userId ?? "",
      status: sent,
      change: truth?.change ?? "none",
      agentId: truth?.instanceId ?? "",
      isFaulty: isDisturbed,
    });
  }

  #scripted({ delayMs, console, isAfter, effect }: Fault): Incident {
    return {
      delayMs,
      meanwhile: () => void this.#director.run(console),
      isCarriedOut: isAfter || effect.kind === "pass" || effect.kind === "cut",
      ending: this.#endingOf(effect),
    };
  }

  #endingOf(effect: Effect): Incident["ending"] {
    switch (effect.kind) {
      case "pass":
        return { kind: "truth" };
      case "error": {
        const { name, headers } = effect;
        const { settings } = this.#world;
        return { kind: "instead", answer: () => ({ ...errorAnswer(name, settings), headers }) };
      }
      case "answer": {
        const { status, headers, text: body } = effect;
        return { kind: "instead", answer: () => ({ status, headers, body }) };
      }
      default:
        return effect;
    }
  }
}
