/** Rows of the table of errors that the adapter itself makes of what ElevenLabs shows. */
import { createElevenLabsAdapter } from "../../adapters/elevenlabs/adapter.ts";
import { tagsWith } from "../../adapters/elevenlabs/stamp-tags.ts";
import type { Adapter, CapabilityName } from "../../services/adapter-host/adapter.ts";
import { makeStamp } from "../../services/adapter-host/stamp.ts";
import { breaksCreate, breaksReads, listPath, script } from "./error-row.ts";
import type { Arrange, ErrorRow } from "./error-row.ts";

const own = createElevenLabsAdapter();

/** An agent whose tags now say that another cluster has it. */
const takenByAnother: Arrange = async ({ bench }, key) => {
  const owner = { cluster: "cluster-2", uid: "uid-9" };
  const [agent] = (await bench.agents()).filter(({ tags }) =>
    tags.some((tag) => tag.endsWith(key)),
  );
  const tags = tagsWith(makeStamp(`fleet/${key}`, owner, ""), [], "full");
  return bench.script({ do: "edit-agent", agentId: agent?.id, fields: { tags } });
};

const vanishes: Arrange = async ({ bench }, key) => {
  const [agent] = (await bench.agents()).filter(({ tags }) =>
    tags.some((tag) => tag.endsWith(key)),
  );
  return bench.script({ do: "delete-agent", agentId: agent?.id });
};

/** The same adapter, were its vendor's API without something. */
function without(...names: readonly CapabilityName[]): Adapter {
  const { release, ...rest } = own;
  const capabilities = own.info.capabilities.filter((name) => !names.includes(name));
  return {
    ...rest,
    ...(names.includes("RELEASE") || release === undefined ? {} : { release }),
    info: { ...own.info, capabilities },
  };
}

