/** Requests that lack something, lead nowhere or come too late: refused before the vendor is touched. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Bench } from "../core/bench.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import type { Refusal } from "../core/expectations.ts";
import { isMutating, send, servedInstanceRpcs, servedRpcs } from "../core/request-fields.ts";
import type { Rpc } from "../core/request-fields.ts";
import { settled } from "../core/settled.ts";
import { shared } from "../core/shared-subjects.ts";
import type { Subject } from "../core/subject.ts";
import { describeReply } from "../core/wire-client.ts";

/** Refused for its fields; a mutation says that nothing was done. */
function badFields(rpc: Rpc, fields: readonly string[], reasons = ["INVALID_FIELD"]): Refusal {
  return { reasons, fields, ...(isMutating(rpc) ? { outcomes: ["NOT_APPLIED"] } : {}) };
}

/** Sends what is wrong in `own` with each RPC that is served, and wants `fields` named. */
async function refusedByAll(
  bench: Bench,
  subject: Subject,
  {
    own,
    fields,
    reasons,
  }: { readonly own: object; readonly fields: string[]; readonly reasons: string[] },
): Promise<void> {
  for (const rpc of servedRpcs(bench)) {
    refused(await send({ bench, rpc, subject }, { ...own }), badFields(rpc, fields, reasons));
  }
}

async function expectAbsent(bench: Bench, subject: Subject): Promise<void> {
  await settled(bench, async () => refused(await subject.describe(), { reasons: ["NOT_FOUND"] }));
}

