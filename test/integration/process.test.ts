/** The processes as an operator meets them: bad options, clean ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runCommand } from "../../deploy/dev-cluster/command.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

function run(main: string, ...flags: string[]) {
  return runCommand(process.execPath, [main, ...flags], {
    cwd: root,
    timeoutMs: 20_000,
    environment: {},
  });
}

test("bad options of the controller are one message that lists all mistakes", async () => {
  const result = await run(
    "controller/main.ts",
    "--resync",
    "soon",
    "--workers",
    "0",
    "--no-such-option",
    "--admin-listen",
    "nowhere",
  );
  assert.equal(result.code, 2);
  for (const word of ["--fleet", "--resync", "--workers", "--no-such-option", "--admin-listen"]) {
    assert.ok(result.stderr.includes(word), `${word} is missing in: ${result.stderr}`);
  }
});

test("bad options of an adapter are one message that lists all mistakes", async () => {
  const result = await run(
    "adapters/livekit/main.ts",
    "--listen",
    "nowhere",
    "--connect-to",
    "https://a=http://192.0.2.1:80",
    "--no-such-option",
  );
  assert.equal(result.code, 2);
  for (const word of ["--listen", "--connect-to", "--accounts", "--no-such-option"]) {
    assert.ok(result.stderr.includes(word), `${word} is missing in: ${result.stderr}`);
  }
});

test("--help lists the options and ends well", async () => {
  for (const main of ["controller/main.ts", "adapters/livekit/main.ts"]) {
    const result = await run(main, "--help");
    assert.equal(result.code, 0);
    assert.match(result.stdout, /--admin-listen/);
  }
});
