/** The table of README.md: each test that it names exists, in the file that it names. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const text = readFileSync(join(root, "test/faults/README.md"), "utf8");

interface Row {
  readonly promise: string;
  readonly file: string;
  readonly name: string;
}

const rows = text
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .slice(2)
  .map((line): Row => {
    const [, promise = "", file = "", name = "", ...rest] = line
      .split("|")
      .map((cell) => cell.trim());
    assert.deepEqual(rest, [""], `not three cells: ${line}`);
    return { promise, file: file.replaceAll("`", ""), name };
  });

test("the table begins with a promise, and each of its rows names a file and a test", () => {
  assert.notEqual(rows[0]?.promise, "");
  assert.ok(rows.every(({ file, name }) => file.endsWith(".test.ts") && name !== ""));
});

for (const { file, name } of rows) {
  test(`${file} has the test "${name}"`, () => {
    const path = join(root, file);
    assert.ok(existsSync(path), "there is no such file");
    const names = readFileSync(path, "utf8").matchAll(/\b(?:test|it)\(\s*(["`])(.*?)\1/gs);
    assert.ok([...names].some(([, , found]) => found === name));
  });
}
