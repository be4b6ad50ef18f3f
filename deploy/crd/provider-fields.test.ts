import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Cluster } from "../dev-cluster/cluster.ts";
import type { Manifest } from "./cluster-fixture.ts";
import {
  expectDone,
  expectRefused,
  mergePatch,
  provider,
  read,
  send,
  startClusterWith,
} from "./cluster-fixture.ts";

interface Row {
  readonly rule: string;
  readonly spec: Manifest;
  /** What the refusal must tell its reader. */
  readonly says: RegExp;
}

const refusedRows: readonly Row[] = [
  { rule: "a missing region", spec: { region: undefined }, says: /spec\.region: Required value/ },
  { rule: "an empty region", spec: { region: "" }, says: /spec\.region.*at least 1 chars/ },
  {
    rule: "a region of 64 characters",
    spec: { region: "r".repeat(64) },
    says: /spec\.region: Too long: may not be more than 63/,
  },
  {
    rule: "a region of spaces",
    spec: { region: "  " },
    says: /spec\.region:.*without spaces around it/,
  },
  {
    rule: "a missing endpoint",
    spec: { endpoint: undefined },
    says: /spec\.endpoint: Required value/,
  },
  {
    rule: "an http endpoint",
    spec: { endpoint: "http://tts.example.com" },
    says: /spec\.endpoint:.*must start with https:\/\//,
  },
  {
    rule: "an endpoint with a password",
    spec: { endpoint: "https://user:word@tts.example.com" },
    says: /spec\.endpoint:.*must not have an @ before the path \(no user or password/,
  },
  {
    rule: "an endpoint with a space",
    spec: { endpoint: "https://tts.example.com/open api" },
    says: /spec\.endpoint:.*must not contain spaces/,
  },
  {
    rule: "an endpoint with a full-width space",
    spec: { endpoint: "https://tts.example.com\u3000" },
    says: /spec\.endpoint:.*must not contain spaces/,
  },
  {
    rule: "an endpoint with an invisible character",
    spec: { endpoint: "https://tts.example.com\u200b" },
    says: /spec\.endpoint:.*invisible characters/,
  },
  {
    rule: "an endpoint with a line break",
    spec: { endpoint: "https://tts.example.com/\n" },
    says: /spec\.endpoint:.*line breaks/,
  },
  {
    rule: "an endpoint with a query",
    spec: { endpoint: "https://tts.example.com/a?key=1" },
    says: /spec\.endpoint:.*must not contain a query or a fragment \(\? or #\)/,
  },
  {
    rule: "an endpoint with a fragment",
    spec: { endpoint: "https://tts.example.com/#a" },
    says: /spec\.endpoint:.*must not contain a query or a fragment \(\? or #\)/,
  },
  {
    rule: "an endpoint with a port and no host",
    spec: { endpoint: "https://:443/a" },
    says: /spec\.endpoint:.*must name a host/,
  },
  {
    rule: "an endpoint of 2,049 characters",
    spec: { endpoint: `https://tts.example.com/${"a".repeat(2049 - 24)}` },
    says: /spec\.endpoint: Too long: may not be more than 2048/,
  },
  {
    rule: "a displayName of 10 kB",
    spec: { displayName: "d".repeat(10_000) },
    says: /spec\.displayName: Too long: may not be more than 256/,
  },
  {
    rule: "a displayName of 257 characters",
    spec: { displayName: "文".repeat(257) },
    says: /spec\.displayName: Too long: may not be more than 256/,
  },
  {
    rule: "a className that no class can have",
    spec: { className: "Live Kit" },
    says: /spec\.className:.*must be the name of a class/,
  },
  {
    rule: "65 parameters",
    spec: { parameters: manyParameters(65) },
    says: /spec\.parameters: Too many: 65: must have at most 64/,
  },
  {
    rule: "a parameter value of 4,097 characters",
    spec: { parameters: { voice: "v".repeat(4097) } },
    says: /spec\.parameters\.voice: Too long: may not be more than 4096/,
  },
  {
    rule: "a parameter that is a number",
    spec: { parameters: { speed: 2 } },
    says: /spec\.parameters\.speed.*must be of type string/,
  },
  {
    rule: "a parameter name with a space",
    spec: { parameters: { "voice name": "x" } },
    says: /spec\.parameters:.*names must have 1 to 128 characters/,
  },
  {
    rule: "a parameter name of 129 characters",
    spec: { parameters: { ["n".repeat(129)]: "x" } },
    says: /spec\.parameters:.*names must have 1 to 128 characters/,
  },
  {
    rule: "an unknown deletionPolicy",
    spec: { deletionPolicy: "Orphan" },
    says: /spec\.deletionPolicy: Unsupported value: "Orphan": supported values: "Delete", "Retain"/,
  },
  {
    rule: "an unknown driftPolicy",
    spec: { driftPolicy: "Ignore" },
    says: /spec\.driftPolicy: Unsupported value/,
  },
  { rule: "suspend as text", spec: { suspend: "yes" }, says: /spec\.suspend.*of type boolean/ },
  {
    rule: "adopt without an id",
    spec: { adopt: {} },
    says: /spec\.adopt\.providerID: Required value/,
  },
  {
    rule: "takeOverFrom without a uid",
    spec: { adopt: { providerID: "room-1", takeOverFrom: { cluster: "c" } } },
    says: /spec\.adopt\.takeOverFrom\.uid: Required value/,
  },
  {
    rule: "a negative quota",
    spec: { quota: { maxConcurrency: -1 } },
    says: /spec\.quota\.maxConcurrency.*greater than or equal to 0/,
  },
  {
    rule: "a quota that JavaScript cannot count",
    spec: { quota: { dailyCalls: 2 ** 53 } },
    says: /spec\.quota\.dailyCalls.*less than or equal to/,
  },
  {
    rule: "a field nobody knows",
    spec: { endpoints: ["https://tts.example.com"] },
    says: /unknown field "spec\.endpoints"/,
  },
];

const admittedRows: readonly { readonly rule: string; readonly spec: Manifest }[] = [
  { rule: "endpoint and region alone", spec: {} },
  {
    rule: "a Chinese displayName of 256 characters",
    spec: { displayName: `杭州文字转语音${"文".repeat(249)}` },
  },
  { rule: "emoji in displayName", spec: { displayName: "晚会 🎙️👩🏽‍🎤" } },
  { rule: "a region of 63 characters", spec: { region: "r".repeat(63) } },
  { rule: "a region with an inner space", spec: { region: "East US" } },
  { rule: "an endpoint with a port", spec: { endpoint: "https://tts.example.com:8443/v1/" } },
  { rule: "an endpoint with @ in its path", spec: { endpoint: "https://tts.example.com/@team" } },
  { rule: "an endpoint with an IPv6 address", spec: { endpoint: "https://[::1]:8443" } },
  {
    rule: "an endpoint of 2,048 characters",
    spec: { endpoint: `https://tts.example.com/${"a".repeat(2048 - 24)}` },
  },
  { rule: "64 parameters of 4,096 characters", spec: { parameters: manyParameters(64, 4096) } },
  { rule: "a quota of zero", spec: { quota: { maxConcurrency: 0, dailyCalls: 0 } } },
  {
    rule: "every optional field at once",
    spec: {
      displayName: "All",
      className: "livekit",
      parameters: { voice: "aixia", "tts.speed": "1.2" },
      deletionPolicy: "Retain",
      deletionProtection: true,
      suspend: true,
      driftPolicy: "Observe",
      adopt: { providerID: "room-1", takeOverFrom: { cluster: "east", uid: "u-1" } },
      quota: { maxConcurrency: 4, dailyCalls: 1000, monthlyCredits: 2 ** 53 - 1 },
    },
  },
];

function manyParameters(count: number, valueLength = 1): Record<string, string> {
  const entries = Array.from({ length: count }, (_, n) => [`p${n}`, "v".repeat(valueLength)]);
  return Object.fromEntries(entries);
}

describe("the fields of a DigitalHumanProvider", () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startClusterWith(["crd"]);
  });
  after(() => cluster.stop());

  for (const { rule, spec, says } of refusedRows) {
    it(`refuses ${rule}`, async () => {
      expectRefused(await send(cluster, ["create"], provider("refused", { spec })), says);
    });
  }

  for (const [index, { rule, spec }] of admittedRows.entries()) {
    it(`admits ${rule} and keeps it as it came`, async () => {
      const name = `admitted-${index}`;
      const sent = provider(name, { spec });
      expectDone(await send(cluster, ["create"], sent));
      const stored = await read(cluster, ["dhp", name]);
      assert.deepEqual(stored.spec, { driftPolicy: "Correct", ...sent.spec });
    });
  }

  it("admits a name of 253 characters and refuses one of 254", async () => {
    const longest = `${"n".repeat(63)}.${"n".repeat(63)}.${"n".repeat(63)}.${"n".repeat(61)}`;
    assert.equal(longest.length, 253);
    expectDone(await send(cluster, ["create"], provider(longest)));
    expectRefused(await send(cluster, ["create"], provider(`${longest}n`)), /metadata\.name/);
  });

  it("leaves deletionPolicy absent, so that the class can decide", async () => {
    expectDone(await send(cluster, ["create"], provider("no-policy")));
    assert.equal("deletionPolicy" in (await read(cluster, ["dhp", "no-policy"])).spec, false);
  });

  it("refuses an edit that makes a good object bad", async () => {
    expectDone(await send(cluster, ["create"], provider("edited")));
    const patch = { spec: { endpoint: "http://tts.example.com" } };
    expectRefused(await mergePatch(cluster, "dhp/edited", patch), /must start with https/);
  });

  it("counts up metadata.generation with spec alone", async () => {
    expectDone(await send(cluster, ["create"], provider("counted")));
    expectDone(await cluster.kubectl(["annotate", "dhp/counted", "a=b"]));
    const status = { status: { providerID: "room-1" } };
    expectDone(await mergePatch(cluster, "dhp/counted", status, ["--subresource=status"]));
    assert.equal((await read(cluster, ["dhp/counted"])).metadata.generation, 1);
    expectDone(await mergePatch(cluster, "dhp/counted", { spec: { suspend: true } }));
    assert.equal((await read(cluster, ["dhp/counted"])).metadata.generation, 2);
  });
});
