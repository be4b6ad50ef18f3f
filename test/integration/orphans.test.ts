/** Instances that nobody claims: seen, told, and deleted by people alone. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import { httpGet } from "../support/http-get.ts";
import { applyDhp, deleteDhp, dhp, untilGone, untilReady } from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const speech = { endpoint: elevenLabsEndpoint, region: "global" };

let stack: Stack;
let kubeconfig: string;
/** Ids of agents that carry the stamp of the object "left", and of no object any more. */
let orphanId: string;

before(async () => {
  stack = await startStack({
    withElevenLabs: {},
    controllerFlags: ["--orphan-sweep", "1s"],
  });
  kubeconfig = await stack.cluster.serviceAccountKubeconfig({
    namespace: "dhp-system",
    name: "dhp-controller",
  });
  await applyDhp(stack.cluster, dhp("kept", speech));
  await applyDhp(stack.cluster, dhp("left", speech));
  await untilReady(stack.cluster, "kept");
  await untilReady(stack.cluster, "left");
  // As after a restore of a backup: the instance is there, its object is not.
  const [agent] = await stack.elevenLabs.agentsOf("left");
  assert.ok(agent);
  const { name, tags, conversation_config, platform_settings } = agent;
  await deleteDhp(stack.cluster, "left");
  await untilGone(stack.cluster, "left");
  const fields = { name, tags, conversation_config, platform_settings };
  [orphanId = ""] = await stack.elevenLabs.script({ do: "create-agent", fields });
});
after(() => stack.stop());

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(command: "orphans" | "billing", ...flags: readonly string[]): Promise<Run> {
  const main = `controller/inventory/${command}.ts`;
  const args = [main, "--fleet=local", `--kubeconfig=${kubeconfig}`, ...flags];
  return new Promise((resolve) => {
    const options = { cwd: root, timeout: 60_000, maxBuffer: 16 << 20 };
    const child = execFile(process.execPath, args, options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
    child.stdin?.end();
  });
}

test("orphans are counted, and told in an event on their class", async () => {
  await eventually(async () => {
    const { adminPort } = stack.controller.ports;
    const { text } = await httpGet(adminPort, "/metrics");
    assert.match(text, /dhp_orphaned_instances\{class="elevenlabs"\} 1/);
  }, 30_000);
  await eventually(async () => {
    const { stdout } = await stack.cluster.kubectl(["get", "events", "-o", "json"]);
    assert.match(stdout, /Orphaned/);
    assert.ok(stdout.includes(orphanId));
  }, 30_000);
});

test("npm run orphans lists them, and what objects claim is not among them", async () => {
  const { code, stdout, stderr } = await run("orphans");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /CLASS +REALM +PROVIDERID/);
  assert.ok(stdout.includes(orphanId) && stdout.includes("no object default/left"));
  const [kept] = await stack.elevenLabs.agentsOf("kept");
  assert.ok(kept !== undefined && !stdout.includes(kept.id));
});

test("npm run billing says of each instance why it is there", async () => {
  const { code, stdout, stderr } = await run("billing", "--json");
  assert.equal(code, 0, stderr);
  const { bills } = JSON.parse(stdout) as {
    readonly bills: readonly { readonly object: string; readonly reason: string }[];
  };
  const brief = bills.map(({ object, reason }) => `${object} ${reason}`).sort();
  assert.deepEqual(brief, [" Orphaned", "default/kept Serves"]);
});

test("--delete without a terminal or --yes deletes nothing", async () => {
  const { code, stderr } = await run("orphans", "--delete");
  assert.equal(code, 1);
  assert.match(stderr, /nothing was deleted/);
  assert.equal((await stack.elevenLabs.agentsOf("left")).length, 1);
});

test("--delete --yes deletes the orphans and nothing else", async () => {
  const { code, stderr } = await run("orphans", "--delete", "--yes");
  assert.equal(code, 0, stderr);
  assert.match(stderr, /: deleted/);
  assert.equal((await stack.elevenLabs.agentsOf("left")).length, 0);
  assert.equal((await stack.elevenLabs.agentsOf("kept")).length, 1);
  assert.match((await run("orphans")).stdout, /no orphans found/);
});

test("a place that cannot be looked at is said, and the command fails", async () => {
  const place = `elevenlabs,https://elsewhere.example,global`;
  const { code, stderr } = await run("orphans", `--place=${place}`);
  assert.equal(code, 1);
  assert.match(stderr, /not seen: class elevenlabs, https:\/\/elsewhere\.example/);
});
