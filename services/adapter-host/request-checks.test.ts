import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { inspect } from "node:util";

import { endpoint, failure, sentinel, testHost } from "./test-host.ts";
import type { TestHost } from "./test-host.ts";
import { html, reset, status, TestVendor, testAdapter } from "./test-vendor.ts";

let vendor: TestVendor;
let test: TestHost;

before(async () => {
  vendor = await TestVendor.start();
  test = testHost(vendor, testAdapter({ regions: ["", "eu"], nameBytesMax: 30 }));
});
after(async () => {
  await test.close();
  vendor.stop();
});

interface Row {
  readonly why: string;
  readonly request: NonNullable<Parameters<TestHost["ask"]["ensure"]>[0]>;
  readonly reason?: string;
  readonly paths: readonly string[];
}

const rows: readonly Row[] = [
  { why: "no key", request: { instanceKey: "" }, paths: ["instance_key"] },
  { why: "a key of another form", request: { instanceKey: "a/b" }, paths: ["instance_key"] },
  {
    why: "a key of 383 bytes",
    request: { instanceKey: `f/n/${"x".repeat(379)}` },
    paths: ["instance_key"],
  },
  { why: "no owner", request: { owner: undefined }, paths: ["owner.cluster", "owner.uid"] },
  { why: "no uid", request: { owner: { cluster: "c" } }, paths: ["owner.uid"] },
  {
    why: "an owner beyond its size",
    request: { owner: { cluster: "c".repeat(254), uid: "u".repeat(129) } },
    paths: ["owner.cluster", "owner.uid"],
  },
  { why: "no target", request: { target: undefined }, paths: ["target", "endpoint"] },
  { why: "no endpoint", request: { target: {} }, paths: ["endpoint"] },
  { why: "no spec", request: { spec: undefined }, paths: ["spec"] },
  {
    why: "an unknown region",
    request: { target: { endpoint, region: "mars" } },
    paths: ["region"],
  },
  {
    why: "a long id",
    request: { recorded: { providerId: "x".repeat(1025) } },
    paths: ["recorded.provider_id"],
  },
  { why: "control characters", request: { specHash: "a\u0000b" }, paths: ["spec_hash"] },
  { why: "an adoption of nothing", request: { adopt: {} }, paths: ["adopt.providerID"] },
  {
    why: "a take-over from half an owner",
    request: { adopt: { providerId: "x", takeOverFrom: { cluster: "c" } } },
    paths: ["adopt.takeOverFrom.uid"],
  },
  {
    why: "an unknown parameter",
    request: { spec: { parameters: { nope: "1" } } },
    paths: ["parameters.nope"],
  },
  {
    why: "all mistakes of a spec at once",
    request: {
      spec: {
        displayName: "x".repeat(31),
        parameters: { size: "many", nope: "1" },
        quota: { dailyCalls: -1n },
      },
    },
    paths: ["displayName", "parameters.nope", "parameters.size", "quota.dailyCalls"],
  },
  {
    why: "too many parameters",
    request: {
      spec: { parameters: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`p${i}`, ""])) },
    },
    paths: ["parameters"],
  },
  {
    why: "an unknown account",
    request: { target: { endpoint, account: "nobody" } },
    reason: "UNKNOWN_ACCOUNT",
    paths: ["account"],
  },
  {
    why: "a host that is not on the list",
    request: { target: { endpoint: "https://evil.example" } },
    reason: "ENDPOINT_NOT_ALLOWED",
    paths: ["endpoint"],
  },
  {
    why: "plain http",
    request: { target: { endpoint: "http://vendor.example" } },
    reason: "ENDPOINT_NOT_ALLOWED",
    paths: ["endpoint"],
  },
];

describe("Ensure refuses, before it asks the vendor anything,", () => {
  for (const { why, request, reason = "INVALID_FIELD", paths } of rows) {
    it(why, async () => {
      vendor.requests.length = 0;
      const error = await failure(test.ask.ensure(request));
      assert.equal(error.reason, reason);
      assert.equal(error.code, "INVALID_ARGUMENT");
      assert.equal(error.outcome, "NOT_APPLIED");
      const found = (error.facts.fields ?? []).map(({ path }) => path);
      assert.deepEqual([...new Set(found)].sort(), [...paths].sort());
      assert.deepEqual(vendor.requests, []);
    });
  }
});

describe("Ensure accepts", () => {
  it("values at their limits", async () => {
    await test.ask.ensure({
      instanceKey: `f/n/${"x".repeat(378)}`,
      owner: { cluster: "c".repeat(253), uid: "u".repeat(128) },
      specHash: "h".repeat(128),
      spec: { displayName: "x".repeat(30), parameters: { size: "1" }, quota: { dailyCalls: 0n } },
      target: { endpoint, region: "eu" },
    });
  });
});

describe("an error of a call", () => {
  it("says what failed, where, and for which instance", async () => {
    const { message } = await failure(test.ask.ensure({ mayCreate: false }));
    assert.match(message, /^cannot ensure "fleet\/ns\/name" at test vendor\.example: /);
  });

  it("does not repeat the password that an endpoint carried", async () => {
    const target = { endpoint: "https://user:hunter2@vendor.example" };
    const error = await failure(test.ask.describe({ target }));
    assert.ok(!JSON.stringify([error.message, error.facts]).includes("hunter2"));
  });

  it("keeps the credential out of everything that it says", async () => {
    const effects = [status(401), status(500), status(422), status(404), reset, html];
    for (const [at, effect] of effects.entries()) {
      vendor.faults.push({ method: "POST", when: "before", effect });
      const error = await failure(test.ask.ensure({ instanceKey: `fleet/secret/${at}` }));
      assert.ok(!inspect(error, { depth: 10, showHidden: true }).includes(sentinel));
    }
    assert.ok(vendor.lastApiKey === sentinel);
  });
});
