import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Cluster } from "../dev-cluster/cluster.ts";
import type { CommandResult } from "../dev-cluster/command.ts";
import type { Manifest } from "./cluster-fixture.ts";
import {
  expectDone,
  expectRefused,
  mergePatch,
  providerClass,
  read,
  send,
  startClusterWith,
} from "./cluster-fixture.ts";

const address = "127.0.0.1:50051";

const refusedRows: readonly (readonly [rule: string, spec: Manifest, says: RegExp])[] = [
  ["a missing adapter", { adapter: undefined }, /spec\.adapter: Required value/],
  ["an adapter without an address", { adapter: {} }, /spec\.adapter\.address: Required value/],
  [
    "an adapter address that is a URL",
    { adapter: { address: "http://adapter:50051" } },
    /spec\.adapter\.address:.*must be a gRPC target with a port/,
  ],
  [
    "an adapter address without a port",
    { adapter: { address: "adapter.dhp-system.svc" } },
    /spec\.adapter\.address:.*must be a gRPC target with a port/,
  ],
  [
    "an unknown TLS mode",
    { adapter: { address, tls: { mode: "Simple" } } },
    /tls\.mode: Unsupported value/,
  ],
  [
    "a TLS block without a mode",
    { adapter: { address, tls: { serverName: "a" } } },
    /tls\.mode: Required value/,
  ],
  [
    "a server name without TLS",
    { adapter: { address, tls: { mode: "Disabled", serverName: "a" } } },
    /spec\.adapter\.tls:.*serverName is only used with mode Mutual/,
  ],
  [
    "an endpoint host with a scheme",
    { endpointHosts: ["https://a.b"] },
    /endpointHosts\[0\]:.*must be a host in lower case/,
  ],
  [
    "a star inside an endpoint host",
    { endpointHosts: ["a.*.example.com"] },
    /endpointHosts\[0\]:.*must be a host/,
  ],
  ["a bare star as endpoint host", { endpointHosts: ["*"] }, /endpointHosts\[0\]:.*must be a host/],
  [
    "an endpoint host twice",
    { endpointHosts: ["a.example.com", "a.example.com"] },
    /endpointHosts\[1\]: Duplicate value/,
  ],
  ["an account with a slash", { account: "a/b" }, /spec\.account:.*must be letters/],
  ["an account of 64 characters", { account: "a".repeat(64) }, /spec\.account: Too long/],
  [
    "an empty list of namespaces",
    { allowedNamespaces: [] },
    /spec\.allowedNamespaces.*at least 1 items/,
  ],
  [
    "a freshness below what looks can keep",
    { freshnessSeconds: 4 },
    /spec\.freshnessSeconds.*or equal to 5/,
  ],
  ["101 percent", { scaleOutAtPercent: 101 }, /spec\.scaleOutAtPercent.*or equal to 100/],
  ["an unknown deletionPolicy", { deletionPolicy: "Keep" }, /deletionPolicy: Unsupported value/],
  [
    "65 parameters",
    { parameters: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`p${n}`, "v"])) },
    /spec\.parameters: Too many/,
  ],
];

const admittedAddresses = [
  "127.0.0.1:50051",
  "[::1]:50051",
  "dhp-adapter-livekit.dhp-system.svc:50051",
  "dns:adapter:50051",
  "dns:///adapter.example.com:50051",
  "ipv4:10.0.0.1:50051,10.0.0.2:50051",
  "ipv6:[::1]:50051,[::2]:50051",
];

/** What may not happen to a class; each starts from `from`. */
const fixedRows: readonly {
  readonly rule: string;
  readonly from: Manifest;
  readonly patch: Manifest;
  readonly says: RegExp;
}[] = [
  {
    rule: "changing adapter.address",
    from: {},
    patch: { adapter: { address: "127.0.0.1:50052" } },
    says: /spec\.adapter:.*adapter cannot be changed/,
  },
  {
    rule: "adding adapter.tls",
    from: {},
    patch: { adapter: { tls: { mode: "Mutual" } } },
    says: /spec\.adapter:.*adapter cannot be changed/,
  },
  {
    rule: "removing adapter.tls",
    from: { adapter: { address, tls: { mode: "Mutual" } } },
    patch: { adapter: { tls: null } },
    says: /spec\.adapter:.*adapter cannot be changed/,
  },
  {
    rule: "removing adapter.tls.serverName",
    from: { adapter: { address, tls: { mode: "Mutual", serverName: "a" } } },
    patch: { adapter: { tls: { serverName: null } } },
    says: /spec\.adapter:.*adapter cannot be changed/,
  },
  {
    rule: "changing account",
    from: { account: "one" },
    patch: { account: "two" },
    says: /spec\.account:.*account cannot be changed, added or removed/,
  },
  {
    rule: "adding account",
    from: {},
    patch: { account: "one" },
    says: /spec\.account:.*account cannot be changed, added or removed/,
  },
  {
    rule: "removing account",
    from: { account: "one" },
    patch: { account: null },
    says: /spec\.account:.*account cannot be changed, added or removed/,
  },
];

