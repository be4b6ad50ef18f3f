/** Ensure: whose instance it is, and which one is meant. */
import { Change } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Bench } from "../core/bench.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { expectOurs, expectOwnerNamed, refused } from "../core/expectations.ts";
import { expectOwnedBy } from "../core/instance-expectations.ts";
import { settled } from "../core/settled.ts";
import { shared, sharedForeign } from "../core/shared-subjects.ts";
import type { EnsureFields, Subject } from "../core/subject.ts";
import { changeName } from "../core/wire-words.ts";

/** An id that leads nowhere, in the form of a real one. Numbers that a vendor counts up are left far behind. */
export function wrongIdLike(id: string): string {
  if (/^\d+$/.test(id)) return `9${id}`;
  const last = id.at(-1) ?? "";
  const [one, other] = /\d/.test(last) ? ["0", "1"] : ["a", "b"];
  return id.slice(0, -1) + (last === one ? other : one);
}

/** Ensure finds this instance and changes nothing. */
async function finds(subject: Subject, own: EnsureFields, id: string): Promise<void> {
  const { change, instance } = await subject.answered(subject.ensure(own), `NONE on ${id}`);
  const found = instance?.providerId ?? "none";
  const isFound = change === Change.NONE && found === id;
  expect(isFound, `NONE on ${id}`, () => `${changeName(change)} on ${found}`);
}

async function expectAbsent(bench: Bench, subject: Subject): Promise<void> {
  await settled(bench, async () => refused(await subject.describe(), { reasons: ["NOT_FOUND"] }));
}

