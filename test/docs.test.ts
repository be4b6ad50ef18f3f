/** What the documents say exists, exists: files, npm scripts, condition reasons, metric names. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const documents = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "--", "*.md"], {
  cwd: root,
  encoding: "utf8",
  timeout: 60_000,
})
  .split("\n")
  .filter((path) => path !== "" && existsSync(join(root, path)));

test("there are the documents that a newcomer looks for", () => {
  for (const path of ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]) {
    assert.ok(documents.includes(path), `${path} is missing`);
  }
  assert.match(readFileSync(join(root, "LICENSE"), "utf8"), /Apache License\s+Version 2\.0/);
});

for (const path of documents) {
  const text = readFileSync(join(root, path), "utf8");

  test(`${path}: every npm script it names exists`, () => {
    const scripts = [...text.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map((match) => match[1] ?? "");
    const missing = scripts.filter((name) => manifest.scripts[name] === undefined);
    assert.deepEqual(missing, []);
  });

  test(`${path}: every link leads to a file`, () => {
    const links = [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)].map(
      (match) => match[1] ?? "",
    );
    const broken = links.filter((link) => !existsSync(join(root, dirname(path), link)));
    assert.deepEqual(broken, []);
  });

  test(`${path}: every path of this repository that it quotes exists`, () => {
    const quoted = [...text.matchAll(/`((?:\.\/)?(?:[\w.-]+\/)+[\w.*-]*)`/g)].map(
      (match) => match[1] ?? "",
    );
    const ours = quoted.filter((name) =>
      /^(proto|services|controller|adapters|deploy|test|docs)\//.test(name),
    );
    const broken = ours.filter((name) => !name.includes("*") && !existsSync(join(root, name)));
    assert.deepEqual(broken, []);
  });

  test(`${path}: names no machine of ours and no unfinished business`, () => {
    assert.doesNotMatch(
      text,
      new RegExp(["\\b(TO", "DO|FIX", "ME|TBD)\\b|/work/|/root/"].join("")),
    );
  });
}
