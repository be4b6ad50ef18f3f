/** How the adapter's process ends while a change is at the vendor: a scripted server holds its answer. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import { Change, EnsureRequestSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { connectProvider } from "../../services/contract/client.ts";
import type { ConnectedClient } from "../../services/contract/client.ts";
import { silentLog } from "../../services/process/log.ts";
import { startProgram } from "../../test/support/program.ts";
import type { Program } from "../../test/support/program.ts";

let vendor: Server;
let folder: string;
let program: Program;
let client: ConnectedClient;
/** Answers of CreateRoom that were kept back; the room exists already. */
let held: (() => void)[] = [];
let rooms: object[] = [];

before(async () => {
  vendor = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => answer(request.url ?? "", body, response));
  });
  await new Promise<void>((resolve) => vendor.listen(0, "127.0.0.1", resolve));
  folder = await mkdtemp(join(tmpdir(), "dhp-livekit-process-"));
  await writeFile(
    join(folder, "credential.json"),
    '{"apiKey":"key-id","apiSecret":"secret-value"}',
  );
  const account = { endpointHosts: ["live.example.com"], credentialFile: "credential.json" };
  await writeFile(
    join(folder, "accounts.json"),
    JSON.stringify({ accounts: { default: account } }),
  );
});
after(async () => {
  vendor.closeAllConnections();
  vendor.close();
  await rm(folder, { recursive: true, force: true });
});

function answer(url: string, body: string, response: ServerResponse): void {
  const send = (json: object): void => void response.end(JSON.stringify(json));
  response.setHeader("content-type", "application/json");
  if (url.endsWith("/ListRooms")) {
    send({ rooms });
    return;
  }
  const room = { ...JSON.parse(body), sid: "RM_1", creation_time: "1" };
  rooms.push(room);
  held.push(() => send(room));
}

beforeEach(() => {
  held = [];
  rooms = [];
});
afterEach(async () => {
  client.close();
  await program.kill();
});

async function start(drainTimeout: string): Promise<void> {
  const address = vendor.address();
  const port = typeof address === "object" ? address?.port : "";
  program = await startProgram("adapters/livekit/main.ts", [
    "--listen=127.0.0.1:0",
    "--admin-listen=127.0.0.1:0",
    `--accounts=${join(folder, "accounts.json")}`,
    `--connect-to=https://live.example.com=http://127.0.0.1:${port}`,
    `--drain-timeout=${drainTimeout}`,
  ]);
  client = connectProvider({ address: `127.0.0.1:${program.ports.grpcPort}`, log: silentLog });
}

function ensure(deadlineMs: number): ReturnType<ConnectedClient["ensure"]> {
  const request = create(EnsureRequestSchema, {
    instanceKey: "fleet/ns/name",
    owner: { cluster: "c", uid: "u" },
    target: { endpoint: "https://live.example.com" },
    spec: {},
    mayCreate: true,
    notAfter: timestampFromMs(Date.now() + 30_000),
  });
  return client.ensure(request, { deadlineMs });
}

async function eventually(isSo: () => boolean): Promise<void> {
  const endMs = Date.now() + 10_000;
  while (!isSo()) {
    assert.ok(Date.now() < endMs, "it did not come about within 10 s");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe("a process that is told to stop", () => {
  it("finishes the call in flight, refuses new ones, and exits 0", async () => {
    await start("20s");
    const asking = ensure(20_000);
    await eventually(() => held.length === 1);
    const stopped = program.stop(15_000);
    await eventually(() => program.output().includes("process stops"));
    await assert.rejects(ensure(5_000));
    for (const reply of held) reply();
    assert.equal((await asking).change, Change.CREATED);
    assert.equal((await stopped).code, 0);
    assert.equal(rooms.length, 1);
  });

  it("waits for a change whose caller has left", async () => {
    await start("20s");
    await assert.rejects(ensure(300), { code: "DEADLINE_EXCEEDED" });
    assert.equal(held.length, 1);
    const stopped = program.stop(15_000);
    await eventually(() => program.output().includes("process stops"));
    for (const reply of held) reply();
    assert.equal((await stopped).code, 0);
    assert.ok(!program.output().includes("stopped with calls in flight"));
  });

  it("waits no longer than it may", async () => {
    await start("300ms");
    const asking = assert.rejects(ensure(20_000));
    await eventually(() => held.length === 1);
    await program.stop(10_000);
    await asking;
    assert.ok(program.output().includes("stopped with calls in flight"));
    assert.ok(program.output().includes("process stopped"));
  });
});
