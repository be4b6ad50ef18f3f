import assert from "node:assert/strict";
import { test } from "node:test";
import { timestampMs } from "@bufbuild/protobuf/wkt";

import { classWith, endpointA, objectWith, placementJson } from "../resource/object-fixture.ts";
import type { JsonObject } from "../resource/json-door.ts";
import { wantedSpec } from "../resource/wanted.ts";
import {
  deleteRequest,
  describeRequest,
  ensureRequest,
  instanceKey,
  releaseRequest,
} from "./provider-requests.ts";

const identity = { fleet: "show", cluster: "cluster-1" };
const place = { class: "a", endpoint: endpointA, region: "r", account: "eu" };
const nothing = { providerId: "", realm: "realm-1" };
const notAfterMs = Date.UTC(2026, 0, 1);

function ensureOf(
  spec: JsonObject,
  change: { readonly status?: JsonObject; readonly providerId?: string } = {},
) {
  const { status, providerId = "" } = change;
  const object = objectWith({ spec, ...(status === undefined ? {} : { status }) });
  return ensureRequest(identity, object, {
    place,
    wanted: wantedSpec(object.spec, classWith("a", [])),
    recorded: { ...nothing, providerId },
    mayCreate: true,
    notAfterMs,
  });
}

test("the key is fleet, namespace and name", () => {
  assert.equal(instanceKey(identity, objectWith({})), "show/media/one");
});

test("every request says who asks, for what, and where", () => {
  const object = objectWith({});
  const wanted = wantedSpec(object.spec, classWith("a", []));
  const recorded = { providerId: "i-1", realm: "realm-1" };
  const requests = [
    ensureRequest(identity, object, { place, wanted, recorded, mayCreate: false, notAfterMs }),
    describeRequest(identity, object, { place, wanted, recorded }),
    deleteRequest(identity, object, { place, recorded, notAfterMs }),
    releaseRequest(identity, object, { place, recorded, notAfterMs }),
  ];
  for (const request of requests) {
    assert.equal(request.instanceKey, "show/media/one");
    assert.equal(request.owner?.cluster, "cluster-1");
    assert.equal(request.owner.uid, "uid-1");
    assert.equal(request.target?.endpoint, endpointA);
    assert.equal(request.target.region, "r");
    assert.equal(request.target.account, "eu");
    assert.equal(request.recorded?.providerId, "i-1");
    assert.equal(request.recorded.realm, "realm-1");
    if (!("notAfter" in request)) continue;
    assert.equal(request.notAfter && timestampMs(request.notAfter), notAfterMs);
  }
});

test("a wish that is absent is absent on the wire, and zero or empty is not", () => {
  const plain = ensureOf({}).spec;
  assert.equal(plain?.displayName, undefined);
  assert.equal(plain?.quota, undefined);
  const zero = ensureOf({ displayName: "", quota: { maxConcurrency: 0 } }).spec;
  assert.equal(zero?.displayName, "");
  assert.equal(zero?.quota?.maxConcurrency, 0n);
  assert.equal(zero?.quota?.dailyCalls, undefined);
});

test("the hash is of what is sent", () => {
  assert.equal(ensureOf({}).specHash, ensureOf({ region: "other" }).specHash);
  assert.notEqual(ensureOf({}).specHash, ensureOf({ displayName: "x" }).specHash);
});

test("spec.adopt is sent while no instance is recorded, and never afterwards", () => {
  const adopt = { providerID: "i-9", takeOverFrom: { cluster: "cluster-2", uid: "uid-2" } };
  const first = ensureOf({ adopt });
  assert.equal(first.adopt?.providerId, "i-9");
  assert.equal(first.adopt.takeOverFrom?.cluster, "cluster-2");
  assert.equal(first.adopt.takeOverFrom.uid, "uid-2");
  const unowned = ensureOf({ adopt: { providerID: "i-9" } });
  assert.equal(unowned.adopt?.takeOverFrom, undefined);

  assert.equal(ensureOf({ adopt }, { providerId: "i-9" }).adopt, undefined);
  const elsewhere = {
    placements: [placementJson("https://b.example.com", "realm-2", { providerID: "i-9" })],
  };
  assert.equal(ensureOf({ adopt }, { status: elsewhere }).adopt, undefined);
  const vanished = {
    placements: [placementJson("https://a.example.com", "realm-1", { lastProviderID: "i-9" })],
  };
  assert.equal(ensureOf({ adopt }, { status: vanished }).adopt, undefined);
});
