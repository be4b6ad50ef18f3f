import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { buildCached, type BuildProgress, type BuildRecipe } from "./cached-build.ts";
import { runCommand } from "./command.ts";
import { readDevClusterOptions, type Environment } from "./dev-cluster-options.ts";

const { environment } = readDevClusterOptions();
const source = 'package main\n\nfunc main() { print("hello") }\n';

test("a second call takes the program from the cache", async (t) => {
  const bench = await createBench(t);
  const first = await bench.build();
  assert.equal((await runCommand(first, [])).stderr, "hello");
  const kinds = bench.seen.map(({ kind }) => kind);
  assert.equal(kinds[0], "building");
  assert.equal(kinds.at(-1), "built");
  bench.seen.length = 0;
  assert.equal(await bench.build(), first);
  assert.deepEqual(bench.seen, []);
});

test("changed sources, versions and flags make another program", async (t) => {
  const bench = await createBench(t);
  const paths = [await bench.build()];
  await writeFile(join(bench.module, "main.go"), source.replace("hello", "changed"));
  paths.push(await bench.build());
  await writeFile(join(bench.module, "go.mod"), "module example.com/tiny\n\ngo 1.24.0\n");
  paths.push(await bench.build());
  paths.push(await bench.build({ linkerFlags: "-s" }));
  assert.equal(new Set(paths).size, paths.length);
  assert.equal((await runCommand(paths[1] ?? "", [])).stderr, "changed");
});

test("sources in folders beneath count, tests do not", async (t) => {
  const bench = await createBench(t);
  const paths = [await bench.build()];
  await writeFile(join(bench.module, "main_test.go"), "package main\n");
  assert.equal(await bench.build(), paths[0]);
  await mkdir(join(bench.module, "words"));
  await writeFile(join(bench.module, "words", "words.go"), 'package words\n\nconst Hi = "hi"\n');
  const main = source.replace("func", 'import "example.com/tiny/words"\n\nfunc');
  await writeFile(join(bench.module, "main.go"), main.replace('"hello"', "words.Hi"));
  paths.push(await bench.build());
  await writeFile(join(bench.module, "words", "words.go"), 'package words\n\nconst Hi = "ho"\n');
  paths.push(await bench.build());
  assert.equal(new Set(paths).size, paths.length);
  assert.equal((await runCommand(paths[2] ?? "", [])).stderr, "ho");
});

test("two builders at once build once", async (t) => {
  const bench = await createBench(t);
  const [left, right] = await Promise.all([bench.build(), bench.build()]);
  assert.equal(left, right);
  assert.equal(bench.seen.filter(({ kind }) => kind === "built").length, 1);
  assert.deepEqual(await readdir(dirname(dirname(left))), [dirnameOf(left)]);
});

test("a module that does not compile says why and leaves nothing in the cache", async (t) => {
  const bench = await createBench(t);
  await writeFile(join(bench.module, "main.go"), "package main\n\nfunc main() { missing() }\n");
  await assert.rejects(bench.build(), /cannot build tiny: .*undefined: missing/s);
  assert.deepEqual(await readdir(join(bench.cache, "tiny")), []);
});

test("a machine without Go gets one clear message", async (t) => {
  const bench = await createBench(t);
  const noGo = { ...environment, PATH: bench.cache };
  await assert.rejects(bench.build({}, noGo), {
    message: /^cannot build tiny: no Go on this machine\..*install Go 1\.26/s,
  });
});

test("a build drops the programs that nobody has used for a month", async (t) => {
  const bench = await createBench(t);
  const shelf = join(bench.cache, "tiny");
  const days = (count: number) => new Date(Date.now() - count * 24 * 60 * 60_000);
  for (const [name, age] of [["forgotten", 31] as const, ["recent", 29] as const]) {
    await mkdir(join(shelf, name), { recursive: true });
    await utimes(join(shelf, name), days(age), days(age));
  }
  const program = await bench.build();
  assert.deepEqual((await readdir(shelf)).sort(), [dirnameOf(program), "recent"].sort());
  await utimes(dirname(program), days(40), days(40));
  await bench.build();
  assert.ok((await stat(dirname(program))).mtime > days(1));
});

interface Bench {
  readonly module: string;
  readonly cache: string;
  readonly seen: BuildProgress[];
  build(changes?: Partial<BuildRecipe>, environment?: Environment): Promise<string>;
}

async function createBench(t: TestContext): Promise<Bench> {
  const folder = await mkdtemp(join(tmpdir(), "dhp-build-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const [module, cache] = [join(folder, "module"), join(folder, "cache")];
  await mkdir(module);
  await mkdir(cache);
  await writeFile(join(module, "go.mod"), "module example.com/tiny\n\ngo 1.23.0\n");
  await writeFile(join(module, "main.go"), source);
  const recipe = { name: "tiny", moduleFolder: module, packagePath: ".", linkerFlags: "-s -w" };
  const seen: BuildProgress[] = [];
  return {
    module,
    cache,
    seen,
    build: (changes = {}, asked = environment) =>
      buildCached(
        { ...recipe, ...changes },
        {
          cacheFolder: cache,
          environment: asked,
          onProgress: (progress) => seen.push(progress),
        },
      ),
  };
}

function dirnameOf(program: string): string {
  return dirname(program).split("/").at(-1) ?? "";
}
