/** Release: takes our stamp off, and leaves the instance running. */
import { expect } from "../core/case.ts";
import type { ConformanceCase, Need } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { leastParameters } from "../core/least-parameters.ts";
import { send } from "../core/request-fields.ts";
import { settled } from "../core/settled.ts";
import { shared, sharedForeign } from "../core/shared-subjects.ts";
import { removalStateName } from "../core/wire-words.ts";

const canRelease: Need = { kind: "capability", name: "RELEASE" };
/** What was released is taken back by its id: nothing of the run may stay at the vendor. */
const canAdopt: Need = { kind: "capability", name: "ADOPT" };
const outcomes = ["NOT_APPLIED"];

export const releaseCases: readonly ConformanceCase[] = [
  {
    name: "release/takes-the-stamp-off",
    promise:
      "released, it is NOT_FOUND by key and recorded id, listed nowhere, and still there with its fields",
    checks: ["rpc:release", "error:absent"],
    needs: [canRelease, canAdopt],
    fix: "remove short stamp, key, owner and hash from the instance and leave everything else",
    run: async (bench) => {
      const before = bench.subject("let-go");
      const made = await before.converge();
      const { providerId, realm } = made;
      const answer = await before.answered(before.release(), "OK");
      expect(answer.state === 1, "DELETED: our stamp is gone", () =>
        removalStateName(answer.state),
      );
      expect(answer.realm === realm, `realm ${realm}`, () => answer.realm);
      await settled(bench, async () => {
        refused(await before.describe(), { reasons: ["NOT_FOUND"] });
        refused(await before.release(), { reasons: ["NOT_FOUND"], outcomes });
      });
      const after = bench.subject("let-go-and-adopted");
      const { instance } = await after.answered(
        after.ensure({ spec: { parameters: leastParameters(bench) }, adopt: { providerId } }),
        "the instance, left at the vendor, to be adopted",
      );
      expect(instance?.providerId === providerId, providerId, () => `${instance?.providerId}`);
      for (const [name, value] of Object.entries(made.observed?.parameters ?? {})) {
        const have = instance?.observed?.parameters[name];
        expect(have === value, `parameters.${name} as before, ${value}`, () => `${have}`);
      }
      refused(await before.describe(), { reasons: ["NOT_FOUND"] });
    },
  },
  {
    name: "release/never-existed-is-not-found",
    promise: "Release of what never existed is NOT_FOUND with the realm",
    checks: ["rpc:release", "error:absent", "list:outcome"],
    needs: [canRelease],
    fix: "answer as Delete does where nothing carries the key",
    run: async (bench) => {
      const failure = refused(await bench.subject("nothing-to-release").release(), {
        reasons: ["NOT_FOUND"],
        outcomes,
      });
      const { realm = "" } = failure.metadata;
      expect(realm !== "", "ErrorInfo.metadata.realm", () => "it is absent");
    },
  },
  {
    name: "release/another-clusters-is-not-ours",
    promise: "another cluster's instance is NOT_FOUND (NOT_OURS), and keeps its stamp",
    checks: ["rpc:release", "error:owned-by-another", "list:outcome"],
    needs: [canRelease],
    fix: "compare the cluster part of the stamp before you take it off",
    run: async (bench) => {
      const { subject: theirs, instance } = await sharedForeign(bench);
      const { providerId, realm } = instance;
      const ours = theirs.as({ owner: { cluster: bench.cluster, uid: "uid-ours" } });
      for (const recorded of [undefined, { providerId, realm }]) {
        refused(await ours.release({ recorded }), { reasons: ["NOT_OURS"], outcomes });
      }
      const after = await theirs.answered(theirs.describe(), "the instance by its stamp");
      const id = after.instance?.providerId;
      expect(id === providerId, providerId, () => `${id}`);
    },
  },
  {
    name: "release/wrong-realm-is-refused",
    promise: "another realm than the recorded one is FAILED_PRECONDITION (REALM)",
    checks: ["rpc:release", "error:wrong-realm", "list:outcome"],
    needs: [canRelease],
    fix: "compare recorded.realm as Delete does",
    run: async (bench) => {
      const { subject } = await shared(bench);
      refused(await subject.release({ recorded: { providerId: "", realm: "another realm" } }), {
        reasons: ["WRONG_REALM"],
        outcomes,
        preconditions: ["REALM"],
      });
      await subject.answered(subject.describe(), "the instance, stamped as before");
    },
  },
  {
    name: "release/without-capability",
    promise: "without RELEASE the RPC is UNIMPLEMENTED (UNSUPPORTED), and the stamp stays",
    checks: ["rpc:release", "error:version", "list:capability"],
    needs: [{ kind: "no-capability", name: "RELEASE" }],
    fix: "answer UNIMPLEMENTED with reason UNSUPPORTED where the stamp cannot be taken off",
    run: async (bench) => {
      const { subject } = await shared(bench);
      refused(await send({ bench, rpc: "release", subject }), {
        reasons: ["UNSUPPORTED"],
        codes: ["UNIMPLEMENTED"],
        outcomes,
      });
      await subject.answered(subject.describe(), "the instance, stamped as before");
    },
  },
];
