import assert from "node:assert/strict";
import { test } from "node:test";

import { OwnWrites } from "./own-writes.ts";

/** A cache as far as own writes look at it. */
function cacheAt(resourceVersion: string | undefined): {
  resourceVersion: string | undefined;
  epoch: number;
  versions: Map<string, string>;
  versionOf(key: string): string | undefined;
} {
  const versions = new Map<string, string>();
  return { resourceVersion, epoch: 0, versions, versionOf: (key) => versions.get(key) };
}

test("a key without writes counts as seen", () => {
  assert.ok(new OwnWrites(cacheAt(undefined)).hasSeen("a"));
});

test("after a write the key is unseen until the cache has that version", () => {
  const cache = cacheAt("100");
  const writes = new OwnWrites(cache);
  writes.record("a", "105");
  assert.ok(!writes.hasSeen("a"));
  assert.ok(writes.hasSeen("b"));
  cache.versions.set("a", "104");
  assert.ok(!writes.hasSeen("a"));
  cache.versions.set("a", "105");
  assert.ok(writes.hasSeen("a"));
  assert.equal(writes.size, 0);
});

test("a newer version of the object, by whomever, ends it", () => {
  const cache = cacheAt("100");
  const writes = new OwnWrites(cache);
  writes.record("a", "105");
  cache.versions.set("a", "110");
  assert.ok(writes.hasSeen("a"));
});

test("a deletion, bookmark or list past the write ends it", () => {
  const cache = cacheAt("100");
  const writes = new OwnWrites(cache);
  writes.record("a", "105");
  cache.resourceVersion = "104";
  assert.ok(!writes.hasSeen("a"));
  cache.resourceVersion = "105";
  assert.ok(writes.hasSeen("a"));
});

test("after a write that ended the object the key is unseen while the cache still shows it", () => {
  const cache = cacheAt("200");
  const writes = new OwnWrites(cache);
  cache.versions.set("a", "105");
  writes.recordEnd("a", "105");
  assert.ok(!writes.hasSeen("a"));
  cache.versions.delete("a");
  assert.ok(writes.hasSeen("a"));
  assert.equal(writes.size, 0);
});

test("a successor of the same name is no object that was ended", () => {
  const cache = cacheAt("200");
  const writes = new OwnWrites(cache);
  cache.versions.set("a", "105");
  writes.recordEnd("a", "105");
  cache.versions.set("a", "220");
  assert.ok(writes.hasSeen("a"));
});

test("of several writes the newest counts, in whatever order they are recorded", () => {
  const cache = cacheAt("100");
  const writes = new OwnWrites(cache);
  writes.record("a", "107");
  writes.record("a", "105");
  cache.resourceVersion = "106";
  assert.ok(!writes.hasSeen("a"));
  cache.resourceVersion = "107";
  assert.ok(writes.hasSeen("a"));
});

test("a key that has seen its write is unseen again after the next", () => {
  const cache = cacheAt("100");
  const writes = new OwnWrites(cache);
  writes.record("a", "100");
  assert.ok(writes.hasSeen("a"));
  writes.record("a", "101");
  assert.ok(!writes.hasSeen("a"));
});

test("writes from before the server's versions were set back are not waited for", () => {
  const cache = cacheAt("9000");
  const writes = new OwnWrites(cache);
  writes.record("a", "9001");
  cache.epoch = 1;
  cache.resourceVersion = "500";
  assert.ok(writes.hasSeen("a"));
});

test("an empty cache has seen nothing", () => {
  const writes = new OwnWrites(cacheAt(undefined));
  writes.record("a", "1");
  assert.ok(!writes.hasSeen("a"));
});

test("writes to keys that nobody asks for again are not collected", () => {
  const cache = cacheAt("0");
  const writes = new OwnWrites(cache);
  for (let version = 1; version <= 50_000; version += 1) {
    writes.record(`key-${version}`, String(version));
    cache.resourceVersion = String(version - 10);
  }
  assert.ok(writes.size <= 1_024, `${writes.size} kept`);
});
