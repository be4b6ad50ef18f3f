import assert from "node:assert/strict";
import { test } from "node:test";

import { clusterStamp, keyStamp } from "../../services/contract/short-stamp.ts";
import { endpointA, objectWith, placementJson } from "../resource/object-fixture.ts";
import type { JsonObject } from "../resource/json-door.ts";
import { Claims } from "./claims.ts";
import type { StampedInstance } from "./claims.ts";

const identity = { fleet: "local" };

function objectNamed(name: string, placements: readonly JsonObject[], metadata: JsonObject = {}) {
  return objectWith({
    metadata: { name, namespace: "media", ...metadata },
    status: { placements },
  });
}

function instance(name: string, own: Partial<StampedInstance> = {}): StampedInstance {
  const key = `local/media/${name}`;
  return {
    realm: "realm-1",
    providerID: "i-1",
    stamp: `${keyStamp(key)}-${clusterStamp("cluster-1")}`,
    key,
    uid: "uid-1",
    createdAtMs: undefined,
    ...own,
  };
}

const recorded = (providerID: string, state = "Recorded"): JsonObject => ({
  ...placementJson(endpointA, "realm-1"),
  providerID,
  state,
});

test("an instance belongs to the object whose record names it, in its realm alone", () => {
  const claims = new Claims([objectNamed("a", [recorded("i-1")])], identity);
  assert.deepEqual(claims.of(instance("a")), { kind: "recorded", object: "media/a" });
  assert.equal(claims.of(instance("a", { realm: "realm-2" })).kind, "orphan");
});

test("an object that is being made, moved or removed may yet claim what carries its key", () => {
  const objects = [
    objectNamed("making", [recorded("")]),
    objectNamed("first", []),
    objectNamed("moving", [recorded("i-9"), recorded("i-8", "Retiring")]),
    objectNamed("going", [recorded("i-7")], { deletionTimestamp: "2026-01-01T00:00:00Z" }),
  ];
  const claims = new Claims(objects, identity);
  for (const name of ["making", "first", "moving", "going"]) {
    assert.deepEqual(claims.of(instance(name)), { kind: "pending", object: `media/${name}` });
  }
});

test("what carries the key of no object, or of one that records another, is an orphan", () => {
  const claims = new Claims([objectNamed("a", [recorded("i-2")])], identity);
  const twin = claims.of(instance("a"));
  assert.ok(twin.kind === "orphan" && twin.why.includes("records another instance: i-2"));
  const gone = claims.of(instance("b"));
  assert.ok(gone.kind === "orphan" && gone.why.includes("no object media/b"));
  const short = claims.of(instance("b", { key: "" }));
  assert.ok(short.kind === "orphan" && short.why.includes("of its key"));
});

test("the short stamp alone finds the object of a vendor with short fields", () => {
  const claims = new Claims([objectNamed("a", [recorded("")])], identity);
  assert.equal(claims.of(instance("a", { key: "", uid: "" })).kind, "pending");
});
