/** When a 404 is believed, and what makes a realm; the rest is the conformance suite's. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { FoundInstance, VendorCall } from "../../services/adapter-host/adapter.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { VendorResponse } from "../../services/vendor-http/vendor-http.ts";
import { anamAdapter } from "./adapter.ts";
import { classifyAnam } from "./errors.ts";

const id = "d0000000-0000-4000-8000-000000000001";
const found: FoundInstance = {
  id,
  state: "READY",
  parameters: {},
  availability: "AVAILABLE",
  createdAtMs: 0,
};
const meta = { total: 0, lastPage: 1, currentPage: 1, perPage: 1, prev: null, next: null };
const list: Reply = [200, { data: [], meta }];
const gone: Reply = [404, { message: "Not Found" }];

type Reply = readonly [number, unknown];

/** A call to an Anam that answers so; by "METHOD path". */
function callTo(replies: Readonly<Record<string, Reply>>): VendorCall {
  return {
    target: { endpoint: "https://api.anam.ai", region: "", account: "default" },
    credential: { apiKey: "a-key", organization: "ours" },
    signal: new AbortController().signal,
    http: {
      async send({ method, path }): Promise<VendorResponse> {
        const [status, json] = replies[`${method} ${path}`] ?? gone;
        const response = { status, json, text: "", headers: {}, retryAfterMs: undefined };
        const error = classifyAnam(response);
        if (error !== undefined) throw error;
        return response;
      },
    },
  };
}

function fails(reason: string): (error: unknown) => boolean {
  return (error) => error instanceof ProviderError && error.reason === reason;
}

describe("a 404", () => {
  const one = `/v1/personas/${id}`;

  it("for a persona is its absence where the list answers at the same base", async () => {
    const call = callTo({ "GET /v1/personas": list });
    assert.equal(await anamAdapter.read(call, id), undefined);
    assert.equal(await anamAdapter.delete(call, found), "absent");
  });

  it("for everything is a wrong path, and no absence", async () => {
    await assert.rejects(anamAdapter.read(callTo({}), id), fails("VENDOR_UNREADABLE"));
    await assert.rejects(anamAdapter.delete(callTo({}), found), fails("VENDOR_UNREADABLE"));
    await assert.rejects(anamAdapter.list(callTo({}), undefined), fails("VENDOR_UNREADABLE"));
  });

  it("for a persona is no absence where the list answers something else than Anam does", async () => {
    for (const other of [
      [200, {}],
      [200, []],
      [200, { data: [] }],
    ] as const) {
      const call = callTo({ "GET /v1/personas": other });
      await assert.rejects(anamAdapter.read(call, id), fails("VENDOR_UNREADABLE"));
    }
    const refused = callTo({ "GET /v1/personas": [401, {}] });
    await assert.rejects(anamAdapter.read(refused, id), fails("BAD_CREDENTIAL"));
  });

  it("to a removal is none while the persona is there, and what it came to is not known", async () => {
    const call = callTo({ [`GET ${one}`]: [200, { id }], "GET /v1/personas": list });
    await assert.rejects(
      anamAdapter.delete(call, found),
      (error) =>
        error instanceof ProviderError &&
        error.reason === "VENDOR_UNREADABLE" &&
        error.outcome === "UNKNOWN",
    );
  });
});

describe("a realm", () => {
  const realm = (credential: VendorCall["credential"]): Promise<string> =>
    anamAdapter.realm({ ...callTo({}), credential });

  it("is the organization, whichever key and account lead to it", async () => {
    assert.equal(await realm({ apiKey: "one", organization: "ours" }), "anam:ours");
    assert.equal(await realm({ apiKey: "two", organization: "ours" }), "anam:ours");
  });

  it("cannot be told without one, nor from an odd one", async () => {
    for (const organization of ["", " ours", "a/b", "x".repeat(64)]) {
      await assert.rejects(realm({ apiKey: "one", organization }), fails("BAD_CREDENTIAL"));
    }
    await assert.rejects(realm({ apiKey: "one" }), fails("BAD_CREDENTIAL"));
  });
});

it("another persona than was asked for, or another page, is unreadable", async () => {
  const other = "d0000000-0000-4000-8000-000000000002";
  const call = callTo({
    [`GET /v1/personas/${id}`]: [200, { id: other }],
    "GET /v1/personas": list,
  });
  await assert.rejects(anamAdapter.read(call, id), fails("VENDOR_UNREADABLE"));
  await assert.rejects(anamAdapter.list(call, "2"), fails("VENDOR_UNREADABLE"));
});
