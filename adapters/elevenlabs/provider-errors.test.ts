/** The contract's table of errors, row by row, from the vendor's bytes over HTTPS to ProviderError. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";

import type {
  Code,
  MutationEffect,
  ProviderError,
  ProviderErrorFacts,
  Reason,
} from "../../services/contract/provider-error.ts";
import { failure } from "../../services/adapter-host/test-host.ts";
import type { Asker } from "../../services/adapter-host/test-host.ts";
import { Bench, target } from "./test-bench.ts";
import type { ScriptStep } from "./test-bench.ts";

const createPath = "^/v1/convai/agents/create$";
const listPath = "^/v1/convai/agents$";

let bench: Bench;
let key = "";
let keyCount = 0;

before(async () => {
  bench = await Bench.start();
});
after(() => bench.stop());
beforeEach(async () => {
  keyCount += 1;
  key = `fleet/ns/name-${keyCount}`;
  await bench.script({ do: "clear-faults" });
});

/** Requests with this test's key. */
class Asking {
  readonly #ask: Asker;

  constructor(ask: Asker) {
    this.#ask = ask;
  }

  ensure(own: object = {}): ReturnType<Asker["ensure"]> {
    return this.#ask.ensure({ instanceKey: key, target: target(), spec: {}, ...own });
  }

  describe(own: object = {}): ReturnType<Asker["describe"]> {
    return this.#ask.describe({ instanceKey: key, target: target(), ...own });
  }

  delete(own: object = {}): ReturnType<Asker["delete"]> {
    return this.#ask.delete({ instanceKey: key, target: target(), ...own });
  }

  list(): ReturnType<Asker["list"]> {
    return this.#ask.list({ target: target() });
  }
}

interface Expected {
  readonly reason: Reason;
  readonly code: Code;
  readonly outcome?: MutationEffect;
  readonly facts?: Partial<ProviderErrorFacts>;
  /** Paths of refused fields. */
  readonly paths?: readonly string[];
}

function assertError(error: ProviderError, expected: Expected): void {
  assert.equal(error.reason, expected.reason, error.message);
  assert.equal(error.code, expected.code);
  if (expected.outcome !== undefined) assert.equal(error.facts.outcome, expected.outcome);
  for (const [name, value] of Object.entries(expected.facts ?? {})) {
    assert.deepEqual(Reflect.get(error.facts, name), value, name);
  }
  if (expected.paths !== undefined) {
    assert.deepEqual(
      error.facts.fields?.map(({ path }) => path),
      expected.paths,
    );
  }
}

interface Row {
  readonly vendorSays: string;
  readonly script?: readonly ScriptStep[];
  readonly call: (asking: Asking) => Promise<unknown>;
  readonly expected: Expected;
}

/** A fault at the create of an Ensure. */
function atCreate(effect: object, own: object = {}): readonly ScriptStep[] {
  return [{ do: "fault", method: "POST", path: createPath, effect, ...own }];
}

function atList(effect: object): readonly ScriptStep[] {
  return [{ do: "fault", method: "GET", path: listPath, effect }];
}

const ensure = (asking: Asking): Promise<unknown> => asking.ensure();
const error = (name: string, headers: object = {}): object => ({ kind: "error", name, headers });

