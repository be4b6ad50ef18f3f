/** The adapter in Go by its own tools: its tests, its linter, its formatter, its generated code. */
import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runCommand } from "../../deploy/dev-cluster/command.ts";
import { readDevClusterOptions } from "../../deploy/dev-cluster/dev-cluster-options.ts";
import { repositoryFolder } from "../../deploy/manifest-folders.ts";
import { makeStamp } from "../../services/adapter-host/stamp.ts";

const cwd = join(repositoryFolder, "examples/adapter-go");
const bin = join(repositoryFolder, "node_modules/.bin");
const timeoutMs = 300_000;

async function run(command: string, args: readonly string[]): Promise<string> {
  const own = readDevClusterOptions().environment;
  const environment = { ...own, GOWORK: "off", GOFLAGS: "-mod=readonly", CGO_ENABLED: "0" };
  const { code, stdout, stderr } = await runCommand(command, args, { cwd, environment, timeoutMs });
  assert.equal(code, 0, `${command} ${args.join(" ")}\n${stdout}${stderr}`);
  return stdout;
}

test("go test passes", async () => {
  assert.match(await run("go", ["test", "-timeout=60s", "./..."]), /^ok\s/m);
});

test("go vet finds nothing", async () => {
  await run("go", ["vet", "./..."]);
});

test("gofmt would change nothing", async () => {
  assert.equal(await run("gofmt", ["-l", "."]), "");
});

test("the committed Go code is what the contract generates", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "dhp-generate-go-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await run(join(bin, "buf"), ["generate", "--output", folder]);
  const generated = await filesBelow(join(folder, "gen"));
  assert.ok(generated.size > 0);
  const problem = "run in examples/adapter-go: ../../node_modules/.bin/buf generate";
  assert.deepEqual(await filesBelow(join(cwd, "gen")), generated, problem);
});

test("both languages stamp alike", async () => {
  const rows: readonly { key: string; cluster: string; short: string }[] = JSON.parse(
    await readFile(join(cwd, "testdata/stamps.json"), "utf8"),
  );
  assert.ok(rows.length > 0);
  for (const { key, cluster, short } of rows) {
    assert.equal(makeStamp(key, { cluster, uid: "" }, "").short, short);
  }
});

async function filesBelow(folder: string): Promise<ReadonlyMap<string, string>> {
  const names = await readdir(folder, { recursive: true });
  const sources = names.filter((name) => name.endsWith(".go")).sort();
  const read = sources.map(async (name): Promise<[string, string]> => {
    return [name, await readFile(join(folder, name), "utf8")];
  });
  return new Map(await Promise.all(read));
}
