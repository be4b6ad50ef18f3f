import assert from "node:assert/strict";
import { test } from "node:test";
import { findUntidy, readSources } from "./tidy.ts";

test("the repository keeps its own rules", () => {
  assert.deepEqual(findUntidy(readSources()), []);
});

const breaches: readonly (readonly [string, string, string])[] = [
  ["an adapter imports another", "adapters/a/adapter.ts", 'import { b } from "../b/adapter.ts";'],
  [
    "services import the controller",
    "services/process/a.ts",
    'import { b } from "../../controller/b.ts";',
  ],
  [
    "the runtime imports providers",
    "controller/queue/a.ts",
    'import { b } from "../providers/b.ts";',
  ],
  [
    "the controller imports the adapter host",
    "controller/a.ts",
    'import { b } from "../services/adapter-host/b.ts";',
  ],
  ["grpc-js outside its door", "controller/a.ts", 'import { b } from "@grpc/grpc-js";'],
  [
    "client-node outside its door",
    "controller/a.ts",
    'import { b } from "@kubernetes/client-node";',
  ],
  ["opossum outside the breaker", "services/vendor-http/a.ts", 'import b from "opossum";'],
  ["undici in an adapter", "adapters/a/adapter.ts", 'import { request } from "undici";'],
  [
    "prom-client outside the metrics file",
    "services/process/a.ts",
    'import { b } from "prom-client";',
  ],
  ["an import without .ts", "controller/a.ts", 'import { b } from "./b";'],
  ["a file without one idea", "controller/utils.ts", ""],
  ["a name that is not kebab-case", "controller/someThing.ts", ""],
  ["the environment outside options", "controller/a.ts", ["const a = process", "env.A;"].join(".")],
  ["a file of too many lines", "controller/a.ts", "\n".repeat(401)],
  ["a test switched off", "controller/a.test.ts", ["test", 'skip("x", () => {});'].join(".")],
];

for (const [name, path, text] of breaches) {
  test(`tidy finds: ${name}`, () => {
    assert.equal(findUntidy([{ path, text }]).length, 1);
  });
}