export const ensureIdentityCases: readonly ConformanceCase[] = [
  {
    name: "ensure/another-clusters-is-left-alone",
    promise:
      "an instance of another cluster is ALREADY_EXISTS (OWNED_BY_ANOTHER) and stays as it is",
    checks: ["error:owned-by-another", "list:outcome"],
    needs: [],
    fix: "compare the cluster part of the stamp before any change; answer ResourceInfo.owner",
    run: async (bench) => {
      const { subject: theirs, instance } = await sharedForeign(bench);
      const ours = theirs.as({ owner: { cluster: bench.cluster, uid: "uid-ours" } });
      const spec = {
        ...theirs.spec,
        parameters: { ...theirs.spec.parameters, ...bench.parameters.changed },
      };
      const { providerId, realm } = instance;
      for (const own of [
        {},
        { spec },
        { mayCreate: false },
        { recorded: { providerId, realm } },
        ...(bench.hasCapability("VALIDATE_ONLY") ? [{ validateOnly: true }] : []),
      ]) {
        const failure = refused(await ours.ensure(own), {
          reasons: ["OWNED_BY_ANOTHER"],
          outcomes: ["NOT_APPLIED"],
        });
        expectOwnerNamed(failure, theirs);
      }
      await finds(theirs, {}, providerId);
    },
  },
  {
    name: "ensure/dead-predecessor-is-taken-over",
    promise:
      "with another uid of the same cluster and key the same instance is ours, restamped where there is room",
    checks: ["rule:identity", "list:change", "list:stamp"],
    needs: [],
    fix: "the uid is no identity: same key and cluster is the same instance; write the new uid",
    run: async (bench) => {
      const before = bench.subject("predecessor");
      const { providerId: id } = await before.converge();
      const after = before.as({ owner: { cluster: bench.cluster, uid: "uid-successor" } });
      const { change, instance } = await after.answered(after.ensure(), "the same instance");
      const isKnown = change === Change.RESTAMPED || change === Change.NONE;
      expect(isKnown, "RESTAMPED, or NONE where the uid has no room", () => changeName(change));
      const came = (): string => instance?.providerId ?? "none";
      expect(instance?.providerId === id, `the same instance ${id}`, came);
      const uid = instance?.owner?.uid ?? "";
      const isWritten = change === Change.NONE || uid === "" || uid === "uid-successor";
      expect(isWritten, "owner.uid uid-successor", () => uid);
      await finds(after, {}, id);
    },
  },
  {
    name: "ensure/recorded-id-that-is-right",
    promise: "a recorded id and realm that are right lead to the instance",
    checks: ["rule:identity"],
    needs: [],
    fix: "read the recorded id first, and compare the stamp that you find there",
    run: async (bench) => {
      const { subject, instance } = await shared(bench);
      const { providerId, realm } = instance;
      await finds(subject, { recorded: { providerId, realm } }, providerId);
    },
  },
  {
    name: "ensure/recorded-id-that-leads-nowhere",
    promise: "a recorded id that does not exist is a hint that failed: the key decides",
    checks: ["rule:identity"],
    needs: [],
    fix: "look by key when nothing is at the recorded id, before you create",
    run: async (bench) => {
      const { subject, instance } = await shared(bench);
      const { providerId } = instance;
      for (const wrong of [wrongIdLike(providerId), "no/such id?#%", "../../x"]) {
        await finds(subject, { recorded: { providerId: wrong, realm: "" } }, providerId);
      }
    },
  },
  {
    name: "ensure/recorded-id-of-another-instance",
    promise:
      "a recorded id that carries another key's stamp is not taken for ours, and not touched",
    checks: ["rule:identity", "list:stamp"],
    needs: [],
    fix: "what is found at the recorded id counts only when its stamp has our key",
    run: async (bench) => {
      const { subject: other, instance } = await shared(bench);
      const { providerId } = instance;
      const recorded = { providerId, realm: instance.realm };
      const subject = bench.subject("recorded-of-another");
      refused(await subject.ensure({ recorded, mayCreate: false }), { reasons: ["IN_DOUBT"] });
      const made = await subject.converge({ recorded });
      expectOurs(made, subject);
      const isNew = made.providerId !== providerId;
      expect(isNew, "an instance of its own", () => `${providerId}, which is ${other.key}'s`);
      await finds(other, {}, providerId);
    },
  },
  {
    name: "ensure/recorded-id-of-another-cluster",
    promise: "a recorded id of another cluster's instance is not touched",
    checks: ["error:owned-by-another", "rule:identity"],
    needs: [],
    fix: "compare owner and key of what is at the recorded id before any change",
    run: async (bench) => {
      const { subject: theirs, instance } = await sharedForeign(bench);
      const recorded = { providerId: instance.providerId, realm: instance.realm };
      const ours = theirs.as({ owner: { cluster: bench.cluster, uid: "uid-ours" } });
      const outcomes = ["NOT_APPLIED"];
      refused(await ours.ensure({ recorded }), { reasons: ["OWNED_BY_ANOTHER"], outcomes });
      await finds(theirs, {}, instance.providerId);
    },
  },
  {
    name: "ensure/recorded-realm-that-is-wrong",
    promise:
      "another realm than the recorded one is FAILED_PRECONDITION (REALM), and nothing is made",
    checks: ["error:wrong-realm", "list:precondition", "list:outcome"],
    needs: [],
    fix: "compare recorded.realm with the realm that the target leads to, before anything else",
    run: async (bench) => {
      const subject = bench.subject("wrong-realm");
      refused(await subject.ensure({ recorded: { providerId: "", realm: "another realm" } }), {
        reasons: ["WRONG_REALM"],
        outcomes: ["NOT_APPLIED"],
        preconditions: ["REALM"],
      });
      await expectAbsent(bench, subject);
    },
  },
  {
    name: "ensure/realms-are-told-apart",
    promise: "one key at two accounts or regions is two instances in two realms",
    checks: ["rule:identity", "error:wrong-realm"],
    needs: [{ kind: "parameter", name: "otherRealm" }],
    fix: "make the realm from the account and region that the call speaks for",
    run: async (bench) => {
      const { otherRealm } = bench.parameters;
      if (otherRealm === undefined) return;
      const { subject: here, instance } = await shared(bench);
      const { key, owner, spec } = here;
      const there = bench.subject("there", { key, owner, spec, target: otherRealm });
      refused(await there.describe(), { reasons: ["NOT_FOUND"] });
      const { providerId, realm } = instance;
      const recorded = { providerId, realm };
      refused(await there.ensure({ recorded }), { reasons: ["WRONG_REALM"] });
      const other = await there.converge();
      expect(other.realm !== realm, `another realm than ${realm}`, () => other.realm);
      if (bench.hasCapability("DELETE")) await there.remove();
      await finds(here, {}, providerId);
    },
  },
  {
    name: "ensure/keys-are-told-apart",
    promise: "keys that differ in little are different instances",
    checks: ["rule:identity", "list:stamp"],
    needs: [],
    fix: "make the stamp from the whole key, slashes included; do not join, cut or fold its parts",
    run: async (bench) => {
      const start = `conformance-${bench.runId}`;
      const keys = [`${start}/near/a-b`, `${start}/near-a/b`, `${start}/near/a.b`];
      const ids = new Map<string, string>();
      for (const key of keys) {
        const subject = bench.subject("near", { key });
        const instance = await subject.converge();
        expectOurs(instance, subject);
        const twin = ids.get(instance.providerId);
        expect(twin === undefined, `an instance of its own for ${key}`, () => `that of ${twin}`);
        ids.set(instance.providerId, key);
      }
    },
  },
  {
    name: "ensure/owner-is-written",
    promise: "another caller reads from the instance whose it is",
    checks: ["list:stamp", "error:owned-by-another"],
    needs: [],
    fix: "write the owner's part of the stamp with the create, and read it back",
    run: async (bench) => {
      const { subject } = await sharedForeign(bench);
      const reader = subject.as({ owner: { cluster: bench.cluster, uid: "uid-reader" } });
      const { instance } = await reader.answered(reader.describe(), "another cluster's instance");
      if (instance !== undefined) expectOwnedBy(instance, subject);
    },
  },
];
