/** Ensure: made once, changed where it differs, and left alone where it does not. */
import { Change } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { EnsureResponse } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Bench } from "../core/bench.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { expectOurs, refused } from "../core/expectations.ts";
import { expectInstance, expectParameters } from "../core/instance-expectations.ts";
import { leastParameters } from "../core/least-parameters.ts";
import { settled } from "../core/settled.ts";
import { shared } from "../core/shared-subjects.ts";
import type { EnsureFields, Subject } from "../core/subject.ts";
import { changeName } from "../core/wire-words.ts";

/** One Ensure that has to succeed with one of these changes, on this instance. */
async function ensured(
  subject: Subject,
  own: EnsureFields,
  { changes, id }: { readonly changes: readonly Change[]; readonly id?: string },
): Promise<EnsureResponse> {
  const names = changes.map(changeName).join(" or ");
  const answer = await subject.answered(subject.ensure(own), `OK with change ${names}`);
  const { change, instance } = answer;
  expect(changes.includes(change), `change ${names}`, () => changeName(change));
  const isSame = id === undefined || instance?.providerId === id;
  expect(isSame, `instance ${id}`, () => instance?.providerId ?? "none");
  return answer;
}

const none = [Change.NONE] as const;

async function expectAbsent(bench: Bench, subject: Subject): Promise<void> {
  await settled(bench, async () => refused(await subject.describe(), { reasons: ["NOT_FOUND"] }));
}

