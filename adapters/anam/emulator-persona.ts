/** A persona as the emulator keeps, shows and takes it. */
import type { ApiRequest } from "../../services/vendor-emulator/vendor-model.ts";

export interface PersonaRecord {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly avatarId: string;
  readonly voiceId: string;
  /** False: the voice was taken away, and personas show null in its place. */
  readonly hasVoice: boolean;
  readonly llmId: string;
  readonly systemPrompt: string;
  readonly avatarModel: string;
  readonly skipGreeting: boolean;
  /** Anam's own. */
  readonly isDefaultPersona: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** Avatars and voices of the organization; no others can be named. */
export const avatarIds = [
  "a0000000-0000-4000-8000-000000000001",
  "a0000000-0000-4000-8000-000000000002",
] as const;
export const voiceIds = [
  "b0000000-0000-4000-8000-000000000001",
  "b0000000-0000-4000-8000-000000000002",
] as const;

/** What a client may set. */
export type Settings = Partial<
  Pick<
    PersonaRecord,
    | "name"
    | "description"
    | "avatarId"
    | "voiceId"
    | "llmId"
    | "systemPrompt"
    | "avatarModel"
    | "skipGreeting"
  >
>;

const isText = (value: unknown): boolean => typeof value === "string";
const isOneOf =
  (ids: readonly string[]) =>
  (value: unknown): boolean =>
    typeof value === "string" && ids.includes(value);

/** What each field takes; a field that is not here is refused. */
const takes: { readonly [field in keyof Settings]-?: (value: unknown) => boolean } = {
  name: isText,
  description: isText,
  avatarId: isOneOf(avatarIds),
  voiceId: isOneOf(voiceIds),
  llmId: isText,
  systemPrompt: isText,
  avatarModel: isOneOf(["cara-3", "cara-4"]),
  skipGreeting: (value) => typeof value === "boolean",
};

/** `undefined`: invalid persona data. */
export function settingsOf({ body, headers }: ApiRequest): Settings | undefined {
  if (headers["content-type"]?.startsWith("application/json") !== true) return undefined;
  const json = parsed(body);
  if (typeof json !== "object" || json === null || Array.isArray(json)) return undefined;
  const checks: Readonly<Record<string, (value: unknown) => boolean>> = takes;
  const isSound = Object.entries(json).every(([field, value]) => checks[field]?.(value) === true);
  return isSound ? { ...json } : undefined;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // Not JSON: refused like any other body that is no object.
    return undefined;
  }
}

/** Whole, or trimmed as lists show it; in either of the published forms. */
export function shownPersona(
  persona: PersonaRecord,
  form: "parts" | "flat",
  extent: "whole" | "trimmed",
): object {
  const { id, name, description, createdAt, updatedAt, isDefaultPersona } = persona;
  const { avatarId, llmId, systemPrompt, avatarModel, skipGreeting } = persona;
  const voiceId = persona.hasVoice ? persona.voiceId : null;
  const common = { id, name, description, createdAt, updatedAt };
  if (form === "flat") {
    return { ...common, avatarId, voiceId, llmId, systemPrompt, avatarModel, skipGreeting };
  }
  const voice = voiceId === null ? null : { id: voiceId, displayName: "a voice" };
  const parts = { ...common, avatar: { id: avatarId, displayName: "an avatar" }, voice };
  if (extent === "trimmed") return { ...parts, isDefaultPersona, languageCode: "inherit" };
  return { ...parts, llmId, avatarModel, brain: { personality: null, systemPrompt }, skipGreeting };
}
