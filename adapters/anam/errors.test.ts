import assert from "node:assert/strict";
import { describe, it, test } from "node:test";

import type { Reason } from "../../services/contract/provider-error.ts";
import type { VendorResponse } from "../../services/vendor-http/vendor-http.ts";
import { classifyAnam } from "./errors.ts";

function response(status: number, own: Partial<VendorResponse> = {}): VendorResponse {
  return { status, json: undefined, text: "", headers: {}, retryAfterMs: undefined, ...own };
}

const rows: readonly (readonly [number, Reason | undefined])[] = [
  [200, undefined],
  [201, undefined],
  [400, "INVALID_FIELD"],
  [401, "BAD_CREDENTIAL"],
  [403, "MISSING_SCOPE"],
  [404, "NOT_FOUND"],
  [405, "VENDOR_UNREADABLE"],
  [409, "VENDOR_UNREADABLE"],
  [429, "THROTTLED"],
  [500, "VENDOR_ERROR"],
  [502, "VENDOR_ERROR"],
];

describe("Anam's answer", () => {
  for (const [status, reason] of rows) {
    it(`${status} means ${reason ?? "success"}, whatever its body holds`, () => {
      for (const json of [undefined, {}, [], { message: "x" }, { error: { message: "x" } }]) {
        assert.equal(classifyAnam(response(status, { json }))?.reason, reason);
      }
    });
  }
});

test("a text is found in JSON and in plain text, and a page of a proxy is left out", () => {
  const text = "Bad request - Invalid persona data";
  const bodies: readonly Partial<VendorResponse>[] = [
    { json: { message: text } },
    { json: { error: text } },
    { json: { error: { message: text } } },
    { text, headers: { "content-type": "text/plain" } },
  ];
  for (const body of bodies) {
    assert.equal(classifyAnam(response(400, body))?.message, `status 400: ${text}`);
  }
  const page = { text: "<html>busy</html>", headers: { "content-type": "text/html" } };
  assert.equal(classifyAnam(response(502, page))?.message, "status 502");
});

test("a text that names fields of a persona blames them by their paths in spec", () => {
  const json = { message: "avatarModel is not supported by avatarId" };
  const paths = classifyAnam(response(400, { json }))?.facts.fields?.map(({ path }) => path);
  assert.deepEqual(paths, ["parameters.avatarId", "parameters.avatarModel"]);
});

test("a message is short however long the text is", () => {
  const message = classifyAnam(response(500, { json: { message: "x".repeat(100_000) } }))?.message;
  assert.ok(message !== undefined && message.length <= 300);
});