export const hostErrorRows: readonly ErrorRow[] = [
  {
    says: "does not exist (attested)",
    vendor: "404 agent_not_found, and no such agent in two equal lists",
    object: "deleted",
    arrange: vanishes,
    wire: { code: "NOT_FOUND", reason: "NOT_FOUND", details: ["realm", "resource"] },
    next: "no failure",
  },
  {
    says: "belongs to another cluster, to Ensure",
    vendor: "an agent with another cluster's tags",
    object: "ready",
    arrange: takenByAnother,
    wire: {
      code: "ALREADY_EXISTS",
      reason: "OWNED_BY_ANOTHER",
      outcome: "NOT_APPLIED",
      details: ["owner", "resource"],
    },
    conditions: { Ready: "False OwnedByAnother", Stalled: "True OwnedByAnother" },
    message: /cluster-2/,
    next: "slowly",
  },
  {
    says: "belongs to another cluster, to Delete",
    vendor: "an agent with another cluster's tags",
    object: "deleted",
    arrange: takenByAnother,
    wire: { code: "NOT_FOUND", reason: "NOT_OURS", details: ["owner", "resource"] },
    next: "no failure",
  },
  {
    says: "field cannot be changed on this vendor",
    vendor: "an agent of another language, were that fixed",
    object: "ready",
    line: { adapter: { ...own, info: { ...own.info, immutableFields: ["parameters.language"] } } },
    arrange: ({ objects }, key) => objects.editSpec(key, { parameters: { language: "de" } }),
    wire: {
      code: "FAILED_PRECONDITION",
      reason: "IMMUTABLE_FIELD",
      outcome: "NOT_APPLIED",
      details: ["preconditions"],
    },
    conditions: {
      Ready: "True ProviderReady",
      ReplaceRequired: "True ImmutableField",
      Stalled: "True InvalidSpec",
    },
    next: "slowly",
  },
  {
    says: "cannot be deleted by API",
    vendor: "nothing: it is not asked",
    line: { adapter: without("DELETE") },
    conditions: { Ready: "False InvalidSpec", Stalled: "True InvalidSpec" },
    message: /cannot delete.*spec\.deletionPolicy/,
    next: "no failure",
  },
  {
    says: "cannot be released by API",
    vendor: "nothing: it is not asked",
    spec: { deletionPolicy: "Retain" },
    line: { adapter: without("RELEASE", "ADOPT") },
    conditions: { Ready: "False InvalidSpec", Stalled: "True InvalidSpec" },
    message: /cannot release.*spec\.deletionPolicy/,
    next: "no failure",
  },
  {
    says: "not_after passed",
    vendor: "its lists so late that a change must not begin any more",
    line: { fencingMs: 1_000 },
    // Four lists are read for Describe; Ensure reads the next ones.
    arrange: script({ do: "fault", method: "GET", path: listPath, skip: 4, delayMs: 700 }),
    wire: { code: "ABORTED", reason: "TOO_LATE", outcome: "NOT_APPLIED" },
    conditions: { Ready: "False EnsureFailed", Stalled: "False NotStalled" },
    next: "back-off",
  },
  {
    says: "absent and may_create false",
    vendor: "no agent, after a create whose answer was lost",
    arrange: async (line, key) => {
      await breaksCreate({ kind: "reset" })(line, key);
      await line.pass(key);
    },
    wire: {
      code: "ABORTED",
      reason: "IN_DOUBT",
      outcome: "NOT_APPLIED",
      details: ["retryAfterMs"],
    },
    conditions: { Ready: "False Provisioning", Reconciling: "True Provisioning" },
    message: /nothing is created before .*Z, then work goes on by itself/,
    next: "no failure",
  },
  {
    says: "wrong realm",
    vendor: "that the key is now another user's",
    object: "deleted",
    line: {},
    arrange: async ({ bench }) => {
      const apiKey = "sk_key_of_another_user";
      await bench.script({ do: "key", apiKey, userId: "user-2" });
      await bench.useKey(apiKey);
    },
    wire: {
      code: "FAILED_PRECONDITION",
      reason: "WRONG_REALM",
      outcome: "NOT_APPLIED",
      details: ["preconditions", "realm"],
    },
    conditions: { Ready: "False DeleteBlocked", Stalled: "True DeleteBlocked" },
    message: /user-1.*user-2/,
    next: "slowly",
  },
  {
    says: "shutting down",
    vendor: "nothing: the adapter is on its way out",
    object: "ready",
    line: {},
    arrange: ({ server }) => server.drain(100),
    wire: { code: "UNAVAILABLE", reason: "SHUTTING_DOWN", outcome: "NOT_APPLIED" },
    conditions: { Ready: "True ProviderReady" },
    next: "back-off",
  },
  {
    says: "version missing",
    vendor: "nothing: its adapter speaks later versions only",
    line: {
      handlers: ({ getProviderInfo, ...rest }) => ({
        ...rest,
        getProviderInfo: async (...asked) => {
          const info = await getProviderInfo?.(...asked);
          if (info === undefined) throw new Error("the host says nothing of itself");
          return { ...info, contractVersionMin: 2, contractVersionMax: 3 };
        },
      }),
    },
    conditions: { Ready: "False AdapterIncompatible", Stalled: "True AdapterIncompatible" },
    message: /versions 2 to 3.*speaks 1: upgrade/,
    next: "slowly",
  },
  {
    says: "method missing",
    vendor: "nothing: its adapter does not serve Ensure",
    line: { handlers: ({ ensure: _ensure, ...rest }) => rest },
    wire: { code: "UNIMPLEMENTED", reason: "UNSUPPORTED", outcome: "NOT_APPLIED" },
    conditions: { Ready: "False AdapterIncompatible", Stalled: "True AdapterIncompatible" },
    next: "slowly",
  },
  {
    says: "waits for a human",
    vendor: "an agent that somebody has to approve, were there such",
    line: {
      adapter: {
        ...own,
        read: async (call, id) => {
          const found = await own.read(call, id);
          const action = { text: "approve the voice", url: "https://elevenlabs.io/approve" };
          return found && { ...found, state: "AWAITING_HUMAN", action };
        },
      },
    },
    conditions: { Ready: "False AwaitingHuman", Stalled: "True AwaitingHuman" },
    message: /approve the voice: https:/,
    next: "no failure",
  },
  {
    says: "circuit open",
    vendor: "its user and 500 twice, then it is not asked",
    line: { breaker: { verdictCountMin: 3, openMs: 60_000 } },
    arrange: async (line, key) => {
      await breaksReads({ kind: "error", name: "internal_error" })(line, key);
      for (let count = 0; count < 2; count += 1) await line.forcedPass(key);
    },
    wire: { code: "UNAVAILABLE", reason: "CIRCUIT_OPEN", details: ["retryAfterMs"] },
    conditions: { Ready: "False CircuitOpen", Stalled: "False NotStalled" },
    next: "not before",
  },
  {
    says: "bad value: an account that the adapter does not have",
    vendor: "nothing: it is not asked",
    line: { account: "nobody" },
    wire: { code: "INVALID_ARGUMENT", reason: "UNKNOWN_ACCOUNT", details: ["fields"] },
    conditions: { Ready: "False InvalidSpec", Stalled: "True InvalidSpec" },
    next: "slowly",
  },
  {
    says: "bad value: an endpoint beyond the account's hosts",
    vendor: "nothing: it is not asked",
    spec: { endpoint: "https://metadata.internal" },
    wire: { code: "INVALID_ARGUMENT", reason: "ENDPOINT_NOT_ALLOWED", details: ["fields"] },
    conditions: { Ready: "False InvalidSpec", Stalled: "True InvalidSpec" },
    message: /spec\.endpoint: host metadata\.internal is not on the account's list/,
    next: "slowly",
  },
];
