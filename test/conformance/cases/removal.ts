/** Delete: ends what is ours, says what the vendor says, and touches nothing else. */
import type { Bench } from "../core/bench.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase, Need } from "../core/case.ts";
import { expectOwnerNamed, refused } from "../core/expectations.ts";
import type { RpcFailure } from "../core/rpc-failure.ts";
import { settled } from "../core/settled.ts";
import { shared, sharedForeign } from "../core/shared-subjects.ts";
import type { Subject } from "../core/subject.ts";
import { removalStateName } from "../core/wire-words.ts";
import { wrongIdLike } from "./ensure-identity.ts";

const canDelete: Need = { kind: "capability", name: "DELETE" };
const gone = { reasons: ["NOT_FOUND"], outcomes: ["NOT_APPLIED"] };

/** NOT_FOUND as the vendor's attested word: it says for which realm. */
function expectRealm(failure: RpcFailure, realm?: string): void {
  const found = failure.metadata["realm"] ?? "";
  const expected = `ErrorInfo.metadata.realm ${realm ?? "to be set"}`;
  expect(realm === undefined ? found !== "" : found === realm, expected, () => `"${found}"`);
}

/** Describe agrees that it is gone; with a lag, as soon as that has passed. */
async function expectGone(bench: Bench, subject: Subject, realm?: string): Promise<void> {
  await settled(bench, async () =>
    expectRealm(refused(await subject.describe(), { reasons: ["NOT_FOUND"] }), realm),
  );
}

async function expectThere(subject: Subject, id: string): Promise<void> {
  const { instance } = await subject.answered(subject.describe(), `instance ${id} untouched`);
  expect(instance?.providerId === id, `instance ${id} untouched`, () => `${instance?.providerId}`);
}

