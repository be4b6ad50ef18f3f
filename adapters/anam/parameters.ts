/** spec.parameters of a persona. One notation for one value: another one would be drift for ever. */

const uuid = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$";

export const parameterSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  additionalProperties: false,
  required: ["avatarId", "voiceId"],
  properties: {
    avatarId: { type: "string", pattern: uuid, description: "The avatar: what is seen." },
    voiceId: { type: "string", pattern: uuid, description: "The voice: what is heard." },
    llmId: {
      type: "string",
      pattern: uuid,
      description: "The language model that answers; absent: Anam's default.",
    },
    systemPrompt: {
      type: "string",
      // Whether Anam trims texts is not known.
      pattern: "^\\S([\\s\\S]*\\S)?$",
      description: "What the persona is told before each conversation. No blanks at either end.",
    },
    avatarModel: {
      type: "string",
      pattern: "^cara-[a-z0-9-]{1,32}$",
      description: "Version of the model that draws the avatar, such as cara-3 or cara-4.",
    },
    skipGreeting: {
      type: "string",
      enum: ["true", "false"],
      description: "Whether the persona waits to be spoken to.",
    },
  },
} as const;
