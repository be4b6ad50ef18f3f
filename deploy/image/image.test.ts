/** What the image would hold, laid out without a container engine: it is complete, and no more than production. */
import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { expectDone } from "../crd/cluster-fixture.ts";
import { runCommand } from "../dev-cluster/command.ts";
import { containerOf, deploymentsOf, renderFolder, repositoryFolder } from "../manifest-folders.ts";

const dockerfile = await readFile(new URL("Dockerfile", import.meta.url), "utf8");
const ignored = await readFile(new URL("Dockerfile.dockerignore", import.meta.url), "utf8");
/** The image's /app. */
let app: string;

before(async () => {
  app = await mkdtemp(join(tmpdir(), "dhp-image-"));
  const isTest = (path: string) => path.endsWith(".test.ts");
  for (const path of copiedPaths()) {
    const filter = (source: string) => !isTest(source);
    await cp(join(repositoryFolder, path), join(app, path), { recursive: true, filter });
  }
  await linkProductionPackages();
});
after(() => rm(app, { recursive: true, force: true }));

/** Sources of the COPY lines, in both stages. */
function copiedPaths(): readonly string[] {
  return [...dockerfile.matchAll(/^COPY (?!--from)(.+)$/gm)].flatMap(
    (line) => line[1]?.split(" ").slice(0, -1) ?? [],
  );
}

interface Lockfile {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
}

/** As `npm ci --omit=dev` lays them out, by links. */
async function linkProductionPackages(): Promise<void> {
  const text = await readFile(join(repositoryFolder, "package-lock.json"), "utf8");
  const { packages }: Lockfile = JSON.parse(text);
  for (const [path, { dev }] of Object.entries(packages)) {
    const isTop = /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path);
    if (!isTop || dev === true) continue;
    await mkdir(dirname(join(app, path)), { recursive: true });
    await symlink(join(repositoryFolder, path), join(app, path));
  }
}

test("all that the Dockerfile copies is there, and is sent to the builder", () => {
  const sent = ignored.split("\n").flatMap((line) => (line.startsWith("!") ? line.slice(1) : []));
  assert.deepEqual([...new Set(copiedPaths())].sort(), sent.sort());
});

test("the image runs the version of Node that the tests run on", async () => {
  const { devDependencies } = JSON.parse(
    await readFile(join(repositoryFolder, "package.json"), "utf8"),
  );
  const bases = [...dockerfile.matchAll(/^FROM node:([\d.]+)-/gm)].map((match) => match[1]);
  assert.deepEqual(bases, [devDependencies.node, devDependencies.node]);
});

test("each Deployment's program starts from it without devDependencies, and knows its flags", async () => {
  const deployments = deploymentsOf(await renderFolder("deploy/everything"));
  assert.ok(deployments.length > 1);
  for (const deployment of deployments) {
    const [main = "", ...flags] = containerOf(deployment).args;
    // Packages are looked up from where they are linked, not from where they lie.
    const node = ["--preserve-symlinks", "--preserve-symlinks-main", main, "--help"];
    const help = expectDone(
      await runCommand(process.execPath, node, { cwd: app, environment: {} }),
    );
    for (const flag of flags) {
      assert.ok(help.includes(`  ${flag.split("=")[0]} `), `${main} does not know ${flag}`);
    }
  }
});
