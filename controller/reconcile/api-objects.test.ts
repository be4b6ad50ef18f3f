import assert from "node:assert/strict";
import { test } from "node:test";

import { ApiError } from "../kubernetes/api-error.ts";
import { mergePatch } from "../kubernetes/merge-patch.ts";
import type { RawObject } from "../kubernetes/raw-object.ts";
import { objectWith } from "../resource/object-fixture.ts";
import { ApiObjects } from "./api-objects.ts";

const cleanup = "dhp.example.com/provider-cleanup";

/** The API server's end: what was sent, and what it answers. */
class Server {
  readonly sent: object[] = [];
  readonly written: string[] = [];
  readonly recorded: string[] = [];
  readonly ended: string[] = [];
  live: RawObject | ApiError = new ApiError({
    kind: "not-found",
    status: 404,
    reason: "NotFound",
    message: "not found",
  });
  readonly objects = new ApiObjects({
    watch: { get: () => objectWith({}).raw },
    classes: () => [],
    protectClass: async () => "protected",
    client: {
      get: async () => {
        if (this.live instanceof ApiError) throw this.live;
        return this.live;
      },
      patch: async (before, after) => this.#patch(before, after),
      patchStatus: async (before, after) => this.#patch(before, after),
    },
    ownWrites: {
      record: (key, resourceVersion) => this.recorded.push(`${key} ${resourceVersion}`),
      recordEnd: (key, lastVersion) => this.ended.push(`${key} ${lastVersion}`),
      hasSeen: () => this.recorded.length === 0,
    },
    onEvent: () => undefined,
    onWrite: (what) => this.written.push(what),
  });

  #patch(before: RawObject, after: RawObject) {
    const difference = mergePatch(before, after);
    if (difference === undefined) return { isSent: false, object: before };
    this.sent.push(difference);
    const metadata = { ...objectMetadata(after), resourceVersion: "8" };
    return { isSent: true, object: { ...after, metadata } };
  }
}

function objectMetadata(raw: RawObject): object {
  const { metadata } = raw;
  return typeof metadata === "object" && metadata !== null ? metadata : {};
}

test("finalizer and annotation go in one patch, and nothing else with them", async () => {
  const server = new Server();
  const object = objectWith({ metadata: { annotations: { "example.com/a": "1" } } });
  const written = await server.objects.patchMetadata(object, {
    finalizers: [cleanup],
    annotations: { "dhp.example.com/first-placement": "{}" },
  });
  assert.deepEqual(server.sent, [
    {
      metadata: {
        finalizers: [cleanup],
        annotations: { "dhp.example.com/first-placement": "{}" },
      },
    },
  ]);
  assert.deepEqual(written?.finalizers, [cleanup]);
  assert.equal(written.annotations["example.com/a"], "1");
});

test("an annotation is removed by null", async () => {
  const server = new Server();
  const object = objectWith({ metadata: { annotations: { "example.com/a": "1" } } });
  await server.objects.patchMetadata(object, { annotations: { "example.com/a": null } });
  assert.deepEqual(server.sent, [{ metadata: { annotations: { "example.com/a": null } } }]);
});

test("the last finalizer off a deleted object leaves no object, and others' leave it", async () => {
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  const last = objectWith({ metadata: { finalizers: [cleanup], deletionTimestamp } });
  assert.equal(await new Server().objects.patchMetadata(last, { finalizers: [] }), undefined);
  const kept = await new Server().objects.patchMetadata(last, { finalizers: ["example.com/x"] });
  assert.deepEqual(kept?.finalizers, ["example.com/x"]);
});

test("the end of an object is waited for by the version that the write was bound to", async () => {
  const metadata = { finalizers: [cleanup], deletionTimestamp: "2026-01-01T00:00:00Z" };
  const last = objectWith({ metadata });
  const server = new Server();
  await server.objects.patchMetadata(last, { finalizers: ["example.com/x"] });
  assert.deepEqual(server.ended, [], "others' finalizers keep it");
  await server.objects.patchMetadata(last, { finalizers: [] });
  assert.deepEqual(server.ended, [`${last.key} ${last.resourceVersion}`]);
});

test("a write that was sent is counted and waited for, and one that differs in nothing is neither", async () => {
  const server = new Server();
  const object = objectWith({ status: { providerID: "i-1" } });
  assert.equal(await server.objects.patchStatus(object, object.rawStatus), object);
  assert.deepEqual([server.sent, server.written, server.recorded], [[], [], []]);
  assert.equal(server.objects.hasSeenOwnWrite(object.key), true);

  const written = await server.objects.patchStatus(object, { providerID: "i-2" });
  assert.equal(written.status.providerID, "i-2");
  assert.deepEqual(server.sent, [{ status: { providerID: "i-2" } }]);
  assert.deepEqual(server.written, ["status"]);
  assert.deepEqual(server.recorded, ["media/one 8"]);
  assert.equal(server.objects.hasSeenOwnWrite(object.key), false);
});

test("a live read of what is gone is no error, and any other failure is one", async () => {
  const server = new Server();
  assert.equal(await server.objects.readLive("media/one"), undefined);
  server.live = objectWith({ metadata: { resourceVersion: "9" } }).raw;
  assert.equal((await server.objects.readLive("media/one"))?.resourceVersion, "9");
  server.live = new ApiError({ kind: "timeout", status: 504, reason: "", message: "late" });
  await assert.rejects(server.objects.readLive("media/one"), { kind: "timeout" });
});
