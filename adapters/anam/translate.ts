/** Anam's personas and our instances: the door where what comes from outside is checked. Pure. */
import type {
  FieldChange,
  FoundInstance,
  WantedInstance,
} from "../../services/adapter-host/adapter.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { readStamp } from "./stamp-text.ts";

type Json = Readonly<Record<string, unknown>>;

/**
 * A persona as far as it is used here. `undefined`: the answer does not show it, as lists leave out
 * what a look shows. `null`: the persona has none.
 */
export interface Persona {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly avatarId: string | null | undefined;
  readonly voiceId: string | null | undefined;
  readonly llmId: string | null | undefined;
  readonly systemPrompt: string | null | undefined;
  readonly avatarModel: string | null | undefined;
  readonly skipGreeting: boolean | undefined;
  /** 0: not shown. */
  readonly createdAtMs: number;
}

/** One page of the list. */
export interface PersonaPage {
  readonly personas: readonly Persona[];
  readonly page: number;
  readonly nextPage: number | undefined;
}

/** All that is wanted, as a body of create; the description is the stamp's place. */
export function settingsBody({ displayName, parameters }: WantedInstance): Json {
  const { skipGreeting, ...texts } = parameters;
  return {
    ...(displayName === undefined ? {} : { name: displayName }),
    ...texts,
    ...(skipGreeting === undefined ? {} : { skipGreeting: skipGreeting === "true" }),
  };
}

/**
 * The part of it that `changes` name, as a body of update: Anam leaves alone what a body does not
 * mention, and resets what hangs on a voice when the voice is mentioned anew. A changed avatar takes
 * its model along, which Anam may reset otherwise.
 */
export function changesBody(wanted: WantedInstance, changes: readonly FieldChange[]): Json {
  const fields = new Set(changes.map(({ field }) => field.replace(/^parameters\./, "")));
  if (fields.has("avatarId")) fields.add("avatarModel");
  if (fields.has("displayName")) fields.add("name");
  return Object.fromEntries(
    Object.entries(settingsBody(wanted)).filter(([field]) => fields.has(field)),
  );
}

/** A persona in the host's words. It is there at once, and has no state of its own. */
export function foundInstance(persona: Persona): FoundInstance {
  const { id, name, skipGreeting, createdAtMs } = persona;
  const stamp = readStamp(persona.description);
  const shown = {
    ...textOf("avatarId", persona.avatarId),
    ...textOf("voiceId", persona.voiceId),
    ...textOf("llmId", persona.llmId),
    ...textOf("systemPrompt", persona.systemPrompt),
    ...textOf("avatarModel", persona.avatarModel),
  };
  return {
    id,
    ...(stamp === undefined ? {} : { stamp }),
    state: "READY",
    ...healthOf(persona),
    displayName: name,
    parameters: {
      ...shown,
      ...(skipGreeting === undefined ? {} : { skipGreeting: `${skipGreeting}` }),
    },
    createdAtMs,
  };
}

function textOf(name: string, value: string | null | undefined): Readonly<Record<string, string>> {
  return typeof value === "string" ? { [name]: value } : {};
}

/** All that Anam shows of health: a persona whose avatar or voice was removed cannot be streamed. */
function healthOf({ avatarId, voiceId }: Persona): Pick<FoundInstance, "availability" | "message"> {
  const missing = [
    ...(avatarId === null ? ["avatar"] : []),
    ...(voiceId === null ? ["voice"] : []),
  ];
  if (missing.length === 0) return { availability: "AVAILABLE" };
  return { availability: "UNAVAILABLE", message: `the persona has no ${missing.join(" and no ")}` };
}

/** One persona, whole or as lists trim it, in either of the two forms that Anam has published. */
export function parsePersona(json: unknown): Persona {
  const fields = objectOf(json, "a persona");
  const { id } = fields;
  if (typeof id !== "string" || id === "") throw unreadable("a persona has no id");
  const door = new Door(fields, id);
  const createdAt = door.text("createdAt");
  return {
    id,
    name: door.text("name") ?? "",
    description: door.text("description") ?? "",
    avatarId: door.attached("avatar", "avatarId"),
    voiceId: door.attached("voice", "voiceId"),
    llmId: door.text("llmId"),
    systemPrompt: door.textWithin("brain", "systemPrompt") ?? door.text("systemPrompt"),
    avatarModel: door.text("avatarModel"),
    skipGreeting: door.flag("skipGreeting"),
    createdAtMs: Date.parse(createdAt ?? "") || 0,
  };
}

export function parsePage(json: unknown): PersonaPage {
  const { data, meta } = objectOf(json, "a list");
  if (!Array.isArray(data)) throw unreadable("a list has no data");
  const { currentPage, next } = objectOf(meta, "a list's meta");
  const isEnd = next === null || next === undefined;
  if (!isPageNumber(currentPage) || (!isEnd && !isPageNumber(next))) {
    throw unreadable("a list's meta says no page");
  }
  if (!isEnd && next <= currentPage) throw unreadable("a list's next page is not a later one");
  return {
    personas: data.map(parsePersona),
    page: currentPage,
    nextPage: isEnd ? undefined : next,
  };
}

/** The id, as soon as Anam names it: nothing else of the answer to a create matters. */
export function parseCreatedId(json: unknown): string {
  const { id } = objectOf(json, "an answer to create");
  if (typeof id !== "string" || id === "") throw unreadable("create answered without an id");
  return id;
}

function isPageNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}

/** The fields of one persona; a field of another kind than documented is VENDOR_UNREADABLE. */
class Door {
  readonly #fields: Json;
  readonly #of: string;

  constructor(fields: Json, of: string) {
    this.#fields = fields;
    this.#of = of;
  }

  text(name: string): string | null | undefined {
    return this.#textIn(this.#fields, name);
  }

  textWithin(part: string, name: string): string | null | undefined {
    const inner = this.#fields[part];
    if (inner === undefined || inner === null) return undefined;
    return this.#textIn(objectOf(inner, `${part} of persona ${this.#of}`), name);
  }

  /** Id of what is attached, as a part or flat; null where Anam shows that nothing is. */
  attached(part: string, flat: string): string | null | undefined {
    if (this.#fields[part] === null) return null;
    return this.textWithin(part, "id") ?? this.text(flat);
  }

  flag(name: string): boolean | undefined {
    const value = this.#fields[name];
    if (value === undefined || value === null || typeof value === "boolean") {
      return value ?? undefined;
    }
    throw unreadable(`${name} of persona ${this.#of} is neither true nor false`);
  }

  #textIn(fields: Json, name: string): string | null | undefined {
    const value = fields[name];
    if (value === undefined || value === null || typeof value === "string") return value;
    throw unreadable(`${name} of persona ${this.#of} is no text`);
  }
}

function objectOf(json: unknown, what: string): Json {
  if (typeof json === "object" && json !== null && !Array.isArray(json)) return { ...json };
  throw unreadable(`${what} is no JSON object`);
}

function unreadable(what: string): ProviderError {
  return new ProviderError("VENDOR_UNREADABLE", what);
}