const refusals: readonly Row[] = [
  {
    vendorSays: "422, a language it does not know",
    call: (asking) => asking.ensure({ spec: { parameters: { language: "zzz" } } }),
    expected: {
      reason: "INVALID_FIELD",
      code: "INVALID_ARGUMENT",
      outcome: "NOT_APPLIED",
      paths: ["parameters.language"],
    },
  },
  {
    vendorSays: "422, two values it does not take",
    call: (asking) =>
      asking.ensure({ spec: { parameters: { language: "zzz", voiceModel: "eleven_none" } } }),
    expected: {
      reason: "INVALID_FIELD",
      code: "INVALID_ARGUMENT",
      paths: ["parameters.language", "parameters.voiceModel"],
    },
  },
  {
    vendorSays: "400, too long a text",
    script: atCreate(error("max_character_limit_exceeded")),
    call: ensure,
    expected: {
      reason: "INVALID_FIELD",
      code: "INVALID_ARGUMENT",
      outcome: "NOT_APPLIED",
      paths: ["parameters"],
    },
  },
  {
    vendorSays: "401 that means a bad key",
    script: atCreate(error("invalid_api_key")),
    call: ensure,
    expected: { reason: "BAD_CREDENTIAL", code: "UNAUTHENTICATED", outcome: "NOT_APPLIED" },
  },
  {
    vendorSays: "401 that means a missing scope",
    script: atCreate(error("missing_permissions")),
    call: ensure,
    expected: { reason: "MISSING_SCOPE", code: "PERMISSION_DENIED", outcome: "NOT_APPLIED" },
  },
  {
    vendorSays: "403, not in this plan",
    script: atCreate(error("only_for_creator+")),
    call: ensure,
    expected: { reason: "MISSING_SCOPE", code: "PERMISSION_DENIED", outcome: "NOT_APPLIED" },
  },
  {
    vendorSays: "401 that means used-up credits",
    script: atCreate(error("quota_exceeded")),
    call: ensure,
    expected: {
      reason: "QUOTA_EXHAUSTED",
      code: "RESOURCE_EXHAUSTED",
      outcome: "NOT_APPLIED",
      facts: { quota: "credits of the account's plan", resetsAtMs: 2_000_000_000_000 },
    },
  },
  {
    vendorSays: "402",
    script: atCreate(error("payment_required")),
    call: ensure,
    expected: { reason: "BILLING_STOPPED", code: "FAILED_PRECONDITION", outcome: "NOT_APPLIED" },
  },
  {
    vendorSays: "429 without a hint",
    script: atCreate(error("too_many_concurrent_requests")),
    call: ensure,
    expected: {
      reason: "THROTTLED",
      code: "RESOURCE_EXHAUSTED",
      outcome: "NOT_APPLIED",
      facts: { quota: "concurrent requests of the account's plan", retryAfterMs: 5_000 },
    },
  },
  {
    vendorSays: "429 with seconds to wait",
    script: atList(error("too_many_concurrent_requests", { "Retry-After": "7" })),
    call: (asking) => asking.describe(),
    expected: {
      reason: "THROTTLED",
      code: "RESOURCE_EXHAUSTED",
      facts: { retryAfterMs: 7_000 },
    },
  },
  {
    vendorSays: "429, it is busy itself",
    script: atCreate(error("system_busy")),
    call: ensure,
    expected: {
      reason: "BUSY",
      code: "ABORTED",
      outcome: "NOT_APPLIED",
      facts: { retryAfterMs: 5_000 },
    },
  },
  {
    vendorSays: "429, it is busy itself, with seconds to wait",
    script: atCreate(error("system_busy", { "Retry-After": "2" })),
    call: ensure,
    expected: { reason: "BUSY", code: "ABORTED", facts: { retryAfterMs: 2_000 } },
  },
  {
    vendorSays: "409",
    script: atCreate(error("conflict")),
    call: ensure,
    expected: { reason: "BUSY", code: "ABORTED", facts: { retryAfterMs: 5_000 } },
  },
];

const broken: Readonly<Record<"unreadable" | "failed", Expected>> = {
  unreadable: { reason: "VENDOR_UNREADABLE", code: "UNAVAILABLE", outcome: "UNKNOWN" },
  failed: { reason: "VENDOR_ERROR", code: "UNAVAILABLE", outcome: "UNKNOWN" },
};
const html = (status: number): object => ({ kind: "answer", status, text: "<html>busy</html>" });
const readError = (reason: Reason): Expected => ({ reason, code: "UNAVAILABLE" });

