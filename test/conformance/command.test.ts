/** The suite as a command: what it prints, writes and exits with. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { runCommand } from "../../deploy/dev-cluster/command.ts";
import type { CommandResult } from "../../deploy/dev-cluster/command.ts";
import { createTestAuthority, testTlsFiles } from "../../services/contract/test-certificates.ts";
import type { TestTlsFiles } from "../../services/contract/test-certificates.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import { AdapterLauncher } from "./core/adapter-process.ts";
import { startLiveKitRig } from "./rigs/livekit-rig.ts";
import type { LiveKitRig } from "./rigs/livekit-rig.ts";

const main = fileURLToPath(new URL("main.ts", import.meta.url));

let rig: LiveKitRig;
let folder: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "dhp-conformance-command-"));
  rig = await startLiveKitRig();
});
after(async () => {
  await rig?.stop();
  await rm(folder, { recursive: true, force: true });
});

function run(...flags: readonly string[]): Promise<CommandResult> {
  return runCommand(process.execPath, [main, ...flags], { timeoutMs: 120_000 });
}

/** The rig's parameters with some changed, as a file. */
async function parametersWith(name: string, changes: object): Promise<string> {
  const path = join(folder, `${name}.json`);
  const document = { ...JSON.parse(await readFile(rig.parametersFile, "utf8")), ...changes };
  await writeFile(path, JSON.stringify(document));
  return path;
}

describe("the conformance command", () => {
  it("starts the adapter, prints each case and the totals, and exits 0", async () => {
    const { code, stdout } = await run(
      "--params",
      rig.parametersFile,
      "--only=info",
      "--only=list",
    );
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^adapter livekit at 127\.0\.0\.1:\d+, run [a-z0-9]+: \d+ cases$/m);
    assert.match(stdout, /^ok {4}info\/is-constant \(\d+ ms\)$/m);
    assert.match(
      stdout,
      /^ {2}capability LIST_BY_OWNER is declared:\n {4}list\/without-capability$/m,
    );
    assert.match(stdout, /^\d+ passed, 0 failed, \d+ skipped in [\d.]+ s$/m);
  });

  it("says of a failure what was promised, expected, came, and what to do; exits 1", async () => {
    // "7" is a sound value, so the promise that it is refused fails.
    const params = await parametersWith("taken", { invalid: { maxParticipants: "7" } });
    const junit = join(folder, "junit.xml");
    const { code, stdout } = await run("--params", params, "--only=ensure/bad", "--junit", junit);
    assert.equal(code, 1, stdout);
    assert.match(stdout, /^FAIL {2}ensure\/bad-parameter-is-named/m);
    for (const word of ["promise:", "rule:", "expected:", "came:", "to do:"]) {
      assert.ok(stdout.includes(`      ${word}`), `${word} is not said`);
    }
    const xml = await readFile(junit, "utf8");
    assert.match(xml, /<testsuites [^>]*tests="2" failures="1" skipped="0"/);
    assert.match(xml, /<failure message="a value that is not taken [^"]*">expected: /);
  });

  it("prints one JSON document with --json", async () => {
    const { code, stdout } = await run("--params", rig.parametersFile, "--only=describe", "--json");
    assert.equal(code, 0, stdout);
    const report = JSON.parse(stdout);
    assert.equal(stdout.trim().split("\n").length, 1);
    assert.equal(report.adapter, "livekit");
    assert.equal(report.failed, 0);
    assert.equal(report.cases.length, report.passed + report.skipped);
    assert.ok(report.cases.some(({ name }: { name: string }) => name === "leaks/nothing-is-left"));
  });

  it("removes what it made after Ctrl-C, and exits 2", async () => {
    const child = spawn(process.execPath, [main, "--params", rig.parametersFile]);
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      const isFirst = !output.includes("ok    ensure/");
      output += chunk;
      if (isFirst && output.includes("ok    ensure/")) child.kill("SIGINT");
    });
    const code = await new Promise((resolve) => child.once("close", resolve));
    assert.equal(code, 2, output);
    assert.match(output, /^interrupted: /m);
    assert.match(output, /^ok {4}leaks\/nothing-is-left/m);
    assert.match(output, /^incomplete: /m);
    assert.deepEqual(await listRooms(rig.livekit), []);
  });

  it("does not disturb another run on the same account", async () => {
    const flags = ["--params", rig.parametersFile, "--only=list", "--only=removal"];
    for (const { code, stdout } of await Promise.all([run(...flags), run(...flags)])) {
      assert.equal(code, 0, stdout);
    }
    assert.deepEqual(await listRooms(rig.livekit), []);
  });
});

