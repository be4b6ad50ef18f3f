import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runCommand } from "./command.ts";
import { readDevClusterOptions } from "./dev-cluster-options.ts";

const { environment } = readDevClusterOptions();
const prepare = fileURLToPath(new URL("prepare.ts", import.meta.url));

test("preparing what is ready prints nothing", async () => {
  const result = await runCommand(process.execPath, [prepare], { environment });
  assert.deepEqual(result, { stdout: "", stderr: "", code: 0 });
});

test("preparing on a machine without Go fails with one line that says what to install", async (t) => {
  const empty = await mkdtemp(join(tmpdir(), "dhp-no-go-"));
  t.after(() => rm(empty, { recursive: true, force: true }));
  const result = await runCommand(process.execPath, [prepare], {
    environment: { ...environment, PATH: empty, XDG_CACHE_HOME: empty },
  });
  assert.equal(result.code, 1);
  assert.match(result.stderr, /^cannot build guard: no Go on this machine[^\n]*\n$/);
});