export const removalCases: readonly ConformanceCase[] = [
  {
    name: "removal/ends-what-is-there",
    promise:
      "Delete by key alone answers DELETED or DELETING; then Describe agrees and names the realm",
    checks: ["rule:deletion", "error:absent", "rule:identity"],
    needs: [canDelete],
    fix: "find the instance by its key when no id is recorded; answer DELETED when the vendor agrees",
    run: async (bench) => {
      const subject = bench.subject("removed");
      const { realm } = await subject.converge();
      const { state, realm: said } = await subject.answered(subject.delete(), "OK");
      const isKnown = state === 1 || state === 2;
      expect(isKnown, "DELETED or DELETING", () => removalStateName(state));
      expect(said === realm, `realm ${realm}`, () => said);
      await subject.remove();
      await expectGone(bench, subject, realm);
    },
  },
  {
    name: "removal/again-is-not-found",
    promise: "Delete again is NOT_FOUND with the realm, each time",
    checks: ["error:absent", "rule:deletion", "list:outcome"],
    needs: [canDelete],
    fix: "pass the vendor's attested absence on as NOT_FOUND with metadata realm",
    run: async (bench) => {
      const subject = bench.subject("removed-twice");
      const { realm, providerId } = await subject.converge();
      await subject.remove();
      for (const recorded of [undefined, { providerId, realm }]) {
        await settled(bench, async () =>
          expectRealm(refused(await subject.delete({ recorded }), gone), realm),
        );
      }
    },
  },
  {
    name: "removal/never-existed-is-not-found",
    promise: "Delete of what never existed is NOT_FOUND with the realm",
    checks: ["error:absent", "list:outcome"],
    needs: [canDelete],
    fix: "prove absence by key, then answer NOT_FOUND; callers count it as done",
    run: async (bench) => {
      const subject = bench.subject("never-existed");
      for (const providerId of ["", "never-existed"]) {
        const reply = await subject.delete({ recorded: { providerId, realm: "" } });
        expectRealm(refused(reply, gone));
      }
    },
  },
  {
    name: "removal/wrong-recorded-id-does-not-hide-it",
    promise: "with a recorded id that leads nowhere the instance is found by key and removed",
    checks: ["rule:identity", "rule:deletion"],
    needs: [canDelete],
    fix: "absence at the recorded id is not absence: look by key before you say NOT_FOUND",
    run: async (bench) => {
      const subject = bench.subject("removed-by-key");
      const { providerId } = await subject.converge();
      const recorded = { providerId: wrongIdLike(providerId), realm: "" };
      await subject.answered(subject.delete({ recorded }), "OK");
      await subject.remove();
      await expectGone(bench, subject);
    },
  },
  {
    name: "removal/recorded-id-of-another-is-not-removed",
    promise: "with the recorded id of another key's instance, that one stays",
    checks: ["rule:identity", "rule:deletion"],
    needs: [canDelete],
    fix: "remove what is at the recorded id only when its stamp has the request's key",
    run: async (bench) => {
      const { subject: other, instance } = await shared(bench);
      const { providerId, realm } = instance;
      const recorded = { providerId, realm };
      const subject = bench.subject("removed-alone");
      refused(await subject.delete({ recorded }), gone);
      await subject.converge();
      await subject.answered(subject.delete({ recorded }), "OK");
      await subject.remove();
      await expectThere(other, providerId);
    },
  },
  {
    name: "removal/another-clusters-is-not-ours",
    promise: "another cluster's instance is NOT_FOUND (NOT_OURS) with its owner, and stays",
    checks: ["error:owned-by-another", "list:outcome"],
    needs: [canDelete],
    fix: "compare the cluster part of the stamp before you delete; answer ResourceInfo.owner",
    run: async (bench) => {
      const { subject: theirs, instance } = await sharedForeign(bench);
      const { providerId, realm } = instance;
      const ours = theirs.as({ owner: { cluster: bench.cluster, uid: "uid-ours" } });
      for (const recorded of [undefined, { providerId, realm }]) {
        const failure = refused(await ours.delete({ recorded }), {
          reasons: ["NOT_OURS"],
          outcomes: ["NOT_APPLIED"],
        });
        expectOwnerNamed(failure, theirs);
      }
      await expectThere(theirs, providerId);
    },
  },
  {
    name: "removal/wrong-realm-is-refused",
    promise: "another realm than the recorded one is FAILED_PRECONDITION (REALM), never NOT_FOUND",
    checks: ["error:wrong-realm", "list:precondition", "list:outcome"],
    needs: [canDelete],
    fix: "compare recorded.realm with the realm of the target before you look for the instance",
    run: async (bench) => {
      const { subject, instance } = await shared(bench);
      for (const asked of [subject, bench.subject("never-in-this-realm")]) {
        refused(await asked.delete({ recorded: { providerId: "", realm: "another realm" } }), {
          reasons: ["WRONG_REALM"],
          outcomes: ["NOT_APPLIED"],
          preconditions: ["REALM"],
        });
      }
      await expectThere(subject, instance.providerId);
    },
  },
  {
    name: "removal/other-realm-has-its-own",
    promise: "Delete at another account or region removes nothing here, and names that realm",
    checks: ["error:wrong-realm", "error:absent"],
    needs: [canDelete, { kind: "parameter", name: "otherRealm" }],
    fix: "send the call to the account and region of the target, and make the realm from them",
    run: async (bench) => {
      const { otherRealm } = bench.parameters;
      if (otherRealm === undefined) return;
      const { subject, instance } = await shared(bench);
      const there = subject.as({ target: otherRealm });
      const failure = refused(await there.delete(), gone);
      const realm = failure.metadata["realm"] ?? "";
      const isOther = realm !== "" && realm !== instance.realm;
      expect(isOther, `another realm than ${instance.realm}`, () => `"${realm}"`);
      const recorded = { providerId: instance.providerId, realm: instance.realm };
      refused(await there.delete({ recorded }), { reasons: ["WRONG_REALM"] });
      await expectThere(subject, instance.providerId);
    },
  },
  {
    name: "removal/without-capability",
    promise: "without DELETE the RPC is UNIMPLEMENTED (UNSUPPORTED), and nothing is touched",
    checks: ["error:cannot-be-deleted", "error:version", "list:capability"],
    needs: [{ kind: "no-capability", name: "DELETE" }],
    fix: "answer UNIMPLEMENTED with reason UNSUPPORTED where the vendor cannot delete",
    run: async (bench) => {
      const codes = ["UNIMPLEMENTED"];
      const outcomes = ["NOT_APPLIED"];
      const subject = bench.subject("cannot-delete");
      refused(await subject.delete(), { reasons: ["UNSUPPORTED"], codes, outcomes });
    },
  },
  {
    name: "removal/made-anew-is-one",
    promise: "what was deleted can be made again, and is one instance",
    checks: ["rule:deletion", "rule:identity", "rule:spare"],
    needs: [canDelete],
    fix: "forget what you remember of a key when its instance is gone",
    run: async (bench) => {
      const subject = bench.subject("made-anew");
      const { providerId, realm } = await subject.converge();
      await subject.remove();
      await expectGone(bench, subject);
      const anew = await subject.converge({ recorded: { providerId, realm } });
      await expectThere(subject, anew.providerId);
      await subject.remove();
      await expectGone(bench, subject);
    },
  },
];
