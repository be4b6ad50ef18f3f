import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { FakeClock } from "../../services/process/fake-clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { ApiAccessCache } from "./api-access-cache.ts";
import { createTestAuthority } from "./fake-certificates.ts";
import type { ApiAccess } from "./kube-config.ts";

describe("API access cache", () => {
  let clock: FakeClock;
  let reads: boolean[];
  let read: () => Promise<ApiAccess>;
  let cache: ApiAccessCache;

  beforeEach(() => {
    clock = new FakeClock();
    reads = [];
    read = async () => access("one");
    const source = {
      read: (isForced: boolean) => {
        reads.push(isForced);
        return read();
      },
    };
    cache = new ApiAccessCache({ source, clock, log: silentLog, refreshMs: 10_000 });
  });

  test("access is read once until it is old", async () => {
    const first = await cache.current();
    await clock.advance(9_999);
    assert.equal(await cache.current(), first);
    assert.equal(reads.length, 1);
    await clock.advance(1);
    assert.equal(await cache.current(), first);
    assert.equal(reads.length, 2);
  });

  test("what changed is answered after a refresh", async () => {
    await cache.current();
    read = async () => access("two");
    await clock.advance(10_000);
    assert.equal((await cache.current()).headers["authorization"], "Bearer two");
  });

  test("many refusals of one access read once, by force", async () => {
    const refused = await cache.current();
    read = async () => access("two");
    const fresh = await Promise.all([1, 2, 3].map(() => cache.afterRefusal(refused)));
    assert.deepEqual(new Set(fresh.map(({ headers }) => headers["authorization"])).size, 1);
    assert.deepEqual(reads, [false, true]);
    await cache.afterRefusal(refused);
    assert.deepEqual(reads, [false, true]);
  });

  test("a refusal during an ordinary read forces one of its own", async () => {
    const refused = await cache.current();
    await clock.advance(10_000);
    const gate = Promise.withResolvers<void>();
    read = async () => {
      await gate.promise;
      return access("one");
    };
    const ordinary = cache.current();
    const forced = cache.afterRefusal(refused);
    gate.resolve();
    await Promise.all([ordinary, forced]);
    assert.deepEqual(reads, [false, false, true]);
  });

  test("unreadable access is an error at first, and skipped for the last one later", async () => {
    const good = read;
    read = async () => {
      throw new Error("no such file");
    };
    await assert.rejects(cache.current(), /no such file/);
    read = good;
    const first = await cache.current();
    read = async () => {
      throw new Error("no such file");
    };
    await clock.advance(10_000);
    assert.equal(await cache.current(), first);
  });

  test("a certificate whose key has not been replaced yet is skipped", async () => {
    const authority = await createTestAuthority();
    const [old, next] = [await authority.issue("old"), await authority.issue("next")];
    read = async () => access("one", { cert: old.cert, key: old.key });
    await cache.current();
    read = async () => access("one", { cert: next.cert, key: old.key });
    await clock.advance(10_000);
    assert.equal((await cache.current()).tls.cert, old.cert);
    read = async () => access("one", { cert: next.cert, key: next.key });
    await clock.advance(10_000);
    assert.equal((await cache.current()).tls.cert, next.cert);
  });
});

function access(token: string, tls: Partial<ApiAccess["tls"]> = {}): ApiAccess {
  return {
    serverUrl: "https://127.0.0.1:1",
    headers: { authorization: `Bearer ${token}` },
    tls: {
      ca: undefined,
      cert: undefined,
      key: undefined,
      servername: undefined,
      isServerVerified: true,
      ...tls,
    },
  };
}
