import assert from "node:assert/strict";
import { test } from "node:test";

import { parameterChecker } from "./parameter-schema.ts";

const check = parameterChecker({
  type: "object",
  additionalProperties: false,
  required: ["voice"],
  properties: {
    voice: { type: "string", pattern: "^[a-z]+$" },
    speed: { type: "string", enum: ["slow", "fast"], default: "slow" },
  },
});

test("what is absent has the schema's default", () => {
  const parameters = { voice: "alto", speed: "slow" };
  assert.deepEqual(check({ voice: "alto" }), { kind: "sound", parameters });
});

test("a mistake is named by its path in spec, in words for whoever wrote it", () => {
  const violations = [
    { path: "parameters.voice", description: "is required" },
    { path: "parameters.pitch", description: "is no parameter of this adapter" },
  ];
  assert.deepEqual(check({ pitch: "high" }), { kind: "refused", violations });
});

test("a value that is refused is not repeated", () => {
  const refused = check({ voice: "SECRET", speed: "SECRET" });
  assert.equal(refused.kind, "refused");
  assert.doesNotMatch(JSON.stringify(refused), /SECRET/);
  assert.match(JSON.stringify(refused), /slow, fast/);
});
