import assert from "node:assert/strict";
import { test } from "node:test";

import { conditionOf, parseDigitalHumanProvider } from "./digital-human-provider.ts";
import { classWith, objectWith } from "./object-fixture.ts";
import { parseProviderClass } from "./provider-class.ts";

test("anything is read as an object with defaults, and nothing throws", () => {
  for (const raw of [{}, { metadata: 1, spec: [], status: "x" }, { spec: { quota: null } }]) {
    const object = parseDigitalHumanProvider(raw);
    assert.equal(object.spec.driftPolicy, "Correct");
    assert.equal(object.spec.isSuspended, false);
    assert.equal(object.spec.isDeletionProtected, false);
    assert.deepEqual(object.spec.quota, {});
    assert.deepEqual(object.record, []);
    assert.equal(object.isDeleting, false);
  }
});

test("spec is read as it stands, and what is absent stays absent", () => {
  const { spec } = objectWith({
    spec: {
      displayName: "",
      className: "a",
      deletionPolicy: "Retain",
      deletionProtection: true,
      suspend: true,
      driftPolicy: "Observe",
      parameters: { voice: "mei", count: 3 },
      quota: { maxConcurrency: 0 },
      adopt: { providerID: "i-9" },
    },
  });
  assert.equal(spec.displayName, "");
  assert.equal(spec.className, "a");
  assert.equal(spec.deletionPolicy, "Retain");
  assert.equal(spec.isDeletionProtected, true);
  assert.equal(spec.isSuspended, true);
  assert.equal(spec.driftPolicy, "Observe");
  assert.deepEqual(spec.parameters, { voice: "mei" });
  assert.deepEqual(spec.quota, { maxConcurrency: 0 });
  assert.deepEqual(spec.adopt, { providerID: "i-9" });
  assert.equal("displayName" in objectWith({}).spec, false);
  assert.equal("adopt" in objectWith({}).spec, false);
});

test("a condition is found by its type, and an unknown status is Unknown", () => {
  const conditions = [{ type: "Ready", status: "Maybe" }, "nonsense"];
  const { status } = objectWith({ status: { conditions } });
  assert.equal(conditionOf(status, "Ready")?.status, "Unknown");
  assert.equal(conditionOf(status, "Available"), undefined);
});

test("the object as it came is kept", () => {
  const raw = { metadata: { name: "one" }, spec: { later: 1 }, status: { later: 2 } };
  const object = parseDigitalHumanProvider(raw);
  assert.equal(object.raw, raw);
  assert.deepEqual(object.rawStatus, { later: 2 });
});

test("a class allows all namespaces until it names some, and waits ten minutes by default", () => {
  const open = classWith("a", [], { spec: { allowedNamespaces: [] } });
  assert.equal(open.allowedNamespaces, undefined);
  assert.equal(open.provisioningSeconds, 600);
  assert.equal(open.isDefault, false);
  const closed = classWith("a", [], { spec: { allowedNamespaces: ["media"] } });
  assert.deepEqual(closed.allowedNamespaces, ["media"]);
});

test("a class's adapter is reached in the clear unless it names TLS", () => {
  const adapterOf = (adapter: object) => parseProviderClass({ spec: { adapter } }).adapter;
  assert.equal(adapterOf({ address: "a:1" }).isTls, false);
  assert.equal(adapterOf({ address: "a:1", tls: {} }).isTls, true);
  assert.equal(adapterOf({ address: "a:1", tls: { mode: "Disabled" } }).isTls, false);
  assert.equal(adapterOf({ tls: { serverName: "adapter" } }).serverName, "adapter");
});
