/** The adapter's process against a real LiveKit server, over gRPC. */
import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import { startLiveKit } from "../../deploy/dev-cluster/livekit.ts";
import type { LiveKit } from "../../deploy/dev-cluster/livekit.ts";
import { Availability, State } from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import {
  Change,
  DeleteRequestSchema,
  DescribeRequestSchema,
  EnsureRequestSchema,
  GetProviderInfoRequestSchema,
  ListRequestSchema,
  RemovalState,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Instance } from "../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { EnsureResponse } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { connectProvider } from "../../services/contract/client.ts";
import type { ConnectedClient } from "../../services/contract/client.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { silentLog } from "../../services/process/log.ts";
import { startProgram } from "../../test/support/program.ts";
import type { Program } from "../../test/support/program.ts";
import { deleteRoom, listRooms, updateMetadata } from "../../test/support/livekit-rooms.ts";

const endpoint = "https://live.example.com";
const target = { endpoint };
const call = { deadlineMs: 20_000 };
const cluster = "cluster-a";
const owner = { cluster, uid: "uid-1" };

let livekit: LiveKit;
let folder: string;
let program: Program;
let client: ConnectedClient;
let key = "";
let keyCount = 0;

before(async () => {
  livekit = await startLiveKit();
  folder = await mkdtemp(join(tmpdir(), "dhp-livekit-test-"));
  await writeCredential(livekit.apiSecret);
  const account = { endpointHosts: ["live.example.com"], credentialFile: "credential.json" };
  const dead = { endpointHosts: ["dead.example.com"], credentialFile: "credential.json" };
  const accounts = { accounts: { default: account, dead } };
  await writeFile(join(folder, "accounts.json"), JSON.stringify(accounts));
  program = await startProgram("adapters/livekit/main.ts", [
    "--listen=127.0.0.1:0",
    "--admin-listen=127.0.0.1:0",
    `--accounts=${join(folder, "accounts.json")}`,
    `--connect-to=${endpoint}=${livekit.url}`,
    "--connect-to=https://dead.example.com=http://127.0.0.1:1",
  ]);
  const address = `127.0.0.1:${program.ports.grpcPort}`;
  client = connectProvider({ address, log: silentLog });
});

after(async () => {
  client?.close();
  await program?.stop();
  await livekit?.stop();
  await rm(folder, { recursive: true, force: true });
});

beforeEach(() => {
  keyCount += 1;
  key = `fleet/ns/name-${keyCount}`;
});

async function writeCredential(apiSecret: string): Promise<void> {
  const path = join(folder, "credential.json");
  await writeFile(path, JSON.stringify({ apiKey: livekit.apiKey, apiSecret }));
  await chmod(path, 0o600);
}

function ensure(own: object = {}): Promise<EnsureResponse> {
  const notAfter = timestampFromMs(Date.now() + 30_000);
  const base = { instanceKey: key, owner, target, spec: {}, mayCreate: true, notAfter };
  return client.ensure(create(EnsureRequestSchema, { ...base, ...own }), call);
}

async function describeInstance(own: object = {}): Promise<Instance | undefined> {
  const request = create(DescribeRequestSchema, { instanceKey: key, owner, target, ...own });
  return (await client.describe(request, call)).instance;
}

async function remove(own: object = {}): Promise<RemovalState> {
  const notAfter = timestampFromMs(Date.now() + 30_000);
  const base = { instanceKey: key, owner, target, notAfter };
  return (await client.delete(create(DeleteRequestSchema, { ...base, ...own }), call)).state;
}

async function failure(calling: Promise<unknown>): Promise<ProviderError> {
  try {
    await calling;
  } catch (error) {
    assert.ok(error instanceof ProviderError, String(error));
    return error;
  }
  return assert.fail("it did not fail");
}

function nameOf(instance: Instance | undefined): string {
  return instance?.providerId.split("/")[0] ?? "";
}

