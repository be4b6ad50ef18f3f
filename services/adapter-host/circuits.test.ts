/** What callers see of breakers: per account, reads apart from changes, never a false NOT_FOUND. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";

import { Change } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { endpoint, failure, testHost } from "./test-host.ts";
import type { TestHost } from "./test-host.ts";
import { status, TestVendor, testAdapter } from "./test-vendor.ts";

let vendor: TestVendor;
let test: TestHost;

beforeEach(async () => {
  vendor = await TestVendor.start();
  test = testHost(vendor, testAdapter(), { verdictCountMin: 3 });
});
afterEach(async () => {
  await test.close();
  vendor.stop();
});

function fail(method: string, code: number, count: number): void {
  for (let i = 0; i < count; i += 1) {
    vendor.faults.push({ method, when: "before", effect: status(code) });
  }
}

describe("a vendor that fails", () => {
  it("is left alone after some failures, with nothing applied and a time to come back", async () => {
    fail("GET", 500, 3);
    for (let i = 0; i < 3; i += 1) {
      assert.equal((await failure(test.ask.ensure())).reason, "VENDOR_ERROR");
    }
    const error = await failure(test.ask.ensure());
    assert.equal(error.reason, "CIRCUIT_OPEN");
    assert.equal(error.code, "UNAVAILABLE");
    assert.equal(error.outcome, "NOT_APPLIED");
    assert.ok((error.facts.retryAfterMs ?? 0) > 0);
    assert.equal((await failure(test.ask.delete())).reason, "CIRCUIT_OPEN");
    assert.equal(vendor.requests.length, 3);
  });

  it("with one account is none with another", async () => {
    fail("GET", 500, 3);
    for (let i = 0; i < 3; i += 1) await failure(test.ask.ensure());
    const other = await test.ask.ensure({ target: { endpoint, account: "other" } });
    assert.equal(other.change, Change.CREATED);
  });

  it("at changes can still be read", async () => {
    fail("POST", 500, 3);
    for (let i = 0; i < 3; i += 1) {
      const instanceKey = `fleet/ns/name-${i}`;
      assert.equal((await failure(test.ask.ensure({ instanceKey }))).outcome, "UNKNOWN");
    }
    assert.equal((await failure(test.ask.ensure())).reason, "CIRCUIT_OPEN");
    assert.equal((await failure(test.ask.describe())).reason, "NOT_FOUND");
  });
});

describe("a bad credential", () => {
  it("opens nothing, however often it is refused", async () => {
    fail("GET", 401, 20);
    for (let i = 0; i < 20; i += 1) {
      assert.equal((await failure(test.ask.ensure())).reason, "BAD_CREDENTIAL");
    }
    assert.equal((await test.ask.ensure()).change, Change.CREATED);
  });
});
