import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { FakeClock } from "../services/process/fake-clock.ts";
import { refused } from "./kubernetes/fake-lease.ts";
import type { ApiErrorKind } from "./kubernetes/api-error.ts";
import type { ApiRequest } from "./kubernetes/connection.ts";
import { WriteHealth } from "./write-health.ts";

describe("write health", () => {
  let clock: FakeClock;
  let health: WriteHealth;
  let failure: ApiErrorKind | undefined;

  beforeEach(() => {
    clock = new FakeClock();
    health = new WriteHealth(clock);
    failure = undefined;
  });

  async function send(method: ApiRequest["method"] = "PATCH"): Promise<void> {
    const connection = health.watch({
      request: async () => {
        if (failure !== undefined) throw refused(failure);
        return {};
      },
    });
    await connection.request({ method, path: "/a", timeoutMs: 1_000 }).catch(() => undefined);
  }

  test("writes that all fail for half a minute are an obstacle that says why", async () => {
    failure = "forbidden";
    await send();
    await clock.advance(29_999);
    await send();
    assert.equal(health.obstacle(), undefined);
    await clock.advance(1);
    assert.match(health.obstacle() ?? "", /forbidden/);
  });

  test("one write that succeeds takes it away, a read does not", async () => {
    failure = "server";
    await send();
    await clock.advance(31_000);
    failure = undefined;
    await send("GET");
    assert.ok(health.obstacle());
    await send();
    assert.equal(health.obstacle(), undefined);
  });

  test("what the API server says of one object's write is no obstacle", async () => {
    for (failure of ["conflict", "invalid", "not-found", "aborted"] as const) {
      await send();
      await clock.advance(60_000);
      assert.equal(health.obstacle(), undefined);
    }
  });

  test("after a term in which writes failed others get time, then it may lead again", async () => {
    failure = "timeout";
    await send();
    await clock.advance(31_000);
    health.termEnded();
    await clock.advance(29_000);
    assert.ok(health.obstacle());
    await clock.advance(1_000);
    assert.equal(health.obstacle(), undefined);
  });

  test("a term that ends for another reason leaves nothing behind", async () => {
    failure = "network";
    await send();
    health.termEnded();
    await clock.advance(60_000);
    assert.equal(health.obstacle(), undefined);
  });
});