describe("LiveKit's adapter", () => {
  it("says who it is without asking the vendor", async () => {
    const request = create(GetProviderInfoRequestSchema, { contractVersion: 1 });
    const info = await client.getProviderInfo(request, call);
    assert.equal(info.name, "livekit");
    assert.ok(JSON.parse(info.parameterSchemaJson).properties.maxParticipants !== undefined);
  });

  it("creates one room, shows it, and leaves it alone when it is as wanted", async () => {
    const spec = { displayName: "晚会", parameters: { maxParticipants: "50" } };
    const made = await ensure({ spec, specHash: "h1" });
    assert.equal(made.change, Change.CREATED);
    assert.equal(made.instance?.state, State.READY);
    assert.equal(made.instance?.health?.availability, Availability.AVAILABLE);
    assert.equal(made.instance?.realm, `livekit:live.example.com/${livekit.apiKey}`);
    assert.equal(made.instance?.specHash, "h1");
    assert.equal(made.instance?.observed?.displayName, "晚会");
    assert.equal(made.instance?.usage?.concurrency?.limit, 50n);
    const again = await ensure({ spec, specHash: "h1", mayCreate: false });
    assert.equal(again.change, Change.NONE);
    assert.equal(again.instance?.providerId, made.instance?.providerId);
    const shown = await describeInstance({ spec });
    assert.equal(shown?.providerId, made.instance?.providerId);
    assert.deepEqual(shown?.drift, []);
    const rooms = (await listRooms(livekit)).filter(({ name }) => name === nameOf(shown));
    assert.equal(rooms.length, 1);
    assert.equal(`${rooms[0]?.name}/${rooms[0]?.sid}`, shown?.providerId);
  });

  it("makes one room of twenty Ensures at once", async () => {
    const all = await Promise.allSettled(Array.from({ length: 20 }, () => ensure()));
    const name = nameOf(await describeInstance());
    assert.equal((await listRooms(livekit)).filter((room) => room.name === name).length, 1);
    for (const result of all) {
      if (result.status === "rejected") assert.equal(result.reason.reason, "BUSY");
    }
  });

  it("updates what can change and refuses what cannot", async () => {
    const first = { displayName: "a", parameters: { maxParticipants: "5" } };
    const made = await ensure({ spec: first });
    const second = { displayName: "b", parameters: { applicationMetadata: "{}" } };
    const updated = await ensure({ spec: second });
    assert.equal(updated.change, Change.UPDATED);
    assert.equal(updated.instance?.providerId, made.instance?.providerId);
    assert.equal(updated.instance?.observed?.displayName, "b");
    assert.equal(updated.instance?.observed?.parameters["applicationMetadata"], "{}");
    const fixed = { parameters: { maxParticipants: "6" } };
    const error = await failure(ensure({ spec: fixed }));
    assert.equal(error.reason, "IMMUTABLE_FIELD");
    assert.equal(error.facts.preconditions?.[0]?.subject, "parameters.maxParticipants");
    assert.equal(error.outcome, "NOT_APPLIED");
  });

  it("sees what was edited at the vendor, and puts it right", async () => {
    const spec = { displayName: "a" };
    const { instance } = await ensure({ spec });
    const [room] = (await listRooms(livekit)).filter(({ name }) => name === nameOf(instance));
    assert.ok(room !== undefined);
    const edited = JSON.stringify({ ...JSON.parse(room.metadata), displayName: "edited" });
    assert.equal(await updateMetadata(livekit, room.name, edited), 200);
    const drifted = await describeInstance({ spec });
    assert.deepEqual(
      drifted?.drift.map(({ field, want, have }) => [field, want, have]),
      [["displayName", "a", "edited"]],
    );
    assert.equal((await ensure({ spec })).change, Change.UPDATED);
    assert.equal(await updateMetadata(livekit, room.name, "wiped"), 200);
    const restamped = await ensure({ spec, mayCreate: false });
    assert.equal(restamped.instance?.owner?.uid, owner.uid);
    assert.equal(restamped.instance?.observed?.displayName, "a");
  });

  it("makes a room that was removed by hand anew, under a new id", async () => {
    const { instance } = await ensure();
    assert.equal(await deleteRoom(livekit, nameOf(instance)), 200);
    const recorded = { providerId: instance?.providerId ?? "", realm: instance?.realm ?? "" };
    assert.equal((await failure(describeInstance({ recorded }))).reason, "NOT_FOUND");
    const again = await ensure({ recorded });
    assert.equal(again.change, Change.CREATED);
    assert.notEqual(again.instance?.providerId, instance?.providerId);
    assert.equal(nameOf(again.instance), nameOf(instance));
  });

  it("tells a dead predecessor from another cluster", async () => {
    await ensure();
    const restamped = await ensure({ owner: { cluster, uid: "uid-2" } });
    assert.equal(restamped.change, Change.RESTAMPED);
    const other = { cluster: "cluster-b", uid: "uid-3" };
    const error = await failure(ensure({ owner: other }));
    assert.equal(error.reason, "OWNED_BY_ANOTHER");
    assert.equal(error.facts.owner, cluster);
    assert.equal((await failure(remove({ owner: other }))).reason, "NOT_OURS");
    assert.equal((await describeInstance())?.owner?.uid, "uid-2");
  });

  it("lists what is ours, page by page", async () => {
    const own = { cluster: "cluster-list", uid: "uid-1" };
    const keys = Array.from({ length: 5 }, (_, i) => `fleet/list/name-${i}`);
    for (const instanceKey of keys) await ensure({ instanceKey, owner: own });
    const found: string[] = [];
    let pageToken = "";
    for (let pages = 0; pages < 10; pages += 1) {
      const question = { target, ownerCluster: own.cluster, pageSize: 2, pageToken };
      const page = await client.list(create(ListRequestSchema, question), call);
      found.push(...page.instances.map(({ instanceKey }) => instanceKey));
      pageToken = page.nextPageToken;
      if (pageToken === "") break;
    }
    assert.deepEqual(found.sort(), keys);
  });

  it("deletes, and says NOT_FOUND the second time", async () => {
    const { instance } = await ensure();
    assert.equal(await remove(), RemovalState.DELETED);
    const error = await failure(remove());
    assert.equal(error.reason, "NOT_FOUND");
    assert.equal(error.facts.realm, instance?.realm);
    const names = (await listRooms(livekit)).map(({ name }) => name);
    assert.ok(!names.includes(nameOf(instance)));
  });

  it("refuses parameters that LiveKit has not, by their path", async () => {
    const error = await failure(
      ensure({ spec: { parameters: { nope: "1", maxParticipants: "x" } } }),
    );
    assert.equal(error.reason, "INVALID_FIELD");
    assert.deepEqual(error.facts.fields?.map(({ path }) => path).sort(), [
      "parameters.maxParticipants",
      "parameters.nope",
    ]);
  });

  it("never takes a refused credential for an absent room, and reads a rotated one", async () => {
    await ensure();
    await writeCredential("another-secret-that-the-server-does-not-know");
    for (const ask of [describeInstance, remove, ensure]) {
      const error = await failure(ask());
      assert.equal(error.reason, "BAD_CREDENTIAL");
      assert.notEqual(error.code, "NOT_FOUND");
    }
    await writeCredential(livekit.apiSecret);
    assert.equal((await ensure()).change, Change.NONE);
  });

  it("says that a vendor is not there, with nothing applied", async () => {
    const error = await failure(
      ensure({ target: { endpoint: "https://dead.example.com", account: "dead" } }),
    );
    assert.equal(error.reason, "VENDOR_UNREACHABLE");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.match(error.message, /https:\/\/dead\.example\.com: connection refused/);
  });

  it("has said no secret in all of this", () => {
    const output = program.output();
    assert.ok(output.includes("adapter started"));
    assert.ok(!output.includes(livekit.apiSecret));
    assert.ok(!output.includes("another-secret-that"));
    assert.ok(!output.includes("eyJ"));
  });
});

describe("the adapter's process", () => {
  it("drains and exits 0 on SIGTERM", async () => {
    const { code } = await program.stop();
    assert.equal(code, 0);
  });
});