export const ensureCases: readonly ConformanceCase[] = [
  {
    name: "ensure/ten-times-makes-one",
    promise: "the first Ensure creates, the next nine find the same instance and change nothing",
    checks: ["rule:identity", "list:change", "list:stamp"],
    needs: [],
    fix: "look for the instance before you create: by recorded id, then by the stamp of its key",
    run: async (bench) => {
      const subject = bench.subject("ten-times");
      const first = await subject.answered(subject.ensure(), "Ensure to create");
      const instance = await subject.made();
      expect(first.change === Change.CREATED, "change CREATED", () => changeName(first.change));
      expectOurs(instance, subject);
      for (let count = 2; count <= 10; count++) {
        const { change, instance: again } = await subject.answered(subject.ensure(), "OK");
        const came = (): string => `${changeName(change)} and ${again?.providerId ?? "none"}`;
        const expected = `NONE and ${instance.providerId} for call ${count}`;
        expect(change === Change.NONE && again?.providerId === instance.providerId, expected, came);
      }
    },
  },
  {
    name: "ensure/answer-is-whole",
    promise:
      "the answer is the instance as read back: whose, where, how it is, and what was asked for",
    checks: ["list:state", "list:stamp", "list:change"],
    needs: [],
    fix: "read the instance again after a change and answer what the vendor shows, in full",
    run: async (bench) => {
      const subject = bench.subject("whole");
      const { displayName } = subject.spec;
      const instance = await subject.converge({ specHash: "hash-of-whole" });
      expectInstance(instance, subject);
      expectParameters(instance, bench.parameters.parameters);
      const have = instance.observed?.displayName;
      const isNamed = displayName === undefined || have === displayName;
      expect(isNamed, `display name "${displayName}"`, () => `${have}`);
      const { specHash, drift } = instance;
      const isKept = specHash === "" || specHash === "hash-of-whole";
      expect(isKept, "the spec_hash that was given, or none", () => specHash);
      expect(drift.length === 0, "no drift", () => drift.map(({ field }) => field).join(", "));
    },
  },
  {
    name: "ensure/changed-is-updated-and-back",
    promise:
      "a changed parameter is one UPDATED, read back, then NONE; and the same on the way back",
    checks: ["list:change", "list:capability"],
    needs: [
      { kind: "capability", name: "UPDATE" },
      { kind: "parameter", name: "changed" },
    ],
    fix: "compare each given parameter with what the vendor shows, and change what differs",
    run: async (bench) => {
      const { parameters, changed } = bench.parameters;
      const subject = bench.subject("changed");
      const { providerId: id } = await subject.converge();
      for (const wanted of [{ ...parameters, ...changed }, { ...parameters }]) {
        const spec = { ...subject.spec, parameters: wanted };
        const { instance } = await ensured(subject, { spec }, { changes: [Change.UPDATED], id });
        if (instance !== undefined) expectParameters(instance, wanted);
        await settled(bench, async () => {
          const read = await subject.answered(subject.describe({ spec }), "the instance");
          if (read.instance !== undefined) expectParameters(read.instance, wanted);
        });
        await ensured(subject, { spec }, { changes: none, id });
      }
    },
  },
  {
    name: "ensure/renamed-is-updated",
    promise: "another display name is UPDATED on the same instance",
    checks: ["list:change"],
    needs: [
      { kind: "capability", name: "UPDATE" },
      {
        kind: "trait",
        what: "a display name (displayName in the parameters file)",
        isSo: ({ parameters }) => parameters.displayName,
      },
    ],
    fix: "find the instance by its stamp, never by its display name, and change the name",
    run: async (bench) => {
      const subject = bench.subject("renamed");
      const { providerId: id } = await subject.converge();
      const spec = { ...subject.spec, displayName: `${bench.runId} new` };
      const { instance } = await ensured(subject, { spec }, { changes: [Change.UPDATED], id });
      const name = instance?.observed?.displayName;
      expect(name === spec.displayName, `display name ${spec.displayName}`, () => `${name}`);
      await ensured(subject, { spec }, { changes: none, id });
    },
  },
  {
    name: "ensure/immutable-is-said",
    promise:
      "a field that cannot be changed is FAILED_PRECONDITION (IMMUTABLE) by its path; nothing changes",
    checks: ["error:immutable", "list:precondition", "list:outcome"],
    needs: [{ kind: "parameter", name: "immutable" }],
    fix: "refuse before any change, with PreconditionFailure IMMUTABLE whose subject is parameters.NAME",
    run: async (bench) => {
      const { immutable = {}, parameters } = bench.parameters;
      const { subject, instance } = await shared(bench);
      const spec = { ...subject.spec, parameters: { ...parameters, ...immutable } };
      const failure = refused(await subject.ensure({ spec }), {
        reasons: ["IMMUTABLE_FIELD"],
        outcomes: ["NOT_APPLIED"],
        preconditions: ["IMMUTABLE"],
      });
      const subjects = failure.preconditions.map((violation) => violation.subject);
      for (const name of Object.keys(immutable)) {
        const path = `parameters.${name}`;
        expect(subjects.includes(path), `the subject ${path}`, () => subjects.join(", "));
      }
      await ensured(subject, {}, { changes: none, id: instance.providerId });
    },
  },
  {
    name: "ensure/without-update-all-is-immutable",
    promise: "without capability UPDATE a difference is FAILED_PRECONDITION (IMMUTABLE)",
    checks: ["error:immutable", "list:capability"],
    needs: [
      { kind: "no-capability", name: "UPDATE" },
      { kind: "parameter", name: "changed" },
    ],
    fix: "do not make the instance anew to change it: say that its fields cannot be changed",
    run: async (bench) => {
      const { parameters, changed } = bench.parameters;
      const { subject } = await shared(bench);
      const spec = { ...subject.spec, parameters: { ...parameters, ...changed } };
      const outcomes = ["NOT_APPLIED"];
      refused(await subject.ensure({ spec }), { reasons: ["IMMUTABLE_FIELD"], outcomes });
    },
  },
  {
    name: "ensure/bad-parameter-is-named",
    promise:
      "a value that is not taken is INVALID_ARGUMENT with parameters.NAME, and makes nothing",
    checks: ["error:bad-value", "list:outcome"],
    needs: [{ kind: "parameter", name: "invalid" }],
    fix: "check parameters against your schema; translate the vendor's field names into parameters.NAME",
    run: async (bench) => {
      const { invalid = {}, parameters } = bench.parameters;
      const subject = bench.subject("bad-parameter");
      const spec = { ...subject.spec, parameters: { ...parameters, ...invalid } };
      refused(await subject.ensure({ spec }), {
        reasons: ["INVALID_FIELD"],
        outcomes: ["NOT_APPLIED"],
        fields: Object.keys(invalid).map((name) => `parameters.${name}`),
      });
      await expectAbsent(bench, subject);
    },
  },
  {
    name: "ensure/unknown-parameter-is-named",
    promise: "a parameter that the schema does not have is INVALID_ARGUMENT, and makes nothing",
    checks: ["error:bad-value", "list:outcome"],
    needs: [
      {
        kind: "trait",
        what: "a parameter schema with additionalProperties false",
        isSo: ({ info }) => /"additionalProperties":\s*false/.test(info.parameterSchemaJson),
      },
    ],
    fix: "check names against your schema; mind those that every object of your language has",
    run: async (bench) => {
      const { parameters } = bench.parameters;
      const subject = bench.subject("unknown-parameter");
      for (const name of ["nobodyKnows", "constructor", "toString", "no/such~name"]) {
        const spec = { ...subject.spec, parameters: { ...parameters, [name]: "x" } };
        refused(await subject.ensure({ spec }), {
          reasons: ["INVALID_FIELD"],
          outcomes: ["NOT_APPLIED"],
          fields: [`parameters.${name}`],
        });
      }
      await expectAbsent(bench, subject);
    },
  },
  {
    name: "ensure/may-create-false-makes-nothing",
    promise: "absent and may_create false is ABORTED (IN_DOUBT) with RetryInfo, and makes nothing",
    checks: ["error:in-doubt", "list:outcome"],
    needs: [],
    fix: "create only when may_create is true; say after how long asking again makes sense",
    run: async (bench) => {
      const subject = bench.subject("may-not-create");
      refused(await subject.ensure({ mayCreate: false }), {
        reasons: ["IN_DOUBT"],
        outcomes: ["NOT_APPLIED"],
        hasRetry: true,
      });
      await expectAbsent(bench, subject);
    },
  },
  {
    name: "ensure/may-create-false-finds-what-is-there",
    promise: "may_create false holds back a create and nothing else",
    checks: ["error:in-doubt", "list:change"],
    needs: [],
    fix: "ask for may_create after the instance was looked for, not before",
    run: async (bench) => {
      const { subject, instance } = await shared(bench);
      await ensured(subject, { mayCreate: false }, { changes: none, id: instance.providerId });
    },
  },
  {
    name: "ensure/absent-is-not-compared",
    promise: "a display name or parameter that is absent from the spec is left as it is",
    checks: ["rule:versions", "list:change"],
    needs: [],
    fix: "compare and change only what the spec names; absent is not empty",
    run: async (bench) => {
      const { subject, instance } = await shared(bench);
      const { providerId: id, observed } = instance;
      const spec = { parameters: leastParameters(bench) };
      const answer = await ensured(subject, { spec }, { changes: none, id });
      if (answer.instance !== undefined) {
        expectParameters(answer.instance, bench.parameters.parameters);
      }
      const name = answer.instance?.observed?.displayName;
      const isKept = name === observed?.displayName;
      expect(isKept, `display name ${observed?.displayName}`, () => `${name}`);
    },
  },
];
