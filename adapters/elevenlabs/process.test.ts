/** The adapter as a process, over gRPC, with the emulator behind its own authority. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Client, credentials } from "@grpc/grpc-js";

import {
  Change,
  EnsureRequestSchema,
  GetProviderInfoRequestSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { EnsureResponse } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { connectProvider } from "../../services/contract/client.ts";
import type { ConnectedClient } from "../../services/contract/client.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { silentLog } from "../../services/process/log.ts";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { httpGet, metricValue } from "../../test/support/http-get.ts";
import { startProgram } from "../../test/support/program.ts";
import type { Program } from "../../test/support/program.ts";
import { emulatorApiKey, startEmulator } from "./emulator.ts";
import type { Emulator } from "./emulator.ts";
import { endpoint, exchange, target, writeAccounts } from "./test-bench.ts";

let emulator: Emulator;
let folder: string;
let program: Program;
let client: ConnectedClient;

before(async () => {
  emulator = await startEmulator();
  folder = await mkdtemp(join(tmpdir(), "dhp-elevenlabs-process-"));
  program = await startProgram("adapters/elevenlabs/main.ts", [
    "--listen=127.0.0.1:0",
    "--admin-listen=127.0.0.1:0",
    `--accounts=${await writeAccounts(folder, emulatorApiKey)}`,
    `--connect-to=${endpoint}=${emulator.url}`,
    `--vendor-ca=${emulator.caFile}`,
    "--log-level=debug",
  ]);
  client = connectProvider({ address: address(), log: silentLog });
});
after(async () => {
  client?.close();
  await program?.kill();
  await emulator?.stop();
  await rm(folder, { recursive: true, force: true });
});

function address(): string {
  return `127.0.0.1:${program.ports.grpcPort}`;
}

function ensure(instanceKey: string, deadlineMs = 20_000): Promise<EnsureResponse> {
  const request = create(EnsureRequestSchema, {
    instanceKey,
    owner: { cluster: "c", uid: "u" },
    target: target(),
    spec: { displayName: "a show" },
    mayCreate: true,
    notAfter: timestampFromMs(Date.now() + 30_000),
  });
  return client.ensure(request, { deadlineMs });
}

async function script(...steps: readonly object[]): Promise<void> {
  const url = `${emulator.faultUrl}/script`;
  const { status, text } = await exchange("POST", url, JSON.stringify(steps));
  assert.equal(status, 200, text);
}

async function world(): Promise<{
  readonly agents: readonly object[];
  readonly faults: readonly object[];
}> {
  return JSON.parse((await exchange("GET", `${emulator.faultUrl}/world`)).text);
}

/** The status byte of grpc.health.v1: 1 is SERVING. */
function healthStatus(): Promise<number | undefined> {
  const health = new Client(address(), credentials.createInsecure());
  const whole = (bytes: Buffer): Buffer => bytes;
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, answer?: Buffer): void => {
      health.close();
      if (error === null) resolve(answer?.at(1));
      else reject(error);
    };
    const options = { deadline: Date.now() + 10_000 };
    const method = "/grpc.health.v1.Health/Check";
    health.makeUnaryRequest(method, whole, whole, Buffer.alloc(0), options, done);
  });
}

describe("the adapter's process", () => {
  it("is healthy and ready, and says who it is", async () => {
    assert.equal(await healthStatus(), 1);
    assert.equal((await httpGet(program.ports.adminPort, "/healthz")).status, 200);
    assert.equal((await httpGet(program.ports.adminPort, "/readyz")).status, 200);
    const request = create(GetProviderInfoRequestSchema, { contractVersion: 1 });
    const info = await client.getProviderInfo(request, { deadlineMs: 10_000 });
    assert.equal(info.name, "elevenlabs");
    assert.deepEqual(info.regions, ["global", "us", "eu", "in", "sg"]);
    assert.equal(info.listsAreConsistent, false);
  });

  it("creates one agent, and leaves it alone", async () => {
    assert.equal((await ensure("fleet/ns/process")).change, Change.CREATED);
    assert.equal((await ensure("fleet/ns/process")).change, Change.NONE);
    assert.equal((await world()).agents.length, 1);
    const { text } = await httpGet(program.ports.adminPort, "/metrics");
    assert.equal(
      metricValue(text, "dhp_vendor_request_total", { operation: "write", code: "OK" }),
      1,
    );
  });

  it("tells over the wire what an error did, until when to wait, and no key", async () => {
    await script(
      { do: "set", settings: { repeatsKey: true } },
      {
        do: "fault",
        method: "POST",
        effect: { kind: "error", name: "quota_exceeded" },
      },
    );
    const error = await ensure("fleet/ns/refused").catch((error: unknown) => error);
    assert.ok(error instanceof ProviderError);
    assert.equal(error.reason, "QUOTA_EXHAUSTED");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.ok((error.facts.resetsAtMs ?? 0) > Date.now());
    await script({ do: "revoke-key", apiKey: emulatorApiKey });
    const refused = await ensure("fleet/ns/refused").catch((error: unknown) => error);
    assert.ok(refused instanceof ProviderError);
    assert.equal(refused.reason, "BAD_CREDENTIAL");
    assert.ok(refused.message.includes("[redacted]"));
    assert.ok(!refused.message.includes(emulatorApiKey));
    await script({ do: "key", apiKey: emulatorApiKey, userId: "user-1" });
  });

  it("finishes the change that is at the vendor when SIGTERM comes, and exits 0", async () => {
    await script({ do: "fault", method: "POST", delayMs: 500 });
    const asking = ensure("fleet/ns/in-flight");
    // The fault no longer waits: the create is at the vendor, which takes its time.
    await eventually(async () => assert.equal((await world()).faults.length, 0));
    const { code } = await program.stop(15_000);
    assert.equal(code, 0);
    assert.equal((await asking).change, Change.CREATED);
    assert.equal((await world()).agents.length, 2);
    assert.ok(!program.output().includes(emulatorApiKey));
    assert.ok(!program.output().includes("stopped with calls in flight"));
  });
});
