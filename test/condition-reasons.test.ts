/** docs/conditions.md and the code name the same reasons. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

function read(path: string): string {
  return readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
}

function found(path: string, ...patterns: readonly RegExp[]): readonly string[] {
  const text = read(path);
  return patterns.flatMap((pattern) => [...text.matchAll(pattern)].map((match) => match[1] ?? ""));
}

const inCode = new Set([
  ...found(
    "controller/reconcile/ready.ts",
    /verdict\(\s*"(?:True|False|Unknown)",\s*"([A-Z]\w+)"/g,
    /\bno\(\s*"([A-Z]\w+)"/g,
    /"(Delete(?:Blocked|Failed))"/g,
    /"(HealthStale)"/g,
  ),
  ...found("controller/reconcile/usage.ts", /reason: "([A-Z]\w+)"/g),
  ...found("controller/reconcile/failure.ts", /row\(\s*"([A-Z]\w+)"/g),
  ...found("controller/resource/class-choice.ts", /reason: "([A-Z]\w+)"/g),
  ...found("controller/reconcile/conditions.ts", /reason: "([A-Z]\w+)"/g),
  ...found("controller/classes/class-status.ts", /reason: "([A-Z]\w+)"/g),
  // Drifted's reason is the object's own policy.
  "Correct",
  "Observe",
]);

const documented = new Set(found("docs/conditions.md", /^\| `([A-Z]\w+)` \|/gm));

test("every reason in the code is explained", () => {
  assert.deepEqual(
    [...inCode].filter((reason) => !documented.has(reason)),
    [],
  );
});

test("every reason that is explained can happen", () => {
  assert.deepEqual(
    [...documented].filter((reason) => !inCode.has(reason)),
    [],
  );
});
