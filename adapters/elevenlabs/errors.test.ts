/** Bodies as the vendor, its framework, and proxies before it write them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { Reason } from "../../services/contract/provider-error.ts";
import { classifyElevenLabs } from "./errors.ts";

interface Row {
  readonly what: string;
  readonly status: number;
  readonly json?: unknown;
  readonly reason: Reason;
  readonly paths?: readonly string[];
}

const detail = (fields: object): object => ({ detail: fields });
const listed = (...loc: unknown[]): object => ({
  detail: [{ loc, msg: "no", type: "value_error" }],
});

const rows: readonly Row[] = [
  { what: "wrong path", status: 404, json: { detail: "Not Found" }, reason: "VENDOR_UNREADABLE" },
  { what: "404 without a body", status: 404, reason: "VENDOR_UNREADABLE" },
  {
    what: "404, a word of its own",
    status: 404,
    json: detail({ status: "gone" }),
    reason: "VENDOR_UNREADABLE",
  },
  {
    what: "404 by type alone",
    status: 404,
    json: detail({ type: "not_found" }),
    reason: "NOT_FOUND",
  },
  {
    what: "400 of a missing agent",
    status: 400,
    json: detail({ status: "agent_not_found" }),
    reason: "NOT_FOUND",
  },
  {
    what: "the second word names what is missing",
    status: 404,
    json: detail({ code: "odd", status: "voice_not_found", type: "not_found" }),
    reason: "INVALID_FIELD",
    paths: ["parameters.voiceId"],
  },
  {
    what: "something else is missing, whatever it is",
    status: 404,
    json: detail({ status: "workspace_not_found", type: "not_found" }),
    reason: "INVALID_FIELD",
    paths: ["parameters"],
  },
  {
    what: "a missing agent under a 500",
    status: 500,
    json: detail({ status: "agent_not_found" }),
    reason: "VENDOR_ERROR",
  },
  { what: "401 of nobody we know", status: 401, reason: "BAD_CREDENTIAL" },
  { what: "403 of nobody we know", status: 403, reason: "MISSING_SCOPE" },
  { what: "429 of a proxy", status: 429, reason: "THROTTLED" },
  {
    what: "quota under another status",
    status: 403,
    json: detail({ status: "quota_exceeded" }),
    reason: "QUOTA_EXHAUSTED",
  },
  {
    what: "402 by its code",
    status: 402,
    json: detail({ code: "paid_plan_required" }),
    reason: "BILLING_STOPPED",
  },
  { what: "405", status: 405, json: { detail: "Method Not Allowed" }, reason: "VENDOR_UNREADABLE" },
  { what: "409 without a detail", status: 409, reason: "VENDOR_UNREADABLE" },
  {
    what: "400 with an unknown word",
    status: 400,
    json: detail({ status: "new_word" }),
    reason: "INVALID_FIELD",
    paths: ["parameters"],
  },
  {
    what: "422 of tags",
    status: 422,
    json: listed("body", "tags", 1),
    reason: "INVALID_FIELD",
    paths: ["tags"],
  },
  {
    what: "422 of the name",
    status: 422,
    json: listed("body", "name"),
    reason: "INVALID_FIELD",
    paths: ["displayName"],
  },
  {
    what: "422 of a quota",
    status: 422,
    json: listed("body", "platform_settings", "call_limits", "daily_limit"),
    reason: "INVALID_FIELD",
    paths: ["quota.dailyCalls"],
  },
  {
    what: "422 of what we do not write",
    status: 422,
    json: listed("body", "workflow", 0),
    reason: "INVALID_FIELD",
    paths: ["parameters (workflow.0)"],
  },
  { what: "422 of nothing", status: 422, json: { detail: [] }, reason: "INVALID_FIELD", paths: [] },
  {
    what: "422 in no known form",
    status: 422,
    json: { detail: [3] },
    reason: "INVALID_FIELD",
    paths: ["parameters"],
  },
  { what: "a list under a 500", status: 500, json: { detail: [] }, reason: "VENDOR_ERROR" },
  { what: "503 in HTML", status: 503, reason: "VENDOR_ERROR" },
  { what: "408", status: 408, reason: "VENDOR_TIMEOUT" },
  { what: "a body that is a list", status: 500, json: [], reason: "VENDOR_ERROR" },
  { what: "null for a detail", status: 400, json: { detail: null }, reason: "VENDOR_UNREADABLE" },
  {
    what: "a word from an object's prototype",
    status: 400,
    json: detail({ status: "constructor" }),
    reason: "INVALID_FIELD",
  },
];

function answer(status: number, json?: unknown): Parameters<typeof classifyElevenLabs>[0] {
  return { status, json, headers: {}, text: "", retryAfterMs: undefined };
}

describe("the table of errors", () => {
  for (const { what, status, json, reason, paths } of rows) {
    it(`${what} is ${reason}`, () => {
      const error = classifyElevenLabs(answer(status, json));
      assert.equal(error?.reason, reason);
      if (paths === undefined) return;
      assert.deepEqual(
        error?.facts.fields?.map(({ path }) => path),
        paths,
      );
    });
  }

  it("says nothing of a success", () => {
    assert.equal(
      classifyElevenLabs(answer(200, { detail: { status: "quota_exceeded" } })),
      undefined,
    );
    assert.equal(classifyElevenLabs(answer(204)), undefined);
  });

  it("keeps its words short", () => {
    const json = detail({ status: "odd", message: "x".repeat(10_000) });
    assert.ok((classifyElevenLabs(answer(500, json))?.message.length ?? 1_000) <= 300);
  });
});
