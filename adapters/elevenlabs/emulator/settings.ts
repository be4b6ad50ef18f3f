/**
 * What nobody outside the vendor knows for certain, as switches: the adapter has to be right both
 * ways. Each says where its default comes from: spec (the vendor's documents), seen (in public
 * reports), guess.
 */
import { isTexts, recordOf } from "./json-shapes.ts";

export interface EmulatorSettings {
  /** Shape of `detail`. Seen: "current" in 2026, "older" before. */
  readonly errorShape: "current" | "older";
  /** Code of a missing agent; guess. */
  readonly agentMissingCode: string;
  /** Status of a missing voice: 404, in 2024 400; seen. */
  readonly voiceMissingStatus: 400 | 404;
  /** Both are in the spec. */
  readonly deleteStatus: 200 | 204;
  /** Whether PATCH lays sections over the old ones or replaces them; guess. */
  readonly patch: "deep" | "shallow";
  /** Whether a list's cursor names the last agent or a number of agents; guess. */
  readonly cursor: "keyset" | "offset";
  /** Agents in a page at most, whatever was asked for; spec. */
  readonly pageSizeMax: number;
  /** How long lists, and reads by id, show the state before a change; guess. Emulator time. */
  readonly listLagMs: number;
  readonly readLagMs: number;
  /** Longest tag in characters; 0: any; guess. */
  readonly tagCharactersMax: number;
  /** Case of tags; guess. */
  readonly tags: "kept" | "lower-case";
  /** White space at the ends of texts; guess. */
  readonly texts: "kept" | "trimmed";
  /** Voices that exist; empty: all. */
  readonly knownVoices: readonly string[];
  /** Older answers repeat the key: in GET /v1/user, and in what is refused; guess. */
  readonly repeatsKey: boolean;
}

export const defaultSettings: EmulatorSettings = {
  errorShape: "current",
  agentMissingCode: "agent_not_found",
  voiceMissingStatus: 404,
  deleteStatus: 204,
  patch: "deep",
  cursor: "keyset",
  pageSizeMax: 100,
  listLagMs: 0,
  readLagMs: 0,
  tagCharactersMax: 0,
  tags: "kept",
  texts: "kept",
  knownVoices: [],
  repeatsKey: false,
};

type Check = (value: unknown) => boolean;

const oneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);
const count: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;

const checks: Readonly<Record<keyof EmulatorSettings, Check>> = {
  errorShape: oneOf("current", "older"),
  agentMissingCode: (value) => typeof value === "string" && value !== "",
  voiceMissingStatus: oneOf(400, 404),
  deleteStatus: oneOf(200, 204),
  patch: oneOf("deep", "shallow"),
  cursor: oneOf("keyset", "offset"),
  pageSizeMax: (value) => count(value) && value !== 0,
  listLagMs: count,
  readLagMs: count,
  tagCharactersMax: count,
  tags: oneOf("kept", "lower-case"),
  texts: oneOf("kept", "trimmed"),
  knownVoices: isTexts,
  repeatsKey: oneOf(true, false),
};

/** The settings with some changed; throws on a name or value that is none. */
export function changedSettings(settings: EmulatorSettings, change: unknown): EmulatorSettings {
  const fields = recordOf(change);
  if (fields === undefined) throw new Error("settings: want an object");
  for (const [name, value] of Object.entries(fields)) {
    const check = Object.entries(checks).find(([known]) => known === name)?.[1];
    if (check === undefined) throw new Error(`settings: there is no "${name}"`);
    if (!check(value)) throw new Error(`settings.${name}: not ${JSON.stringify(value)}`);
  }
  // Each field has passed the check of its name.
  return { ...settings, ...(fields as Partial<EmulatorSettings>) };
}