export const requestCases: readonly ConformanceCase[] = [
  {
    name: "requests/missing-fields-are-named",
    promise:
      "a request without key, owner or target is INVALID_ARGUMENT, and BadRequest names the field",
    checks: ["error:bad-value", "list:reason", "list:outcome"],
    needs: [],
    fix: "check the required fields before anything else, in each RPC",
    run: async (bench) => {
      const subject = bench.subject("missing");
      const { owner } = subject;
      const mistakes = [
        { own: { instanceKey: undefined }, field: "instance_key" },
        { own: { owner: undefined }, field: "owner.cluster" },
        { own: { owner: { ...owner, cluster: "" } }, field: "owner.cluster" },
        { own: { target: undefined }, field: "endpoint" },
        { own: { target: { ...subject.target, endpoint: "" } }, field: "endpoint" },
      ];
      for (const rpc of servedInstanceRpcs(bench)) {
        for (const { own, field } of mistakes) {
          refused(await send({ bench, rpc, subject }, own), badFields(rpc, [field]));
        }
      }
    },
  },
  {
    name: "requests/ensure-needs-uid-and-spec",
    promise: "Ensure without owner.uid or spec is INVALID_ARGUMENT, and makes nothing",
    checks: ["error:bad-value", "list:outcome"],
    needs: [],
    fix: "refuse an Ensure whose owner.uid is empty or whose spec is absent",
    run: async (bench) => {
      const subject = bench.subject("needs-uid-and-spec");
      const owner = { ...subject.owner, uid: "" };
      refused(await subject.ensure({ owner }), badFields("ensure", ["owner.uid"]));
      const ask = { bench, rpc: "ensure", subject } as const;
      refused(await send(ask, { spec: undefined }), badFields("ensure", ["spec"]));
      await expectAbsent(bench, subject);
    },
  },
  {
    name: "requests/list-needs-a-target",
    promise: "List without target is INVALID_ARGUMENT",
    checks: ["error:bad-value"],
    needs: [{ kind: "capability", name: "LIST_BY_OWNER" }],
    fix: "check List's target like that of the other RPCs",
    run: async (bench) => {
      const subject = bench.subject("list-target");
      const ask = { bench, rpc: "list", subject } as const;
      refused(await send(ask, { target: undefined }), badFields("list", ["endpoint"]));
    },
  },
  {
    name: "requests/unknown-account",
    promise: "an account that the adapter does not have is INVALID_ARGUMENT (UNKNOWN_ACCOUNT)",
    checks: ["error:bad-value", "list:reason"],
    needs: [],
    fix: "refuse unknown accounts in each RPC; never fall back to the default account",
    run: async (bench) => {
      const subject = bench.subject("unknown-account");
      const target = { ...subject.target, account: `nobody-${bench.runId}` };
      const reasons = ["UNKNOWN_ACCOUNT"];
      await refusedByAll(bench, subject, { own: { target }, fields: ["account"], reasons });
    },
  },
  {
    name: "requests/unknown-region",
    promise: "a region outside the declared ones is INVALID_ARGUMENT",
    checks: ["error:bad-value"],
    needs: [
      {
        kind: "trait",
        what: "a list of regions in GetProviderInfo",
        isSo: ({ info }) => info.regions.length > 0,
      },
    ],
    fix: "refuse regions that GetProviderInfo does not list",
    run: async (bench) => {
      const subject = bench.subject("unknown-region");
      const target = { ...subject.target, region: "nowhere-9" };
      const reasons = ["INVALID_FIELD"];
      await refusedByAll(bench, subject, { own: { target }, fields: ["region"], reasons });
    },
  },
  {
    name: "requests/endpoint-is-checked",
    promise: "an endpoint that is no https URL of an allowed host is INVALID_ARGUMENT in each RPC",
    checks: ["rule:endpoints", "error:bad-value"],
    needs: [],
    fix: "compare the endpoint's scheme and host with the account's list before you connect anywhere",
    run: async (bench) => {
      const subject = bench.subject("endpoint");
      const { endpoint } = subject.target;
      const { host } = new URL(endpoint);
      const foreign = [
        "https://conformance.invalid",
        `https://${host}.conformance.invalid`,
        `https://${host}@conformance.invalid`,
        `https://user:password@${host}`,
        "ftp://example.com",
        "not a url",
        ...(endpoint.startsWith("https:") ? [endpoint.replace("https:", "http:")] : []),
      ];
      for (const wrong of foreign) {
        const target = { ...subject.target, endpoint: wrong };
        const reasons = ["ENDPOINT_NOT_ALLOWED", "INVALID_FIELD"];
        await refusedByAll(bench, subject, { own: { target }, fields: ["endpoint"], reasons });
      }
    },
  },
  {
    name: "requests/deadline-is-required",
    promise:
      "a call that reaches a vendor without a deadline is INVALID_ARGUMENT, and does nothing",
    checks: ["rule:deadline", "list:outcome"],
    needs: [],
    fix: "refuse calls whose context has no deadline before you look at the request",
    run: async (bench) => {
      const subject = bench.subject("no-deadline");
      for (const rpc of servedRpcs(bench)) {
        const reply = await send({ bench, rpc, subject }, {}, { deadlineMs: "none" });
        refused(reply, badFields(rpc, []));
      }
      await expectAbsent(bench, subject);
    },
  },
  {
    name: "requests/not-after-holds-back-a-create",
    promise:
      "Ensure without not_after, or past it, is ABORTED (TOO_LATE, NOT_APPLIED) and makes nothing",
    checks: ["error:too-late", "list:outcome"],
    needs: [],
    fix: "compare not_after, less your allowance for clocks, with now right before the vendor call",
    run: async (bench) => {
      const subject = bench.subject("too-late");
      for (const notAfter of pastInstants(bench)) {
        refused(await subject.ensure({ notAfter }), tooLate);
      }
      const ask = { bench, rpc: "ensure", subject } as const;
      refused(await send(ask, { notAfter: undefined }), tooLate);
      await expectAbsent(bench, subject);
    },
  },
  {
    name: "requests/not-after-holds-back-a-removal",
    promise:
      "Delete and Release without not_after, or past it, are ABORTED (TOO_LATE) and touch nothing",
    checks: ["error:too-late", "list:outcome"],
    needs: [{ kind: "capability", name: "DELETE" }],
    fix: "check not_after in Delete and Release as in Ensure",
    run: async (bench) => {
      const { subject, instance } = await shared(bench);
      for (const rpc of servedInstanceRpcs(bench).filter((name) => name !== "describe")) {
        if (rpc === "ensure") continue;
        for (const notAfter of [undefined, ...pastInstants(bench)]) {
          refused(await send({ bench, rpc, subject }, { notAfter }), tooLate);
        }
      }
      const after = await subject.answered(subject.describe(), "the instance untouched");
      const id = after.instance?.providerId;
      expect(id === instance.providerId, `instance ${instance.providerId}`, () => `${id}`);
    },
  },
  {
    name: "requests/huge-message-is-refused",
    promise: "a message beyond all limits is refused, and the adapter goes on",
    checks: ["rule:bounds"],
    needs: [],
    fix: "limit the size of messages that your server takes, 4 MiB as gRPC does",
    run: async (bench) => {
      const subject = bench.subject("huge");
      const parameters = { ...subject.spec.parameters, huge: "x".repeat(8 << 20) };
      // Not through the subject: an error without details would leave its key in doubt for long.
      const reply = await send({ bench, rpc: "ensure", subject }, { spec: { parameters } });
      expect(reply.kind === "failure", "a refusal", () => describeReply(reply));
      // Whatever the refusal did to the connection: the next call finds one.
      bench.reconnect();
      await expectAbsent(bench, subject);
    },
  },
];

const tooLate: Refusal = { reasons: ["TOO_LATE"], outcomes: ["NOT_APPLIED"] };

/** Long ago, an hour ago, now; and within the allowance for clocks, where there is one. */
function pastInstants({ settling }: Bench): readonly ReturnType<typeof timestampFromMs>[] {
  const now = Date.now();
  const { clockSkewMs } = settling;
  const instants = [0, now - 3_600_000, now];
  return [...instants, ...(clockSkewMs > 0 ? [now + clockSkewMs / 2] : [])].map((ms) =>
    timestampFromMs(Math.floor(ms)),
  );
}
