import assert from "node:assert/strict";
import { mkdir, mkdtemp, rename, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";

import { CredentialError, CredentialFiles } from "./credential-files.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "dhp-credential-test-"));
  path = join(folder, "credential.json");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Files whose wall clock says that everything on disk is old. */
function longAfter(): CredentialFiles {
  return new CredentialFiles(() => Date.now() + 60_000);
}

async function replace(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

describe("a credential that has not changed", () => {
  it("is not read again", async () => {
    await writeFile(path, '{"apiKey":"one"}');
    const files = longAfter();
    const first = await files.read(path);
    assert.deepEqual(first, { apiKey: "one" });
    assert.equal(await files.read(path), first);
  });

  it("is read again while its times cannot tell whether it has", async () => {
    await writeFile(path, '{"apiKey":"one"}');
    const files = new CredentialFiles();
    const first = await files.read(path);
    assert.notEqual(await files.read(path), first);
  });

  it("is looked at once for all who ask at the same time", async () => {
    await writeFile(path, '{"apiKey":"one"}');
    const files = new CredentialFiles();
    const [first, ...others] = await Promise.all(
      Array.from({ length: 50 }, () => files.read(path)),
    );
    assert.deepEqual(first, { apiKey: "one" });
    assert.equal(new Set(others).size, 1);
  });
});

describe("a credential that has changed", () => {
  const changes: readonly (readonly [string, () => Promise<void>])[] = [
    ["in place, to the same size", () => writeFile(path, '{"apiKey":"two"}')],
    ["by a rename", () => replace(path, '{"apiKey":"two"}')],
    [
      "in place, with its old time put back",
      async () => {
        await writeFile(path, '{"apiKey":"two"}');
        await utimes(path, 1_000, 1_000);
      },
    ],
  ];
  for (const [how, change] of changes) {
    it(`${how} is seen by the next call`, async () => {
      await writeFile(path, '{"apiKey":"one"}');
      await utimes(path, 1_000, 1_000);
      const files = new CredentialFiles();
      await files.read(path);
      await change();
      assert.deepEqual(await files.read(path), { apiKey: "two" });
    });
  }

  it("in place, long after it was read, is seen by the next call", async () => {
    await writeFile(path, '{"apiKey":"one"}');
    const before = await stat(path);
    const files = longAfter();
    await files.read(path);
    // Until the file system's clock has ticked.
    do await writeFile(path, '{"apiKey":"two"}');
    while ((await stat(path)).ctimeMs === before.ctimeMs);
    assert.deepEqual(await files.read(path), { apiKey: "two" });
  });

  it("is seen by a call that begins while an older look is under way", async () => {
    await writeFile(path, '{"apiKey":"one"}');
    const files = new CredentialFiles();
    const older = files.read(path);
    await replace(path, '{"apiKey":"two"}');
    assert.deepEqual(await files.read(path), { apiKey: "two" });
    await older;
  });

  it("by a field more, one less, or another link is seen by the next call", async () => {
    const mount = join(folder, "mount");
    await mkdir(mount);
    await writeFile(join(mount, "apiKey"), "one\n");
    const files = longAfter();
    assert.deepEqual(await files.read(mount), { apiKey: "one" });
    await writeFile(join(mount, "apiSecret"), "secret");
    assert.deepEqual(await files.read(mount), { apiKey: "one", apiSecret: "secret" });
    await rm(join(mount, "apiSecret"));
    assert.deepEqual(await files.read(mount), { apiKey: "one" });
    await writeFile(join(folder, "elsewhere"), "two");
    await symlink(join(folder, "elsewhere"), join(mount, "link"));
    await rename(join(mount, "link"), join(mount, "apiKey"));
    assert.deepEqual(await files.read(mount), { apiKey: "two" });
  });

  it("into something unreadable is an error at once, and good again when it is", async () => {
    await writeFile(path, '{"apiKey":"one"}');
    const files = longAfter();
    await files.read(path);
    await replace(path, '{"apiKey":');
    await assert.rejects(files.read(path), CredentialError);
    await rm(path);
    await assert.rejects(files.read(path), { code: "ENOENT" });
    await writeFile(path, '{"apiKey":"two"}');
    assert.deepEqual(await files.read(path), { apiKey: "two" });
  });
});

describe("a Secret that is swapped all the time", () => {
  it("is never seen with the fields of two versions", async () => {
    const mount = join(folder, "mount");
    await mkdir(mount);
    const version = async (name: string): Promise<void> => {
      await mkdir(join(mount, `..${name}`));
      for (const field of ["apiKey", "apiSecret"]) {
        await writeFile(join(mount, `..${name}`, field), name);
      }
      await symlink(`..${name}`, join(mount, "..data_tmp"));
      await rename(join(mount, "..data_tmp"), join(mount, "..data"));
    };
    await version("v0");
    for (const field of ["apiKey", "apiSecret"]) {
      await symlink(join("..data", field), join(mount, field));
    }
    const files = new CredentialFiles();
    await files.read(mount);
    const writer = { isDone: false };
    const swapping = (async () => {
      for (let count = 1; count <= 200; count += 1) await version(`v${count}`);
      writer.isDone = true;
    })();
    const seen = new Set<string | undefined>();
    const look = async (): Promise<void> => {
      const { apiKey, apiSecret } = await files.read(mount);
      assert.equal(apiKey, apiSecret);
      seen.add(apiKey);
    };
    while (!writer.isDone) await look();
    await swapping;
    await look();
    assert.ok(seen.has("v200"));
  });
});
