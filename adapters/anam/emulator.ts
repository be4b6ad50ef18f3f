/**
 * Anam's API on this machine, for tests: personas of one organization. What Anam's documents leave
 * open is a choice in `Unknowns`; README.md says how the adapter copes with each.
 */
import { randomUUID } from "node:crypto";

import type {
  Edit,
  EmulatedInstance,
  Switches,
  VendorEffect,
} from "../../services/vendor-emulator/fault-words.ts";
import { LaggingStore } from "../../services/vendor-emulator/lagging-store.ts";
import type {
  ApiAnswer,
  ApiRequest,
  VendorModel,
} from "../../services/vendor-emulator/vendor-model.ts";
import { avatarIds, settingsOf, shownPersona, voiceIds } from "./emulator-persona.ts";
import type { PersonaRecord, Settings } from "./emulator-persona.ts";

/** A key that is good from the start. */
export const emulatorApiKey = "anam-emulator-key-of-the-first-organization";

export const apiHosts: readonly string[] = ["api.anam.ai"];

/** What the documents leave open, or say in two ways. */
export interface Unknowns {
  /** What an error's body holds: only a text is documented for each status. */
  readonly errorBody: "json" | "text" | "empty";
  /** Two descriptions of a persona are published: with parts (avatar, voice, brain), and flat. */
  readonly form: "parts" | "flat";
  /** In which order lists come. */
  readonly order: "oldest-first" | "newest-first";
  /** Longer descriptions are cut. */
  readonly descriptionCharactersMax: number;
  /** Blanks at the ends of texts go. */
  readonly trimsTexts: boolean;
}

const firstGuess: Unknowns = {
  errorBody: "json",
  form: "parts",
  order: "oldest-first",
  descriptionCharactersMax: 100_000,
  trimsTexts: false,
};

/** Anam's documented statuses and texts; of throttling, quotas and bills it says nothing. */
const words = {
  "bad-value": [400, "Bad request - Invalid persona data"],
  "wrong-path": [404, "Not Found"],
  "bad-credential": [401, "Unauthorized - Invalid or missing API key"],
  "missing-scope": [403, "Forbidden - Account does not have access"],
  "server-error": [500, "Server error"],
  "bad-gateway": [502, "<html><h1>502 Bad Gateway</h1></html>"],
} as const satisfies { readonly [effect in VendorEffect]?: readonly [number, string] };
type Word = keyof typeof words;
const effects: readonly Word[] = [
  "bad-value",
  "wrong-path",
  "bad-credential",
  "missing-scope",
  "server-error",
  "bad-gateway",
];

const personasPath = "/v1/personas";

