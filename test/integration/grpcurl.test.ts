/** The commands of README.md's section on grpcurl, as they stand there, at a running adapter. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { ensureBinary } from "../../deploy/dev-cluster/binaries.ts";
import { runCommand } from "../../deploy/dev-cluster/command.ts";
import type { CommandResult } from "../../deploy/dev-cluster/command.ts";
import { readDevClusterOptions } from "../../deploy/dev-cluster/dev-cluster-options.ts";
import { repositoryFolder } from "../../deploy/manifest-folders.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import { applyDhp, dhp, untilReady } from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

const api = "dhp.provider.v1.ProviderAPI";
let stack: Stack;
let commands: readonly string[];

before(async () => {
  stack = await startStack();
  await applyDhp(stack.cluster, dhp("aliyun-tts", { displayName: "杭州文字转语音" }));
  await untilReady(stack.cluster, "aliyun-tts");
  commands = commandsOf(await readFile(join(repositoryFolder, "README.md"), "utf8"));
});
after(() => stack.stop());

/** Each call of grpcurl, with the variables that were set before it. */
function commandsOf(readme: string): readonly string[] {
  const section = readme.split("## Asking an adapter by hand\n")[1]?.split("\n## ")[0] ?? "";
  const lines = section.split("\n").filter((line) => line.startsWith("    "));
  const script = lines.map((line) => line.slice(4)).join("\n");
  const statements = script.split(/\n(?=grpcurl |[A-Z]+=)/);
  const isCall = (statement: string) => statement.startsWith("grpcurl ");
  return statements.flatMap((statement, at) => {
    if (!isCall(statement)) return [];
    const variables = statements.slice(0, at).filter((earlier) => !isCall(earlier));
    return [[...variables, statement].join("\n")];
  });
}

/** Runs the one command of the section that ends like this. */
async function run(end: string): Promise<CommandResult> {
  const [command, ...more] = commands.filter((one) => one.endsWith(end));
  assert.ok(command !== undefined && more.length === 0, `one command ends in ${end}`);
  return runCommand("sh", ["-c", command], { environment: await environment() });
}

async function environment() {
  const { environment: own } = readDevClusterOptions();
  const grpcurl = dirname(await ensureBinary("grpcurl"));
  const address = `127.0.0.1:${stack.adapter.ports.grpcPort}`;
  return { ...own, PATH: `${grpcurl}:${own["PATH"]}`, ADAPTER: address };
}

async function answer(end: string) {
  const result = await run(end);
  assert.equal(result.code, 0, result.stderr);
  return JSON.parse(result.stdout);
}

test("the section has a command for each question", () => {
  assert.equal(commands.length, 8);
});

test("list names ProviderAPI and health", async () => {
  const { stdout } = await run("$ADAPTER list");
  assert.deepEqual(stdout.trim().split("\n"), [api, "grpc.health.v1.Health"]);
});

test("describe shows a service and a message with the contract's own comments", async () => {
  const service = await run(`describe ${api}`);
  assert.match(service.stdout, /\/\/ Removes the instance from the vendor\.[^]*rpc Delete \(/);
  const message = await run("describe dhp.provider.v1.EnsureRequest");
  assert.match(message.stdout, /\/\/ fleet\/namespace\/name: .*\n +string instance_key = 1;/);
  assert.match(message.stdout, /\.google\.protobuf\.Timestamp not_after = 8;/);
});

test("health says SERVING", async () => {
  assert.deepEqual(await answer("grpc.health.v1.Health/Check"), { status: "SERVING" });
});

test("GetProviderInfo says who answers and what it can do", async () => {
  const info = await answer(`${api}/GetProviderInfo`);
  assert.equal(info.name, "livekit");
  assert.ok(info.capabilities.includes("CAPABILITY_DELETE"));
  assert.equal(JSON.parse(info.parameterSchemaJson).type, "object");
});

test("Describe shows the instance of an object", async () => {
  const { instance } = await answer(`${api}/Describe`);
  assert.equal(instance.instanceKey, "local/default/aliyun-tts");
  assert.equal(instance.state, "STATE_READY");
  assert.equal(instance.observed.displayName, "杭州文字转语音");
  const [room] = await listRooms(stack.livekit);
  assert.equal(instance.providerId, `${room?.name}/${room?.sid}`);
});

test("Ensure with validate_only answers and makes nothing", async () => {
  const { instance, change } = await answer(`${api}/Ensure`);
  assert.equal(change, "CHANGE_NONE");
  assert.equal(instance.providerId, undefined);
  assert.equal(instance.observed.displayName, "new");
  assert.equal((await listRooms(stack.livekit)).length, 1);
});

test("Delete of an unknown key is NotFound, with reason and realm in words that can be read", async () => {
  const { code, stderr } = await run(`${api}/Delete`);
  assert.equal(code, 64 + 5);
  assert.match(stderr, /Code: NotFound\n +Message: cannot delete "local\/default\/nobody"/);
  const details = detailsOf(stderr);
  const info = details.get("google.rpc.ErrorInfo");
  assert.equal(info?.["reason"], "NOT_FOUND");
  assert.equal(info?.["domain"], "dhp.example.com");
  const realm = `livekit:live.example.com/${stack.livekit.apiKey}`;
  assert.deepEqual(info?.["metadata"], { realm });
  const outcome = details.get("dhp.provider.v1.MutationOutcome");
  assert.equal(outcome?.["outcome"], "OUTCOME_NOT_APPLIED");
  assert.equal(details.get("google.rpc.ResourceInfo")?.["resourceName"], "local/default/nobody");
});

/** The error's details as grpcurl prints them, decoded by reflection, by type. */
function detailsOf(stderr: string): ReadonlyMap<string, Readonly<Record<string, unknown>>> {
  const printed = (stderr.split("Details:")[1] ?? "").split(/^ {2}\d+\)/m).slice(1);
  return new Map(
    printed.map((text) => {
      const detail = JSON.parse(text);
      return [String(detail["@type"]).replace("type.googleapis.com/", ""), detail];
    }),
  );
}

for (const version of ["v1", "v1alpha"]) {
  test(`reflection ${version} answers who asks for it by name`, async () => {
    const service = `grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
    const { ADAPTER: address } = await environment();
    const protos = join(repositoryFolder, "node_modules/@grpc/reflection/build/proto");
    const result = await runCommand(await ensureBinary("grpcurl"), [
      "-plaintext",
      `-import-path=${protos}`,
      `-proto=grpc/reflection/${version}/reflection.proto`,
      '-d={"list_services": ""}',
      address,
      service,
    ]);
    assert.equal(result.code, 0, result.stderr);
    const listed = JSON.parse(result.stdout).listServicesResponse.service;
    assert.ok(listed.some(({ name }: { name: string }) => name === api));
  });
}