const faults: readonly Row[] = [
  {
    vendorSays: "500 before it commits",
    script: atCreate(error("internal_error")),
    call: ensure,
    expected: broken.failed,
  },
  {
    vendorSays: "502 in HTML after it has committed",
    script: atCreate(html(502), { isAfter: true }),
    call: ensure,
    expected: broken.failed,
  },
  {
    vendorSays: "200 in HTML",
    script: atCreate(html(200)),
    call: ensure,
    expected: broken.unreadable,
  },
  {
    vendorSays: "200 without an id",
    script: atCreate({ kind: "answer", status: 200, json: {} }),
    call: ensure,
    expected: broken.unreadable,
  },
  {
    vendorSays: "400 in HTML, which no API of it writes",
    script: atCreate(html(400)),
    call: ensure,
    expected: broken.unreadable,
  },
  {
    vendorSays: "half an answer",
    script: atCreate({ kind: "cut" }),
    call: ensure,
    expected: broken.unreadable,
  },
  {
    vendorSays: "half a list",
    script: atList({ kind: "cut" }),
    call: (asking) => asking.list(),
    expected: readError("VENDOR_UNREADABLE"),
  },
  {
    vendorSays: "a page that does not say how to go on",
    script: atList({ kind: "answer", status: 200, json: { agents: [], has_more: true } }),
    call: (asking) => asking.describe(),
    expected: readError("VENDOR_UNREADABLE"),
  },
  {
    vendorSays: "a page that does not say whether it is the last",
    script: atList({ kind: "answer", status: 200, json: { agents: [] } }),
    call: (asking) => asking.describe(),
    expected: readError("VENDOR_UNREADABLE"),
  },
  {
    vendorSays: "a redirect",
    script: atList({ kind: "answer", status: 302, headers: { location: "https://other.example" } }),
    call: (asking) => asking.describe(),
    expected: readError("VENDOR_ERROR"),
  },
  {
    vendorSays: "404 of a path that it does not have",
    call: (asking) => asking.describe({ target: target({ endpoint: wrongPath }) }),
    expected: readError("VENDOR_UNREADABLE"),
  },
  {
    vendorSays: "a reset before it commits",
    script: atCreate({ kind: "reset" }),
    call: ensure,
    expected: { reason: "VENDOR_UNREACHABLE", code: "UNAVAILABLE", outcome: "UNKNOWN" },
  },
  {
    vendorSays: "a reset after it has committed",
    script: atCreate({ kind: "reset" }, { isAfter: true }),
    call: ensure,
    expected: { reason: "VENDOR_UNREACHABLE", code: "UNAVAILABLE", outcome: "UNKNOWN" },
  },
  {
    vendorSays: "nothing",
    script: atList({ kind: "hang" }),
    call: (asking) => asking.describe(),
    expected: { reason: "VENDOR_TIMEOUT", code: "DEADLINE_EXCEEDED" },
  },
];

const wrongPath = "https://api.elevenlabs.io/not/here";

describe("the vendor says", () => {
  before(() =>
    bench.script({
      do: "subscription",
      fields: { next_character_count_reset_unix: 2_000_000_000 },
    }),
  );
  for (const errorShape of ["current", "older"]) {
    for (const { vendorSays, script = [], call, expected } of refusals) {
      it(`${vendorSays} (${errorShape} shape)`, async () => {
        await bench.script({ do: "set", settings: { errorShape } }, ...script);
        assertError(await failure(call(new Asking(bench.ask))), expected);
      });
    }
  }
  for (const { vendorSays, script = [], call, expected } of faults) {
    it(vendorSays, async () => {
      await bench.script(...script);
      assertError(await failure(call(new Asking(bench.ask))), expected);
    });
  }

  for (const voiceMissingStatus of [400, 404]) {
    it(`${voiceMissingStatus}, no such voice: a bad value, not an absent agent`, async () => {
      await bench.script({ do: "set", settings: { voiceMissingStatus, knownVoices: ["known"] } });
      const asking = new Asking(bench.ask);
      const voiceId = "unknown";
      const create = await failure(asking.ensure({ spec: { parameters: { voiceId } } }));
      const invalid = {
        reason: "INVALID_FIELD",
        code: "INVALID_ARGUMENT",
        outcome: "NOT_APPLIED",
        paths: ["parameters.voiceId"],
      } as const;
      assertError(create, invalid);
      await asking.ensure({ spec: { parameters: { voiceId: "known" } } });
      assertError(await failure(asking.ensure({ spec: { parameters: { voiceId } } })), invalid);
      await bench.script({ do: "set", settings: { knownVoices: [] } });
    });
  }

  for (const agentMissingCode of ["agent_not_found", "document_not_found", "not_found"]) {
    for (const errorShape of ["current", "older"]) {
      it(`that there is no such agent: ${agentMissingCode} (${errorShape} shape)`, async () => {
        await bench.script({ do: "set", settings: { agentMissingCode, errorShape } });
        const asking = new Asking(bench.ask);
        const realm = "elevenlabs:global/user-1";
        const recorded = { providerId: "agent_that_never_was", realm };
        for (const call of [
          () => asking.describe({ recorded }),
          () => asking.delete({ recorded }),
        ]) {
          const facts = { realm, resource: key };
          assertError(await failure(call()), { reason: "NOT_FOUND", code: "NOT_FOUND", facts });
        }
      });
    }
  }
});
