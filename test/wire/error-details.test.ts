/** Each fact of an error arrives the same, whichever library reads it. */
import { ProviderError, reasons } from "../../services/contract/provider-error.ts";
import type { ProviderErrorFacts } from "../../services/contract/provider-error.ts";
import { status } from "../../services/adapter-host/test-vendor.ts";
import { failed, failureIn, named, wished, wireRule, wordsOf } from "./wire-rule.ts";
import type { WireRun } from "./wire-rule.ts";
import type { HeardFailure } from "./wire-end.ts";

const facts: ProviderErrorFacts = {
  outcome: "PARTIAL",
  providerId: "RM_abc",
  retryAfterMs: 1_500,
  resetsAtMs: Date.UTC(2026, 4, 1, 0, 0, 0, 250),
  quota: "每日调用次数",
  fields: [{ path: "parameters.maxParticipants", description: "at most 10" }],
  preconditions: [{ type: "STATE", subject: "DELETING", description: "wait" }],
  owner: "cluster-b",
  realm: "livekit:host:key",
  resource: "fleet/ns/name",
};

async function heardOf(run: WireRun, error: Error): Promise<HeardFailure> {
  const { port } = await run.serve({ ensure: () => Promise.reject(error) });
  return failureIn(await run.connect(port).ensure(named));
}

wireRule(
  "every fact that an error can have arrives whole",
  {
    both: failed("UNAVAILABLE", {
      message: "cannot ensure: 供应商 502 ☎",
      reason: "VENDOR_ERROR",
      outcome: "PARTIAL",
      providerId: "RM_abc",
      realm: "livekit:host:key",
      fields: ["parameters.maxParticipants"],
      retryAfterMs: 1_500,
      hasQuota: true,
      resetsAtMs: facts.resetsAtMs,
      preconditions: ["STATE DELETING"],
      resource: "fleet/ns/name",
      owner: "cluster-b",
    }),
  },
  (run) => heardOf(run, new ProviderError("VENDOR_ERROR", "cannot ensure: 供应商 502 ☎", facts)),
);

wireRule(
  "every reason arrives under its code",
  { both: reasons.map((reason) => [new ProviderError(reason, "no").code, reason, "UNKNOWN"]) },
  async (run) => {
    const { port } = await run.serve({
      ensure: ({ specHash }) => {
        const reason = reasons.find((known) => known === specHash) ?? "INVALID_FIELD";
        return Promise.reject(new ProviderError(reason, "no"));
      },
    });
    const end = run.connect(port);
    const heard = [];
    for (const reason of reasons) heard.push(wordsOf(await end.ensure({ specHash: reason })));
    return heard;
  },
);

const awkwardMessages = [
  "percent %41 %zz 100%",
  "line\nbreak\r\n\ttab and \u0000 and \u007f",
  "数字人 – Ωμέγα – 👩‍🚀",
  "  spaces at its ends  ",
  "",
];

wireRule(
  "a message that HTTP/2 could not carry as it is arrives as it is",
  { both: awkwardMessages },
  async (run) => {
    const { port } = await run.serve({
      describe: ({ instanceKey }) =>
        Promise.reject(
          new ProviderError("VENDOR_ERROR", awkwardMessages[Number(instanceKey)] ?? "none"),
        ),
    });
    const end = run.connect(port);
    const heard = [];
    for (const index of awkwardMessages.keys()) {
      heard.push(failureIn(await end.describe({ instanceKey: `${index}` })).message);
    }
    return heard;
  },
);

const manyFields = Array.from({ length: 40 }, (_, index) => ({
  path: `parameters.${"长".repeat(80)}${index}`,
  description: "说明".repeat(200),
}));

wireRule(
  "of too many refused fields the first eight arrive, and of a long text what fits",
  { both: ["INVALID_ARGUMENT", "INVALID_FIELD", "NOT_APPLIED", 8, true] },
  async (run) => {
    const message = "长".repeat(10_000);
    const facts = { outcome: "NOT_APPLIED", fields: manyFields } as const;
    const heard = await heardOf(run, new ProviderError("INVALID_FIELD", message, facts));
    const isCut = heard.message?.startsWith("长".repeat(150)) && heard.message.endsWith("长...");
    return [heard.code, heard.reason, heard.outcome, heard.fields.length, isCut];
  },
);

wireRule(
  "an error with more than the trailers hold keeps reason, outcome and id, and loses the fields",
  {
    both: failed("INVALID_ARGUMENT", {
      message: "no",
      reason: "INVALID_FIELD",
      outcome: "APPLIED",
      providerId: "i".repeat(512),
      realm: "r".repeat(512),
      resource: "n".repeat(512),
      owner: "o".repeat(512),
    }),
  },
  (run) =>
    heardOf(
      run,
      new ProviderError("INVALID_FIELD", "no", {
        outcome: "APPLIED",
        providerId: "i".repeat(512),
        realm: "r".repeat(512),
        resource: "n".repeat(512),
        owner: "o".repeat(512),
        fields: manyFields,
      }),
    ),
);

wireRule(
  "a bug of the adapter is INTERNAL, tells nothing of itself, and leaves a change in doubt",
  { both: failed("INTERNAL", { outcome: "UNKNOWN" }) },
  (run) => heardOf(run, new TypeError("secret-of-the-bug")),
);

wireRule(
  "a vendor's refusal comes through the host with its details",
  { both: ["RESOURCE_EXHAUSTED", "THROTTLED", "NOT_APPLIED", true] },
  async (run) => {
    const { end, vendor } = await run.adapter();
    vendor.faults.push({ method: "POST", when: "before", effect: status(429, {}) });
    const heard = await end.ensure(wished());
    return [...wordsOf(heard), failureIn(heard).hasQuota];
  },
);

wireRule(
  "what does not exist is NOT_FOUND with its realm, and a foreign page never is",
  {
    both: [
      ["NOT_FOUND", "NOT_FOUND", "NOT_APPLIED", "test:default"],
      ["UNAVAILABLE", "VENDOR_ERROR", "NOT_APPLIED", undefined],
    ],
  },
  async (run) => {
    const { end, vendor } = await run.adapter();
    const absent = await end.describe(named);
    vendor.faults.push({ method: "GET", when: "before", effect: status(404, "a proxy's page") });
    const page = await end.describe(named);
    return [absent, page].map((heard) => [...wordsOf(heard), failureIn(heard).realm]);
  },
);
