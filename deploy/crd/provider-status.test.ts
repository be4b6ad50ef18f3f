import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Cluster } from "../dev-cluster/cluster.ts";
import type { CommandResult } from "../dev-cluster/command.ts";
import type { Manifest } from "./cluster-fixture.ts";
import {
  expectDone,
  expectRefused,
  mergePatch,
  placement,
  provider,
  read,
  send,
  startClusterWith,
} from "./cluster-fixture.ts";

const since = "2026-01-02T03:04:05Z";

function condition(type: string, status: string, reason: string, message = ""): Manifest {
  return { type, status, reason, message, lastTransitionTime: since, observedGeneration: 1 };
}

describe("the status and the look of a DigitalHumanProvider", () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startClusterWith(["crd"]);
  });
  after(() => cluster.stop());

  function patchStatus(name: string, status: Manifest): Promise<CommandResult> {
    return mergePatch(cluster, `dhp/${name}`, { status }, ["--subresource=status"]);
  }

  it("keeps every field that the controller writes", async () => {
    const status = {
      observedGeneration: 1,
      providerID: "room-1",
      className: "livekit",
      account: "main",
      conditions: [condition("Ready", "True", "ProviderReady", "works")],
      placements: [placement({ account: "main" })],
      usage: {
        calls: { used: 1, limit: 10, resetsAt: since },
        concurrency: { used: 0, limit: 4 },
        credits: { remaining: 5, limit: 50, expiresAt: since },
      },
      rateLimitedUntil: since,
    };
    expectDone(await send(cluster, ["create"], provider("whole")));
    expectDone(await patchStatus("whole", status));
    assert.deepEqual((await read(cluster, ["dhp", "whole"])).status, status);
  });

  it("keeps placement fields of a newer version through later patches", async () => {
    const newer = placement({ version: 2, shard: { id: 7, tags: ["a"] }, checkedAt: since });
    expectDone(await send(cluster, ["create"], provider("newer")));
    expectDone(await patchStatus("newer", { placements: [newer] }));
    expectDone(await patchStatus("newer", { providerID: "room-1" }));
    expectDone(await cluster.kubectl(["annotate", "dhp", "newer", "a=b"]));
    assert.deepEqual((await read(cluster, ["dhp", "newer"])).status?.["placements"], [newer]);
  });

  it("drops unknown fields elsewhere in status", async () => {
    expectDone(await send(cluster, ["create"], provider("unknown")));
    expectDone(await patchStatus("unknown", { providerID: "room-1", shard: 7 }));
    assert.deepEqual((await read(cluster, ["dhp", "unknown"])).status, { providerID: "room-1" });
  });

  it("takes no status from users' writes of the object", async () => {
    const sent = { ...provider("claimed"), status: { providerID: "room-1" } };
    expectDone(await send(cluster, ["create"], sent));
    assert.equal((await read(cluster, ["dhp", "claimed"])).status, undefined);
  });

  it("takes no spec and no metadata from a status write", async () => {
    expectDone(await send(cluster, ["create"], provider("owned")));
    const patch = {
      metadata: { finalizers: ["dhp.example.com/provider-cleanup"], annotations: { a: "b" } },
      spec: { region: "elsewhere" },
      status: { providerID: "room-1" },
    };
    expectDone(await mergePatch(cluster, "dhp/owned", patch, ["--subresource=status"]));
    const stored = await read(cluster, ["dhp", "owned"]);
    assert.equal(stored.spec["region"], "cn-hangzhou");
    assert.equal(stored.metadata.finalizers, undefined);
    assert.equal(stored.metadata.annotations, undefined);
    assert.equal(stored.status?.["providerID"], "room-1");
  });

  it("answers a stale resourceVersion in a status patch with a conflict", async () => {
    expectDone(await send(cluster, ["create"], provider("stale")));
    const { resourceVersion } = (await read(cluster, ["dhp", "stale"])).metadata;
    expectDone(await cluster.kubectl(["annotate", "dhp", "stale", "a=b"]));
    const patch = { metadata: { resourceVersion }, status: { providerID: "room-1" } };
    expectRefused(
      await mergePatch(cluster, "dhp/stale", patch, ["--subresource=status"]),
      /Conflict|the object has been modified/,
    );
  });

  const refusedRows: readonly (readonly [rule: string, status: Manifest, says: RegExp])[] = [
    [
      "a placement state nobody defined",
      { placements: [placement({ state: "Gone" })] },
      /state: Unsupported value: "Gone": supported values: "Recorded", "Retiring"/,
    ],
    [
      "a placement without its realm",
      { placements: [placement({ realm: null })] },
      /placements\[0\]\.realm/,
    ],
    [
      "17 placements",
      { placements: Array.from({ length: 17 }, () => placement()) },
      /status\.placements: Too many: 17: must have at most 16/,
    ],
    [
      "two conditions of one type",
      { conditions: [condition("Ready", "True", "A"), condition("Ready", "False", "B")] },
      /status\.conditions\[1\]: Duplicate value/,
    ],
    [
      "a condition without a reason",
      { conditions: [condition("Ready", "True", "")] },
      /conditions\[0\]\.reason/,
    ],
    [
      "a condition that is neither True, False nor Unknown",
      { conditions: [condition("Ready", "Maybe", "A")] },
      /conditions\[0\]\.status: Unsupported value: "Maybe"/,
    ],
    [
      "a time that is none",
      { rateLimitedUntil: "soon" },
      /status\.rateLimitedUntil.*must be of type date-time/,
    ],
  ];
  for (const [rule, status, says] of refusedRows) {
    it(`refuses ${rule}`, async () => {
      const name = `refused-${rule.replaceAll(/[^a-z0-9]/g, "")}`;
      expectDone(await send(cluster, ["create"], provider(name)));
      expectRefused(await patchStatus(name, status), says);
    });
  }

  it("shows region, id, readiness, reason and age, and the rest with -o wide", async () => {
    expectDone(await send(cluster, ["create", "--namespace=kube-public"], inNamespace("shown")));
    const conditions = [
      condition("Ready", "False", "BillingStopped", "invoice of May is unpaid"),
      condition("Available", "True", "ProviderAvailable"),
      condition("RateLimited", "False", "NotLimited"),
      condition("BillingOverdue", "True", "Overdue"),
    ];
    const status = { providerID: "room-1", className: "livekit", conditions };
    expectDone(
      await mergePatch(cluster, "dhp/shown", { status }, [
        "--subresource=status",
        "-n",
        "kube-public",
      ]),
    );
    const narrow = await table(["dhp", "--namespace=kube-public"]);
    assert.deepEqual(narrow.columns, ["NAME", "REGION", "PROVIDERID", "READY", "REASON", "AGE"]);
    assert.deepEqual(narrow.cells.slice(0, 5), [
      "shown",
      "cn-hangzhou",
      "room-1",
      "False",
      "BillingStopped",
    ]);
    assert.match(narrow.cells[5] ?? "", /^\d+s$/);
    const wide = await table(["dhp", "--namespace=kube-public", "-o", "wide"]);
    assert.deepEqual(wide.columns.slice(6), [
      "CLASS",
      "ENDPOINT",
      "AVAILABLE",
      "LIMITED",
      "BILLING",
      "MESSAGE",
    ]);
    assert.deepEqual(wide.cells.slice(6), [
      "livekit",
      "https://tts.example.com/openapi",
      "True",
      "False",
      "Overdue",
      "invoice of May is unpaid",
    ]);
  });

  function inNamespace(name: string): Manifest {
    return provider(name, { metadata: { namespace: "kube-public" } });
  }

  /** Columns and the first row's cells of a kubectl table; cells may hold single spaces. */
  async function table(what: readonly string[]) {
    const [head, row] = expectDone(await cluster.kubectl(["get", ...what])).split("\n");
    const split = (line = "") => line.trim().split(/\s{2,}/);
    return { columns: split(head), cells: split(row) };
  }

  it("explains each field of spec and status", async () => {
    const explained = expectDone(await cluster.kubectl(["explain", "dhp.spec"]));
    assert.match(explained, /endpoint\s+<string> -required-\s+The vendor's API base/);
    assert.match(explained, /enum: Delete, Retain/);
    const fields = expectDone(await cluster.kubectl(["explain", "dhp", "--recursive"]));
    for (const field of ["takeOverFrom", "placements", "quota"]) {
      assert.ok(fields.includes(field), field);
    }
  });

  it("leaves no field without a description", async () => {
    const crd = "crd/digitalhumanproviders.dhp.example.com";
    const raw = expectDone(await cluster.kubectl(["get", crd, "-o", "json"]));
    const schema: unknown = JSON.parse(raw).spec.versions[0].schema.openAPIV3Schema;
    assert.deepEqual(undescribed(schema, ""), [".apiVersion", ".kind", ".metadata"]);
  });
});

/** Paths of the properties in a schema that carry no description. */
function undescribed(schema: unknown, path: string): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const found: string[] = [];
  if ("properties" in schema && typeof schema.properties === "object") {
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const at = `${path}.${name}`;
      if (!("description" in Object(property))) found.push(at);
      found.push(...undescribed(property, at));
    }
  }
  if ("items" in schema) found.push(...undescribed(schema.items, `${path}[]`));
  return found.sort();
}
