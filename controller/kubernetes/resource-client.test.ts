import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { isApiError } from "./api-error.ts";
import type { ApiRequest } from "./connection.ts";
import type { RawObject } from "./raw-object.ts";
import { collectionPath, ResourceClient } from "./resource-client.ts";

const type = { group: "example.com", version: "v1", plural: "widgets", isNamespaced: true };
const metadata = { name: "a", namespace: "ns", uid: "u", resourceVersion: "7" };

describe("resource client", () => {
  let requests: ApiRequest[];
  let answer: unknown;
  let client: ResourceClient<RawObject>;

  beforeEach(() => {
    requests = [];
    answer = { metadata };
    client = new ResourceClient({
      connection: {
        request: async (request) => {
          requests.push(request);
          return answer;
        },
      },
      type,
      parse: (raw) => raw,
      timeoutMs: 5_000,
    });
  });

  test("a patch carries the difference and the version it was computed from", async () => {
    const before = { metadata, spec: { a: 1, b: 2 } };
    const result = await client.patch(before, { metadata, spec: { a: 1, b: 3 } });
    assert.equal(result.isSent, true);
    const [request] = requests;
    assert.equal(request?.method, "PATCH");
    assert.equal(request?.path, "/apis/example.com/v1/namespaces/ns/widgets/a");
    assert.equal(request?.contentType, "application/merge-patch+json");
    assert.deepEqual(request?.body, { metadata: { resourceVersion: "7" }, spec: { b: 3 } });
  });

  test("finalizers and annotations go in one patch", async () => {
    const before = { metadata };
    const after = {
      metadata: { ...metadata, finalizers: ["example.com/x"], annotations: { note: "n" } },
    };
    await client.patch(before, after);
    assert.deepEqual(requests[0]?.body, {
      metadata: { finalizers: ["example.com/x"], annotations: { note: "n" }, resourceVersion: "7" },
    });
  });

  test("no difference sends nothing and answers the object itself", async () => {
    const before = { metadata, status: { phase: "x" } };
    assert.deepEqual(await client.patch(before, structuredClone(before)), {
      isSent: false,
      object: before,
    });
    assert.equal((await client.patchStatus(before, structuredClone(before))).isSent, false);
    assert.deepEqual(requests, []);
  });

  test("a status patch goes to the status subresource with status alone", async () => {
    const before = { metadata, spec: { a: 1 }, status: { phase: "old", kept: true } };
    await client.patchStatus(before, { ...before, status: { phase: "new", kept: true } });
    assert.equal(requests[0]?.path, "/apis/example.com/v1/namespaces/ns/widgets/a/status");
    assert.deepEqual(requests[0]?.body, {
      metadata: { resourceVersion: "7" },
      status: { phase: "new" },
    });
  });

  test("a status patch that would touch the spec is refused", async () => {
    const before = { metadata, spec: { a: 1 }, status: {} };
    await assert.rejects(
      client.patchStatus(before, { ...before, spec: { a: 2 }, status: { b: 1 } }),
      /differs outside status/,
    );
    assert.deepEqual(requests, []);
  });

  test("a delete names the incarnation it means", async () => {
    await client.delete({ metadata });
    assert.equal(requests[0]?.method, "DELETE");
    assert.deepEqual(requests[0]?.body, {
      apiVersion: "v1",
      kind: "DeleteOptions",
      preconditions: { uid: "u" },
    });
  });

  test("a live read goes to the server by key", async () => {
    await client.get("ns/a");
    assert.equal(requests[0]?.path, "/apis/example.com/v1/namespaces/ns/widgets/a");
    assert.equal(requests[0]?.query, undefined);
  });

  test("an object is created in its own namespace", async () => {
    await client.create({ metadata: { name: "a", namespace: "ns" } });
    assert.equal(requests[0]?.path, "/apis/example.com/v1/namespaces/ns/widgets");
    assert.equal(requests[0]?.method, "POST");
  });

  test("an answer that cannot be read is an ApiError", async () => {
    answer = "text";
    await assert.rejects(client.get("ns/a"), (error) => isApiError(error, "unreadable"));
  });
});

test("collection paths of core and other groups, of one namespace and all", () => {
  const core = { group: "", version: "v1", plural: "configmaps", isNamespaced: true };
  assert.equal(collectionPath(core), "/api/v1/configmaps");
  assert.equal(collectionPath(core, "ns"), "/api/v1/namespaces/ns/configmaps");
  assert.equal(collectionPath(type), "/apis/example.com/v1/widgets");
});
