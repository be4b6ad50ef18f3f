/** What the template makes is true: examples/ has no tests of its own. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  realpath,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";

import { problemWithVendor, rendered, writeAdapter } from "./new-adapter.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const outputCharactersMax = 8 * 1024 * 1024;

describe("a vendor's name", () => {
  it("is a label of lower-case letters, digits and single hyphens", () => {
    for (const name of ["a", "anam", "two-words", "v2", "a1-b2-c3", "x".repeat(40)]) {
      assert.equal(problemWithVendor(name), undefined, name);
    }
  });

  it("is refused where it could not name an object, a folder or an identifier", () => {
    const unusable = ["Anam", "2go", "-a", "a-", "a--b", "a_b", "a.b", "a/b", "../a", "a b", "é"];
    for (const name of [...unusable, "x".repeat(41), "a\n"]) {
      assert.match(problemWithVendor(name) ?? "", /cannot name an adapter/, name);
    }
    assert.match(problemWithVendor("") ?? "", /name the vendor/);
    assert.match(problemWithVendor("acme") ?? "", /template's own name/);
  });
});

describe("the template's text", () => {
  const text =
    'const acmeAdapter = "dhp-adapter-acme"; // Acme, AcmeModel, api.acme.example, acme-key';

  it("names a vendor of one word", () => {
    const want =
      'const anamAdapter = "dhp-adapter-anam"; // Anam, AnamModel, api.anam.example, anam-key';
    assert.equal(rendered(text, "anam"), want);
  });

  it("names a vendor with a hyphen so that identifiers stay identifiers", () => {
    const want =
      'const twoWordsAdapter = "dhp-adapter-two-words"; // TwoWords, TwoWordsModel, api.two-words.example, two-words-key';
    assert.equal(rendered(text, "two-words"), want);
  });
});

describe("a folder made for a vendor", () => {
  let skeleton: string;
  let folder: string;
  let files: readonly string[];

  // A repository whose only adapter it is; all else is this one's.
  before(async () => {
    skeleton = await mkdtemp(join(tmpdir(), "dhp-new-adapter-"));
    const linked = ["services", "proto", "test", "deploy", "node_modules", "package.json"];
    for (const name of [...linked, "tsconfig.json"]) {
      await symlink(join(root, name), join(skeleton, name));
    }
    await mkdir(join(skeleton, "adapters"));
    folder = join(skeleton, "adapters", "two-words");
    files = writeAdapter("two-words", folder);
  });
  after(() => rm(skeleton, { recursive: true, force: true }));

  it("holds each file of the template, without the template's name", async () => {
    const made = await readdir(folder, { recursive: true, withFileTypes: true });
    const count = made.filter((entry) => entry.isFile()).length;
    assert.ok(count > 10 && count === files.length);
    for (const file of files) {
      assert.doesNotMatch(file + (await readFile(join(folder, file), "utf8")), /acme/i, file);
    }
  });

  it("is never written over", () => {
    assert.throws(() => writeAdapter("two-words", folder), /exists already/);
  });

  it("passes the type check as it is", async () => {
    const config = join(skeleton, "tsconfig.adapter.json");
    await writeFile(config, '{"extends": "./tsconfig.json", "include": ["adapters"]}');
    const compiler = await realpath(join(root, "node_modules/.bin/tsc"));
    const { code, output } = await run([compiler, "-p", config]);
    assert.equal(code, 0, output);
  });

  it("keeps all of the contract but for the vendor's words that are to be filled in", async () => {
    // One word as a vendor team fills it in, and a vendor that is quick, which saves the suite waiting.
    const word = '"bad-credential": { status: 401, body: { error: { code: "who_are_you" } } },';
    await replace("emulator.ts", '  "server-error":', `  ${word}\n  "server-error":`);
    await replace("errors.ts", "  fill_in:", '  who_are_you: "BAD_CREDENTIAL",\n  fill_in:');
    await replace("adapter.ts", "visibilityLagMs: 5_000", "visibilityLagMs: 500");
    await replace("adapter.ts", "mutationDeadlineMs: 10_000", "mutationDeadlineMs: 3_000");
    const path = join(folder, "conformance.test.ts");
    const { output } = await run(["--test", "--test-reporter=spec", path]);
    const [, passed] = /(\d+) passed, \d+ skipped/.exec(output) ?? [];
    assert.ok(Number(passed) > 150, output.slice(-4_000));
    const failures = output.match(/FAIL {2}[^]*?to do:.*/g) ?? [];
    assert.ok(failures.length > 0, "somebody has to be told what to fill in");
    const isFillIn = (failure: string): boolean => /came:.*Fill in, emulator\.ts/.test(failure);
    assert.deepEqual(
      failures.filter((failure) => !isFillIn(failure) || failure.includes("bad-credential")),
      [],
    );
  });

  async function replace(file: string, text: string, by: string): Promise<void> {
    const path = join(folder, file);
    const before = await readFile(path, "utf8");
    assert.ok(before.includes(text), `${file} has no longer "${text}"`);
    await writeFile(path, before.replace(text, by));
  }
});

/** A Node process; ends after 280 s at the latest. @returns all that it wrote, up to 8 MiB */
function run(
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly output: string }> {
  // With this variable a test runner inside another one reports to that one, and not in words.
  const command = ["-u", "NODE_TEST_CONTEXT", process.execPath, ...args];
  const child = spawn("env", command, { cwd: root, timeout: 280_000 });
  let output = "";
  const take = (chunk: Buffer): void => {
    if (output.length < outputCharactersMax) output += chunk.toString();
  };
  child.stdout.on("data", take);
  child.stderr.on("data", take);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, output }));
  });
}
