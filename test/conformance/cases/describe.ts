/** Describe: what the vendor has, and nothing happens. */
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { Change } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { expect, unmet } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { expectInstance, expectOwnedBy, expectParameters } from "../core/instance-expectations.ts";
import { leastParameters } from "../core/least-parameters.ts";
import { shared, sharedForeign } from "../core/shared-subjects.ts";
import type { DescribeFields, Subject } from "../core/subject.ts";
import { changeName } from "../core/wire-words.ts";
import { wrongIdLike } from "./ensure-identity.ts";
import { keepsDisplayName } from "./request-sizes.ts";

async function described(subject: Subject, own: DescribeFields = {}): Promise<Instance> {
  const { instance } = await subject.answered(subject.describe(own), "the instance");
  return instance ?? unmet("DescribeResponse.instance", "it is absent");
}

function expectNoDrift({ drift }: Instance): void {
  const came = (): string =>
    drift.map(({ field, want, have }) => `${field}: want ${want}, have ${have}`).join("; ");
  expect(drift.length === 0, "no drift", came);
}

/** Another spec than the instance has, and what has to be named as drift. */
function expectDrift({ drift }: Instance, field: string, want: string, have?: string): void {
  const names = drift.map((one) => one.field).join(", ");
  const found = drift.find((one) => one.field === field);
  if (found === undefined) unmet(`drift of ${field}`, `drift names ${names || "nothing"}`);
  expect(found.want === want, `want "${want}"`, () => `${found.want}`);
  const isFound = found.have === undefined || have === undefined || found.have === have;
  expect(isFound, `have "${have}"`, () => `${found.have}`);
}