export class AnamModel implements VendorModel {
  readonly hosts = apiHosts;
  readonly vocabulary = {
    effects,
    switches: ["listLagMs", "pageSize", "credential"],
    edits: ["rename", "change", "remove", "unstamp", "twin", "break", "mend", "stranger"],
  } as const;
  readonly #personas = new LaggingStore<PersonaRecord>();
  readonly #unknowns: Unknowns;
  #switches: Pick<Required<Switches>, "listLagMs" | "pageSize" | "credential"> = {
    listLagMs: 0,
    pageSize: 100,
    credential: "good",
  };

  constructor(unknowns: Partial<Unknowns> = {}) {
    this.#unknowns = { ...firstGuess, ...unknowns };
    // Every organization sees Anam's own; nobody may change them.
    this.#put({ name: "Cara", isDefaultPersona: true });
  }

  operationOf({ method, path }: ApiRequest): ReturnType<VendorModel["operationOf"]> {
    if (path === personasPath) {
      if (method === "POST") return "create";
      return method === "GET" ? "list" : undefined;
    }
    if (!/^\/v1\/personas\/[^/]+$/.test(path)) return undefined;
    if (method === "GET") return "read";
    if (method === "PUT") return "update";
    return method === "DELETE" ? "delete" : undefined;
  }

  answer(request: ApiRequest): ApiAnswer {
    const { credential } = this.#switches;
    const isKnown = request.headers["authorization"] === `Bearer ${emulatorApiKey}`;
    if (!isKnown || credential === "wrong") return this.say("bad-credential");
    if (credential === "scopeless") return this.say("missing-scope");
    switch (this.operationOf(request)) {
      case "create":
        return this.#create(request);
      case "list":
        return this.#list(request.query);
      case "read":
      case "update":
      case "delete":
        return this.#one(request);
      default:
        return this.say("wrong-path");
    }
  }

  say(effect: VendorEffect): ApiAnswer {
    const word = effects.find((known) => known === effect);
    if (word === undefined) throw new Error(`Anam has no words for ${effect}`);
    const [status, text] = words[word];
    return word === "bad-gateway" ? page(status, text) : this.#refuse(status, text);
  }

  turn({ listLagMs, pageSize, credential }: Required<Switches>): void {
    this.#switches = { listLagMs, pageSize, credential };
  }

  edit({ edit, id }: Edit): readonly string[] {
    if (edit === "stranger") return [this.#put({ name: "somebody else's" })];
    const persona = this.#personas.get(id);
    if (persona === undefined) throw new Error(`there is no persona ${id}`);
    switch (edit) {
      case "rename":
        this.#put({ ...persona, name: `${persona.name} at the console` });
        return [];
      case "change":
        this.#put({ ...persona, systemPrompt: `${persona.systemPrompt} Be brief.` });
        return [];
      case "remove":
        this.#personas.put(id, undefined);
        return [];
      case "unstamp":
        this.#put({ ...persona, description: "" });
        return [];
      case "twin":
        return [this.#put({ ...persona, id: randomUUID(), createdAt: new Date().toISOString() })];
      case "break":
      case "mend":
        this.#put({ ...persona, hasVoice: edit === "mend" });
        return [];
      default:
        throw new Error(`nobody can ${edit} a persona`);
    }
  }

  instances(): readonly EmulatedInstance[] {
    return this.#personas.all().map((persona) => ({
      id: persona.id,
      text: JSON.stringify(persona),
      createdAtMs: Date.parse(persona.createdAt),
    }));
  }

  #put(fields: Partial<PersonaRecord>): string {
    const now = new Date().toISOString();
    const { descriptionCharactersMax, trimsTexts } = this.#unknowns;
    const kept = (text: string): string => (trimsTexts ? text.trim() : text);
    const persona: PersonaRecord = {
      id: randomUUID(),
      avatarId: avatarIds[0],
      voiceId: voiceIds[0],
      hasVoice: true,
      llmId: "0f0e0d0c-0000-4000-8000-000000000001",
      avatarModel: "cara-3",
      skipGreeting: false,
      isDefaultPersona: false,
      createdAt: now,
      ...fields,
      name: kept(fields.name ?? ""),
      description: kept(fields.description ?? "").slice(0, descriptionCharactersMax),
      systemPrompt: kept(fields.systemPrompt ?? "You are a helpful assistant."),
      updatedAt: now,
    };
    this.#personas.put(persona.id, persona);
    return persona.id;
  }

  #create(request: ApiRequest): ApiAnswer {
    const settings = settingsOf(request);
    if (settings?.avatarId === undefined || settings.voiceId === undefined) {
      return this.say("bad-value");
    }
    const id = this.#put(settings);
    return { ...this.#show(id, 201), change: "created", instanceId: id };
  }

  #list(query: URLSearchParams): ApiAnswer {
    const [current, perPage] = [Number(query.get("page") ?? 1), Number(query.get("perPage") ?? 10)];
    const isSound = (value: number, max: number): boolean =>
      Number.isSafeInteger(value) && value >= 1 && value <= max;
    if (!isSound(current, 1_000_000) || !isSound(perPage, 100)) {
      return this.#refuse(400, "Bad request - Invalid query parameters");
    }
    const { listLagMs, pageSize } = this.#switches;
    const size = Math.min(perPage, pageSize);
    const oldestFirst = this.#personas.all(listLagMs);
    const { order, form } = this.#unknowns;
    const all = order === "oldest-first" ? oldestFirst : oldestFirst.toReversed();
    const lastPage = Math.max(1, Math.ceil(all.length / size));
    const data = all
      .slice((current - 1) * size, current * size)
      .map((persona) => shownPersona(persona, form, "trimmed"));
    const meta = {
      total: all.length,
      lastPage,
      currentPage: current,
      perPage: size,
      prev: current > 1 ? current - 1 : null,
      next: current < lastPage ? current + 1 : null,
    };
    return { status: 200, body: { data, meta } };
  }

  #one(request: ApiRequest): ApiAnswer {
    const id = request.path.slice(personasPath.length + 1);
    const persona = this.#personas.get(id);
    if (persona === undefined) {
      // The documents have these two texts for the same thing.
      const text = request.method === "GET" ? "No personas found" : "Persona not found";
      return this.#refuse(404, `Not Found - ${text}`);
    }
    if (request.method === "GET") return this.#show(id, 200);
    if (persona.isDefaultPersona) return this.say("missing-scope");
    if (request.method === "DELETE") {
      this.#personas.put(id, undefined);
      const body = { message: "Persona deleted" };
      return { status: 200, body, change: "deleted", instanceId: id };
    }
    const settings: Settings | undefined = settingsOf(request);
    if (settings === undefined) return this.say("bad-value");
    const hasVoice = persona.hasVoice || settings.voiceId !== undefined;
    this.#put({ ...persona, ...settings, hasVoice });
    return { ...this.#show(id, 200), change: "updated", instanceId: id };
  }

  #show(id: string, status: number): ApiAnswer {
    const persona = this.#personas.get(id);
    if (persona === undefined) throw new Error(`persona ${id} was to be there`);
    return { status, body: shownPersona(persona, this.#unknowns.form, "whole") };
  }

  #refuse(status: number, text: string): ApiAnswer {
    switch (this.#unknowns.errorBody) {
      case "json":
        return { status, body: { message: text } };
      case "text":
        return { status, headers: { "content-type": "text/plain; charset=utf-8" }, body: text };
      default:
        return { status };
    }
  }
}

function page(status: number, text: string): ApiAnswer {
  return { status, headers: { "content-type": "text/html" }, body: text };
}
