import assert from "node:assert/strict";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";

import { ProviderError } from "../contract/provider-error.ts";
import { FakeClock } from "../process/fake-clock.ts";
import { silentLog } from "../process/log.ts";
import { redactText } from "../process/redaction.ts";
import { openAccounts, parseAccounts } from "./accounts.ts";
import type { Accounts } from "./accounts.ts";

let folder: string;
let path: string;
let clock: FakeClock;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "dhp-accounts-test-"));
});
after(() => rm(folder, { recursive: true, force: true }));
beforeEach(() => {
  path = join(folder, "accounts.yaml");
  clock = new FakeClock();
});

const one = { endpointHosts: ["api.example.com"], credentialFile: "credential.json" };

async function open(accounts: unknown, publicFields: readonly string[] = []): Promise<Accounts> {
  await writeFile(path, JSON.stringify({ accounts }));
  return openAccounts({ path, clock, log: silentLog, publicFields });
}

async function credential(accounts: Accounts): Promise<Readonly<Record<string, string>>> {
  const account = await accounts.find("");
  assert.ok(account !== undefined);
  return accounts.credentialOf(account);
}

describe("the accounts file", () => {
  it("names accounts; the empty name means default", async () => {
    const accounts = await open({ default: one, second: { ...one, callsPerSecond: 5 } });
    assert.deepEqual(accounts.names, ["default", "second"]);
    assert.equal((await accounts.find(""))?.name, "default");
    assert.equal((await accounts.find("second"))?.callsPerSecond, 5);
    assert.equal(await accounts.find("third"), undefined);
    assert.equal(await accounts.find("__proto__"), undefined);
  });

  it("takes paths from its own folder", async () => {
    const accounts = await open({ default: one });
    assert.equal((await accounts.find(""))?.credentialFile, join(folder, "credential.json"));
  });

  it("says all its mistakes at once", () => {
    const broken = {
      accounts: {
        Bad: one,
        a: { ...one, endpointHosts: ["https://x"], callsPerSecond: 0, password: "hunter2" },
        b: {},
      },
    };
    assert.throws(
      () => parseAccounts(JSON.stringify(broken), path),
      (error: Error) => {
        for (const word of ["Bad", "a.endpointHosts", "a.callsPerSecond", "a.password", "b.cred"]) {
          assert.ok(error.message.includes(word), `${word} in ${error.message}`);
        }
        return !error.message.includes("hunter2");
      },
    );
    for (const text of ["", "[]", "accounts: {}", "accounts: 5"]) {
      assert.throws(() => parseAccounts(text, path), /names no account/);
    }
  });

  it("that cannot be parsed is told by its place, without what stands there", () => {
    const text = "accounts:\n  default:\n    apiKey: sk_pasted: sk_pasted\n";
    assert.throws(() => parseAccounts(text, "a.yaml"), {
      message: "accounts file a.yaml: neither JSON nor YAML at line 3, column 13",
    });
  });

  it("is read again when it changes; a broken one leaves the last good one in force", async () => {
    const accounts = await open({ default: one });
    await writeFile(path, "{");
    await clock.advance(1500);
    assert.equal((await accounts.find(""))?.name, "default");
    await writeFile(path, JSON.stringify({ accounts: { default: one, later: one } }));
    assert.equal(await accounts.find("later"), undefined);
    await clock.advance(1500);
    assert.equal((await accounts.find("later"))?.name, "later");
  });
});

describe("a credential", () => {
  it("in a file is read anew for each call, as JSON or YAML", async () => {
    const accounts = await open({ default: one });
    await writeFile(join(folder, "credential.json"), '{"apiKey":"first-value"}');
    assert.deepEqual(await credential(accounts), { apiKey: "first-value" });
    await writeFile(join(folder, "credential.json"), "apiKey: second-value\n");
    assert.deepEqual(await credential(accounts), { apiKey: "second-value" });
  });

  it("in a folder is a file a field, swapped as Kubernetes swaps a mounted Secret", async () => {
    const mount = join(folder, "mount");
    const version = async (name: string, value: string): Promise<void> => {
      await mkdir(join(mount, name), { recursive: true });
      await writeFile(join(mount, name, "apiKey"), `${value}\n`);
      await symlink(name, join(mount, "..data_tmp"));
      await rename(join(mount, "..data_tmp"), join(mount, "..data"));
    };
    await version("..1", "first-value");
    await symlink(join("..data", "apiKey"), join(mount, "apiKey"));
    const accounts = await open({ default: { ...one, credentialFile: "mount" } });
    assert.deepEqual(await credential(accounts), { apiKey: "first-value" });
    await version("..2", "second-value");
    assert.deepEqual(await credential(accounts), { apiKey: "second-value" });
  });

  it("is unspeakable from then on, but for fields that are public", async () => {
    const accounts = await open({ default: one }, ["keyId"]);
    const text = '{"keyId":"public-id-value","secret":"unspeakable-value"}';
    await writeFile(join(folder, "credential.json"), text);
    await credential(accounts);
    assert.equal(redactText("a public-id-value b"), "a public-id-value b");
    assert.ok(!redactText("a unspeakable-value b").includes("unspeakable"));
  });

  const broken: readonly (readonly [string, string | undefined])[] = [
    ["missing", undefined],
    ["empty", ""],
    ["no mapping", '"just-text-hunter2"'],
    ["not of strings", '{"apiKey":{"inner":"hunter2"}}'],
    ["neither JSON nor YAML", "{hunter2: ["],
    ["cut off in the middle", '{"apiKey":"hunter2'],
    ["too large", `{"apiKey":"${"x".repeat(70_000)}"}`],
  ];
  for (const [why, text] of broken) {
    it(`that is ${why} is BAD_CREDENTIAL, and its content is not repeated`, async () => {
      const accounts = await open({ default: one });
      await rm(join(folder, "credential.json"), { force: true });
      if (text !== undefined) await writeFile(join(folder, "credential.json"), text);
      await assert.rejects(credential(accounts), (error) => {
        assert.ok(error instanceof ProviderError);
        assert.equal(error.reason, "BAD_CREDENTIAL");
        return !error.message.includes("hunter2") && error.message.includes('"default"');
      });
    });
  }
});