export const describeCases: readonly ConformanceCase[] = [
  {
    name: "describe/by-key-and-by-recorded-id",
    promise: "the instance is found by key, by its id, and in spite of a wrong id",
    checks: ["rpc:describe", "rule:identity"],
    needs: [],
    fix: "try the recorded id first and the key second",
    run: async (bench) => {
      const { subject, instance } = await shared(bench);
      const { providerId, realm } = instance;
      for (const recorded of [
        undefined,
        { providerId, realm },
        { providerId, realm: "" },
        { providerId: wrongIdLike(providerId), realm },
      ]) {
        const found = await described(subject, { recorded });
        expectInstance(found, subject);
        expectParameters(found, bench.parameters.parameters);
        const isSame = found.providerId === providerId && found.realm === realm;
        expect(isSame, `${providerId} in ${realm}`, () => `${found.providerId} in ${found.realm}`);
      }
    },
  },
  {
    name: "describe/absent-is-attested",
    promise: "NOT_FOUND carries reason NOT_FOUND and the realm that was asked",
    checks: ["rpc:describe", "error:absent"],
    needs: [],
    fix: "answer NOT_FOUND only when absence is proven, with ErrorInfo.metadata.realm",
    run: async (bench) => {
      const { instance } = await shared(bench);
      const subject = bench.subject("nobody");
      for (const providerId of ["", wrongIdLike(instance.providerId), instance.providerId]) {
        const reply = await subject.describe({ recorded: { providerId, realm: "" } });
        const failure = refused(reply, { reasons: ["NOT_FOUND"] });
        const { realm } = failure.metadata;
        expect(realm === instance.realm, `metadata.realm ${instance.realm}`, () => `${realm}`);
      }
    },
  },
  {
    name: "describe/another-clusters-as-it-is",
    promise: "an instance of another cluster is answered with its own owner and stamp",
    checks: ["rpc:describe", "list:stamp"],
    needs: [],
    fix: "answer the owner that is stamped, never the one that asks",
    run: async (bench) => {
      const { subject: theirs, instance } = await sharedForeign(bench);
      const reader = theirs.as({ owner: { cluster: bench.cluster, uid: "uid-reader" } });
      const found = await described(reader);
      expectOwnedBy(found, theirs);
      const isSame = found.providerId === instance.providerId;
      expect(isSame, instance.providerId, () => found.providerId);
    },
  },
  {
    name: "describe/predecessors-as-it-is",
    promise: "an instance of a dead predecessor is answered with the uid that is stamped",
    checks: ["rpc:describe", "list:stamp"],
    needs: [],
    fix: "read the uid from the stamp; leave it empty where it has no room",
    run: async (bench) => {
      const { subject } = await shared(bench);
      const successor = subject.as({ owner: { cluster: bench.cluster, uid: "uid-successor" } });
      expectOwnedBy(await described(successor), subject);
    },
  },
  {
    name: "describe/drift-is-named",
    promise:
      "with a wanted spec that differs, drift names each field with want and have, and nothing else",
    checks: ["rpc:describe"],
    needs: [{ kind: "parameter", name: "changed" }],
    fix: "compare the given spec with what the vendor shows: parameters.NAME, want, have",
    run: async (bench) => {
      const { parameters, changed = {} } = bench.parameters;
      const { subject } = await shared(bench);
      const spec = { ...subject.spec, parameters: { ...parameters, ...changed } };
      const found = await described(subject, { spec });
      for (const [name, want] of Object.entries(changed)) {
        expectDrift(found, `parameters.${name}`, want, parameters[name]);
      }
      const isAll = found.drift.length === Object.keys(changed).length;
      const came = (): string => found.drift.map(({ field }) => field).join(", ");
      expect(isAll, `drift of ${Object.keys(changed).join(", ")} alone`, came);
    },
  },
  {
    name: "describe/another-name-is-drift",
    promise: "a wanted display name that differs is drift of displayName",
    checks: ["rpc:describe"],
    needs: [keepsDisplayName],
    fix: "compare the display name when the spec has one",
    run: async (bench) => {
      const { subject } = await shared(bench);
      const displayName = `${bench.runId} other`;
      const found = await described(subject, { spec: { ...subject.spec, displayName } });
      expectDrift(found, "displayName", displayName, subject.spec.displayName);
    },
  },
  {
    name: "describe/no-drift-without-cause",
    promise:
      "no drift with the spec it was made from, with none, and with one that names the least",
    checks: ["rpc:describe", "rule:versions"],
    needs: [],
    fix: "compare only what the given spec names, in a form in which equal means equal",
    run: async (bench) => {
      const { subject } = await shared(bench);
      for (const spec of [subject.spec, undefined, { parameters: leastParameters(bench) }]) {
        expectNoDrift(await described(subject, { spec }));
      }
    },
  },
  {
    name: "describe/another-notation-is-no-drift",
    promise:
      "values in another notation that means the same are no drift, and Ensure changes nothing",
    checks: ["rpc:describe", "list:change"],
    needs: [{ kind: "parameter", name: "normalised" }],
    fix: "bring both sides into one form before you compare them",
    run: async (bench) => {
      const { parameters, normalised } = bench.parameters;
      const { subject } = await shared(bench);
      const spec = { ...subject.spec, parameters: { ...parameters, ...normalised } };
      expectNoDrift(await described(subject, { spec }));
      const { change } = await subject.answered(subject.ensure({ spec }), "OK with change NONE");
      expect(change === Change.NONE, "change NONE", () => changeName(change));
    },
  },
  {
    name: "describe/changes-nothing",
    promise: "describing with another spec, owner or id leaves the instance as it was",
    checks: ["rpc:describe"],
    needs: [],
    fix: "Describe reads: it corrects no drift, writes no stamp and creates nothing",
    run: async (bench) => {
      const { subject, instance } = await shared(bench);
      const parameters = { ...bench.parameters.parameters, ...bench.parameters.changed };
      await described(subject, { spec: { ...subject.spec, parameters } });
      const successor = subject.as({ owner: { cluster: bench.cluster, uid: "uid-successor" } });
      await described(successor, { spec: subject.spec });
      const absent = bench.subject("described-only");
      const { spec } = absent;
      for (const own of [{ spec }, { spec, recorded: { providerId: instance.providerId } }]) {
        refused(await absent.describe(own), { reasons: ["NOT_FOUND"] });
      }
      const after = await described(subject);
      expectOwnedBy(after, subject);
      expectParameters(after, bench.parameters.parameters);
      const { change } = await subject.answered(subject.ensure(), "OK with change NONE");
      expect(change === Change.NONE, "change NONE", () => changeName(change));
    },
  },
  {
    name: "describe/wrong-realm-is-refused",
    promise: "another realm than the recorded one is FAILED_PRECONDITION (REALM), never NOT_FOUND",
    checks: ["rpc:describe", "error:wrong-realm", "list:precondition"],
    needs: [],
    fix: "compare recorded.realm with the realm of the target in reads too",
    run: async (bench) => {
      const { subject } = await shared(bench);
      for (const asked of [subject, bench.subject("nobody-in-this-realm")]) {
        refused(await asked.describe({ recorded: { providerId: "", realm: "another realm" } }), {
          reasons: ["WRONG_REALM"],
          preconditions: ["REALM"],
        });
      }
    },
  },
];