describe("the conformance command says plainly and with exit code 2", () => {
  it("that an option is wrong, and with --help what there is", async () => {
    const wrong = await run("--adress", "127.0.0.1:1");
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /did you mean|no such option/);
    const help = await run("--help");
    assert.equal(help.code, 0);
    assert.match(help.stdout, /--vendor-faults/);
  });

  it("that neither a parameters file nor an endpoint says where to make instances, or both do", async () => {
    const endpoint = "--endpoint=https://live.example.com";
    for (const flags of [[], ["--params", rig.parametersFile, endpoint]]) {
      const { code, stderr } = await run("--address=127.0.0.1:1", ...flags);
      assert.equal(code, 2);
      assert.match(stderr, /one of --params and --endpoint/);
    }
  });

  it("that the parameters are wrong, each mistake by its path", async () => {
    const params = await parametersWith("wrong", { target: { endpoint: 7 }, colour: "red" });
    const { code, stderr } = await run("--params", params);
    assert.equal(code, 2);
    assert.match(stderr, /target\.endpoint: want a text/);
    assert.match(stderr, /colour: is not known/);
  });

  it("that nothing answers at the address", async () => {
    const { code, stderr } = await run("--params", rig.parametersFile, "--address=127.0.0.1:1");
    assert.equal(code, 2);
    assert.match(stderr, /no ProviderAPI answers at 127\.0\.0\.1:1: UNAVAILABLE.*\n.*running/);
  });

  it("that no case is chosen", async () => {
    const { code, stderr } = await run("--params", rig.parametersFile, "--only=ensuer");
    assert.equal(code, 2);
    assert.match(stderr, /no case's name begins with ensuer; the groups are info, /);
  });

  it("that the time was over before all cases ran", async () => {
    const { code, stdout } = await run("--params", rig.parametersFile, "--timeout=1s");
    assert.equal(code, 2, stdout);
    assert.match(stdout, /^incomplete: /m);
    assert.match(stdout, /^ok {4}leaks\/nothing-is-left/m);
  });

  it("that the emulator's port does not answer", async () => {
    const flags = ["--params", rig.parametersFile, "--vendor-faults=http://127.0.0.1:1"];
    const { code, stderr } = await run(...flags);
    assert.equal(code, 2);
    assert.match(stderr, /--vendor-faults: the vendor's fault port does not work/);
  });
});

describe("the conformance command over mutual TLS", () => {
  let server: TestTlsFiles;
  let client: TestTlsFiles;
  let stranger: TestTlsFiles;
  let launcher: AdapterLauncher;

  before(async () => {
    const [ours, theirs] = await Promise.all([
      createTestAuthority("authority of the tests"),
      createTestAuthority("somebody else"),
    ]);
    server = testTlsFiles(await ours.issue(["localhost", "127.0.0.1"]), ours.pem);
    client = testTlsFiles(await ours.issue(["suite"]), ours.pem);
    stranger = testTlsFiles(await theirs.issue(["suite"]), theirs.pem);
    const { start = [] } = rig.parameters;
    const { certFile, keyFile, caFile } = server;
    const tls = [`--tls-cert=${certFile}`, `--tls-key=${keyFile}`, `--tls-ca=${caFile}`];
    launcher = await AdapterLauncher.prepare([...start, ...tls], {
      ca: client.caFile,
      cert: client.certFile,
      key: client.keyFile,
    });
    await launcher.start();
  });
  after(async () => {
    await launcher?.kill();
    for (const files of [server, client, stranger]) files?.remove();
  });

  function runOverTls(files: TestTlsFiles, ...flags: readonly string[]): Promise<CommandResult> {
    const { caFile, certFile, keyFile } = files;
    const tls = ["--tls-ca", caFile, "--tls-cert", certFile, "--tls-key", keyFile];
    return run("--params", rig.parametersFile, "--address", launcher.address, ...tls, ...flags);
  }

  it("runs, and finds that nobody is served without a certificate", async () => {
    const { code, stdout } = await runOverTls(client, "--only=tls", "--only=info");
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^ok {4}tls\/strangers-are-kept-out/m);
  });

  it("needs nothing but the endpoint for a vendor without required parameters", async () => {
    const { caFile, certFile, keyFile } = client;
    const tls = ["--tls-ca", caFile, "--tls-cert", certFile, "--tls-key", keyFile];
    const { endpoint } = rig.parameters.target;
    const flags = ["--address", launcher.address, "--endpoint", endpoint, "--only=removal", ...tls];
    const { code, stdout } = await run(...flags);
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^ok {4}removal\//m);
  });

  it("says that TLS fails, with what to look at", async () => {
    const { code, stderr } = await runOverTls(stranger);
    assert.equal(code, 2);
    assert.match(stderr, /no ProviderAPI answers at .*certificate/s);
    assert.match(stderr, /--tls-ca/);
    const plain = await run("--params", rig.parametersFile, "--address", launcher.address);
    assert.equal(plain.code, 2);
    assert.match(plain.stderr, /If it serves TLS, give --tls-ca/);
  });
});
