/** Settings of agents: defaults from the vendor's spec, what is refused, what is stored otherwise. */
import { isTexts, merged, recordOf, valueAt, withTexts } from "./json-shapes.ts";
import type { Json } from "./json-shapes.ts";
import type { EmulatorSettings } from "./settings.ts";
import type { Refusal } from "./vendor-errors.ts";

/** What a body of create or PATCH may change. */
export interface AgentFields {
  readonly name: string;
  readonly tags: readonly string[];
  readonly conversation_config: Json;
  readonly platform_settings: Json;
}

export const defaultFields: AgentFields = {
  name: "New agent",
  tags: [],
  conversation_config: {
    agent: {
      first_message: "",
      language: "en",
      prompt: { prompt: "", llm: "gemini-2.5-flash", temperature: 0, max_tokens: -1 },
    },
    tts: { model_id: "eleven_flash_v2", voice_id: "cjVigY5qzO86Huf0OWal", stability: 0.5 },
    conversation: { text_only: false, max_duration_seconds: 600 },
  },
  platform_settings: {
    archived: false,
    call_limits: { agent_concurrency_limit: -1, daily_limit: 100_000, bursting_enabled: true },
  },
};

/** `fields` as they are after a body; `null` and absence leave them. */
export function changedFields(
  fields: AgentFields,
  body: Json,
  settings: Pick<EmulatorSettings, "patch" | "tags" | "texts">,
): AgentFields {
  const stored = recordOf(
    withTexts(body, (text) => (settings.texts === "trimmed" ? text.trim() : text)),
  );
  const { name, tags, conversation_config, platform_settings } = stored ?? {};
  const over = (base: Json, defaults: Json, value: unknown): Json => {
    const section = recordOf(value);
    if (section === undefined) return base;
    return settings.patch === "deep" ? merged(base, section) : merged(defaults, section);
  };
  const kept = isTexts(tags) ? tags : fields.tags;
  return {
    name: typeof name === "string" ? name : fields.name,
    tags: settings.tags === "kept" ? kept : kept.map((tag) => tag.toLowerCase()),
    conversation_config: over(
      fields.conversation_config,
      defaultFields.conversation_config,
      conversation_config,
    ),
    platform_settings: over(
      fields.platform_settings,
      defaultFields.platform_settings,
      platform_settings,
    ),
  };
}

/** Everything that is wrong with a body. */
export function refusalsOf(
  body: Json,
  isCreate: boolean,
  settings: EmulatorSettings,
): readonly Refusal[] {
  const refusals: Refusal[] = [];
  const refuse = (at: readonly (string | number)[], msg: string, type: string): void =>
    void refusals.push({ loc: ["body", ...at], msg, type });
  if (isCreate && body["conversation_config"] === undefined) {
    refuse(["conversation_config"], "Field required", "missing");
  }
  for (const [name, rule] of rules) {
    const at = name.split(".");
    const value = valueAt(body, at);
    if (value !== undefined && value !== null && !rule.isSound(value)) {
      refuse(at, rule.msg, rule.type);
    }
  }
  const tags = body["tags"];
  const { tagCharactersMax } = settings;
  if (!isTexts(tags) || tagCharactersMax === 0) return refusals;
  tags.forEach((tag, index) => {
    if (tag.length <= tagCharactersMax) return;
    refuse(
      ["tags", index],
      `String should have at most ${tagCharactersMax} characters`,
      "string_too_long",
    );
  });
  return refusals;
}

/** The voice that a body asks for. */
export function voiceOf(body: Json): string | undefined {
  const voice = valueAt(body, ["conversation_config", "tts", "voice_id"]);
  return typeof voice === "string" ? voice : undefined;
}

interface Rule {
  readonly isSound: (value: unknown) => boolean;
  readonly msg: string;
  readonly type: string;
}

const object: Rule = {
  isSound: (value) => recordOf(value) !== undefined,
  msg: "Input should be a valid dictionary",
  type: "dict_type",
};
const text: Rule = {
  isSound: (value) => typeof value === "string",
  msg: "Input should be a valid string",
  type: "string_type",
};
const whole: Rule = {
  isSound: Number.isSafeInteger,
  msg: "Input should be a valid integer",
  type: "int_type",
};
const truth: Rule = {
  isSound: (value) => typeof value === "boolean",
  msg: "Input should be a valid boolean",
  type: "bool_type",
};
const voiceModels = [
  "eleven_turbo_v2",
  "eleven_turbo_v2_5",
  "eleven_flash_v2",
  "eleven_flash_v2_5",
  "eleven_multilingual_v2",
  "eleven_v3_conversational",
];

const rules: readonly (readonly [string, Rule])[] = [
  ["name", text],
  ["tags", { isSound: isTexts, msg: "Input should be a valid list", type: "list_type" }],
  ["conversation_config", object],
  ["platform_settings", object],
  ["conversation_config.agent.first_message", text],
  [
    "conversation_config.agent.language",
    {
      isSound: (value) => typeof value === "string" && /^[a-z]{2}(-[a-z]{2})?$/i.test(value),
      msg: "Language is not supported",
      type: "value_error",
    },
  ],
  ["conversation_config.agent.prompt.prompt", text],
  ["conversation_config.agent.prompt.llm", text],
  ["conversation_config.tts.voice_id", text],
  [
    "conversation_config.tts.model_id",
    {
      isSound: (value) => voiceModels.some((model) => model === value),
      msg: `Input should be one of ${voiceModels.join(", ")}`,
      type: "enum",
    },
  ],
  ["conversation_config.conversation.max_duration_seconds", whole],
  ["platform_settings.archived", truth],
  ["platform_settings.call_limits.agent_concurrency_limit", whole],
  ["platform_settings.call_limits.daily_limit", whole],
];
