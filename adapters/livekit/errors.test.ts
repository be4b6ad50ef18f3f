import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { Reason } from "../../services/contract/provider-error.ts";
import { classifyTwirp } from "./errors.ts";

const rows: readonly (readonly [number, unknown, Reason | undefined])[] = [
  [200, { rooms: [] }, undefined],
  [404, { code: "not_found", msg: "room" }, "NOT_FOUND"],
  [404, { code: "bad_route", msg: "no handler" }, "VENDOR_UNREADABLE"],
  [404, undefined, "VENDOR_UNREADABLE"],
  [404, {}, "VENDOR_UNREADABLE"],
  [401, { code: "unauthenticated", msg: "invalid token" }, "BAD_CREDENTIAL"],
  [401, undefined, "BAD_CREDENTIAL"],
  [403, { code: "permission_denied", msg: "" }, "MISSING_SCOPE"],
  [400, { code: "invalid_argument", msg: "name" }, "INVALID_FIELD"],
  [400, undefined, "VENDOR_UNREADABLE"],
  [429, { code: "resource_exhausted", msg: "" }, "THROTTLED"],
  [429, undefined, "THROTTLED"],
  [409, { code: "aborted", msg: "" }, "BUSY"],
  [412, { code: "failed_precondition", msg: "" }, "BUSY"],
  [500, { code: "internal", msg: "" }, "VENDOR_ERROR"],
  [500, { code: "never seen", msg: "" }, "VENDOR_ERROR"],
  [502, undefined, "VENDOR_ERROR"],
  [503, { code: "unavailable", msg: "" }, "VENDOR_ERROR"],
];

describe("LiveKit's answer", () => {
  for (const [status, json, reason] of rows) {
    it(`${status} ${JSON.stringify(json)} means ${reason ?? "success"}`, () => {
      const response = { status, json, text: "", headers: {}, retryAfterMs: undefined };
      assert.equal(classifyTwirp(response)?.reason, reason);
    });
  }
});