describe("a DigitalHumanProviderClass", () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startClusterWith(["crd"]);
  });
  after(() => cluster.stop());

  function patchClass(name: string, patch: Manifest, ...more: string[]): Promise<CommandResult> {
    return mergePatch(cluster, `dhpclass/${name}`, patch, more);
  }

  for (const [rule, spec, says] of refusedRows) {
    it(`refuses ${rule}`, async () => {
      expectRefused(await send(cluster, ["create"], providerClass("refused", { spec })), says);
    });
  }

  for (const [index, good] of admittedAddresses.entries()) {
    it(`admits the adapter address ${good}`, async () => {
      const spec = { adapter: { address: good } };
      expectDone(await send(cluster, ["create"], providerClass(`address-${index}`, { spec })));
    });
  }

  for (const [index, { rule, from, patch, says }] of fixedRows.entries()) {
    it(`refuses ${rule}`, async () => {
      const name = `fixed-${index}`;
      expectDone(await send(cluster, ["create"], providerClass(name, { spec: from })));
      const made = await read(cluster, ["dhpclass", name]);
      expectRefused(await patchClass(name, { spec: patch }), says);
      assert.deepEqual((await read(cluster, ["dhpclass", name])).spec, made.spec);
    });
  }

  it("lets everything else be changed, added and removed", async () => {
    const from = { account: "one", adapter: { address, tls: { mode: "Mutual" } } };
    expectDone(await send(cluster, ["create"], providerClass("changing", { spec: from })));
    const added = {
      endpointHosts: ["a.example.com", "*.b.example.com"],
      parameters: { voice: "x" },
      allowedNamespaces: ["default"],
      deletionPolicy: "Retain",
      maxConcurrentCalls: 8,
      maxDeletionsPerMinute: 5,
      freshnessSeconds: 20,
      provisioningSeconds: 60,
      scaleOutAtPercent: 80,
    };
    expectDone(await patchClass("changing", { spec: added }));
    assert.deepEqual((await read(cluster, ["dhpclass", "changing"])).spec, { ...from, ...added });
    const removed = Object.fromEntries(Object.keys(added).map((field) => [field, null]));
    expectDone(await patchClass("changing", { spec: removed }));
    assert.deepEqual((await read(cluster, ["dhpclass", "changing"])).spec, {
      ...from,
      freshnessSeconds: 10,
    });
  });

  it("shows adapter, its conditions, the instances and whether it is the default", async () => {
    const annotations = { "dhp.example.com/is-default-class": "true" };
    expectDone(
      await send(cluster, ["create"], providerClass("shown", { metadata: { annotations } })),
    );
    const conditions = ["Connected", "Compatible", "Healthy"].map((type, n) => ({
      type,
      status: ["True", "False", "Unknown"][n],
      reason: "AsTested",
      message: "",
      lastTransitionTime: "2026-01-02T03:04:05Z",
    }));
    const status = {
      conditions,
      adapter: { name: "livekit", version: "1.0.0" },
      capabilities: ["DELETE", "UPDATE"],
      instances: 3,
      observedGeneration: 1,
    };
    expectDone(await patchClass("shown", { status }, "--subresource=status"));
    assert.deepEqual((await read(cluster, ["dhpclass", "shown"])).status, status);
    const lines = expectDone(await cluster.kubectl(["get", "dhpclass", "shown"])).split("\n");
    const [columns, cells] = lines.map((line) => line.trim().split(/\s+/));
    assert.deepEqual(columns, [
      "NAME",
      "ADAPTER",
      "CONNECTED",
      "COMPATIBLE",
      "HEALTHY",
      "INSTANCES",
      "DEFAULT?",
      "AGE",
    ]);
    assert.deepEqual(cells?.slice(0, 7), [
      "shown",
      "127.0.0.1:50051",
      "True",
      "False",
      "Unknown",
      "3",
      "true",
    ]);
  });

  it("explains itself", async () => {
    const explained = expectDone(await cluster.kubectl(["explain", "dhpclass.spec"]));
    assert.match(explained, /adapter\s+<Object> -required-\s+The vendor adapter/);
    assert.match(explained, /endpointHosts\s+<\[\]string>\s+Vendor hosts of this class/);
  });
});
