import assert from "node:assert/strict";
import { test } from "node:test";

import { endpointA, endpointB, objectWith, placementJson } from "./object-fixture.ts";
import {
  effectiveRecord,
  firstPlacementValue,
  isSamePlace,
  newPlacement,
  placementToJson,
} from "./placement.ts";

const place = { class: "a", endpoint: endpointA, region: "r", account: "" };
const first = newPlacement(place, "realm-1");
const annotation = firstPlacementValue(first, "uid-1");

test("status.placements is the record, whatever the annotation says", () => {
  const status = { placements: [placementJson(endpointB, "realm-2")] };
  const record = effectiveRecord(status, annotation, "uid-1");
  assert.deepEqual(
    record.map(({ realm }) => realm),
    ["realm-2"],
  );
});

test("before status.placements is written, the object's own annotation is the record", () => {
  assert.deepEqual(effectiveRecord({}, annotation, "uid-1"), [first]);
  assert.deepEqual(effectiveRecord({ placements: [] }, annotation, "uid-1"), [first]);
});

test("an annotation that is not the object's own counts as nothing", () => {
  for (const [value, uid] of [
    [annotation, "uid-2"],
    [firstPlacementValue(first, ""), ""],
    ["no json", "uid-1"],
    ["null", "uid-1"],
    ["[]", "uid-1"],
    [undefined, "uid-1"],
  ] as const) {
    assert.deepEqual(effectiveRecord({}, value, uid), [], String(value));
  }
});

test("an object's record is read with its own uid", () => {
  const annotations = { "dhp.example.com/first-placement": annotation };
  assert.equal(objectWith({ metadata: { annotations } }).record.length, 1);
  assert.equal(objectWith({ metadata: { annotations, uid: "uid-9" } }).record.length, 0);
});

test("a placement survives being read and written, unknown fields and all", () => {
  const json = placementJson(endpointA, "realm-1", {
    account: "eu",
    providerID: "i-1",
    state: "Retiring",
    shard: { of: "a newer version" },
  });
  const [placement] = effectiveRecord({ placements: [json] }, undefined, "uid-1");
  assert.ok(placement);
  assert.deepEqual(placement.unknown, { shard: { of: "a newer version" } });
  assert.deepEqual(placementToJson(placement), json);
});

test("what is not known is absent, and each placement names its version", () => {
  assert.deepEqual(placementToJson(first), placementJson(endpointA, "realm-1"));
});

test("a place is its class, endpoint, region and account", () => {
  assert.equal(isSamePlace(place, { ...place }), true);
  for (const change of [
    { class: "b" },
    { endpoint: endpointB },
    { region: "s" },
    { account: "eu" },
  ]) {
    assert.equal(isSamePlace(place, { ...place, ...change }), false, JSON.stringify(change));
  }
});
