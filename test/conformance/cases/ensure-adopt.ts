/** Ensure with adopt: an instance that somebody else made becomes ours, once and on purpose. */
import { Change } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Bench } from "../core/bench.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase, Need } from "../core/case.ts";
import { expectOurs, refused } from "../core/expectations.ts";
import { settled } from "../core/settled.ts";
import { shared } from "../core/shared-subjects.ts";
import type { EnsureFields, Subject } from "../core/subject.ts";
import { changeName } from "../core/wire-words.ts";
import { wrongIdLike } from "./ensure-identity.ts";

const canAdopt: Need = { kind: "capability", name: "ADOPT" };
const outcomes = ["NOT_APPLIED"];

/** Ensure that adopts, or finds what it has adopted before. */
async function adopted(
  subject: Subject,
  adopt: NonNullable<EnsureFields["adopt"]>,
  expected: Change,
): Promise<Instance | undefined> {
  const words = `${changeName(expected)} on ${adopt.providerId}`;
  const answer = await subject.answered(subject.ensure({ adopt }), words);
  const came = (): string => `${changeName(answer.change)} on ${answer.instance?.providerId}`;
  const isRight = answer.change === expected && answer.instance?.providerId === adopt.providerId;
  expect(isRight, words, came);
  if (answer.instance !== undefined) expectOurs(answer.instance, subject);
  return answer.instance;
}

async function expectAbsent(bench: Bench, subject: Subject): Promise<void> {
  await settled(bench, async () => refused(await subject.describe(), { reasons: ["NOT_FOUND"] }));
}

export const ensureAdoptCases: readonly ConformanceCase[] = [
  {
    name: "ensure/adopts-what-nobody-owns",
    promise: "an instance without stamp is taken over by its id: ADOPTED, then NONE",
    checks: ["list:change", "list:capability", "rpc:release"],
    needs: [canAdopt, { kind: "capability", name: "RELEASE" }],
    fix: "read adopt.provider_id, see that it carries no stamp, write ours with the wanted fields",
    run: async (bench) => {
      const before = bench.subject("released");
      const { providerId } = await before.converge();
      await before.answered(before.release(), "its stamp taken off");
      await expectAbsent(bench, before);
      const after = bench.subject("adopter");
      await adopted(after, { providerId }, Change.ADOPTED);
      await adopted(after, { providerId }, Change.NONE);
      await expectAbsent(bench, before);
    },
  },
  {
    name: "ensure/takes-over-from-the-named-owner-only",
    promise:
      "another cluster's instance is taken over only from exactly the owner that is named, and once",
    checks: ["error:owned-by-another", "list:change"],
    needs: [canAdopt],
    fix: "compare take_over_from with the owner that is stamped; absent means unowned",
    run: async (bench) => {
      const owner = { cluster: bench.otherCluster, uid: "uid-before" };
      const before = bench.subject("taken-over", { owner });
      const { providerId } = await before.converge();
      const after = before.as({ owner: { cluster: bench.cluster, uid: "uid-after" } });
      const refusal = { reasons: ["OWNED_BY_ANOTHER"], outcomes };
      const stranger = { cluster: `${bench.runId}-stranger`, uid: "uid-before" };
      refused(await after.ensure({ adopt: { providerId } }), refusal);
      refused(await after.ensure({ adopt: { providerId, takeOverFrom: stranger } }), refusal);
      await adopted(after, { providerId, takeOverFrom: owner }, Change.ADOPTED);
      // Removed by whoever owns it now.
      bench.subjects.splice(bench.subjects.indexOf(before), 1, after);
      await adopted(after, { providerId, takeOverFrom: owner }, Change.NONE);
      // Left in a file by the former owner, it does not take the instance back.
      refused(await before.ensure({ adopt: { providerId, takeOverFrom: owner } }), refusal);
      refused(await before.ensure(), refusal);
    },
  },
  {
    name: "ensure/does-not-adopt-our-other-instance",
    promise: "an instance that another key of ours owns is not adopted",
    checks: ["error:owned-by-another", "rule:identity"],
    needs: [canAdopt],
    fix: "an instance with any stamp is owned, also when the cluster is the same",
    run: async (bench) => {
      const { subject: other, instance } = await shared(bench);
      const { providerId } = instance;
      const subject = bench.subject("greedy");
      const reasons = ["OWNED_BY_ANOTHER"];
      refused(await subject.ensure({ adopt: { providerId } }), { reasons, outcomes });
      await expectAbsent(bench, subject);
      const after = await other.answered(other.describe(), "the other instance");
      if (after.instance !== undefined) expectOurs(after.instance, other);
    },
  },
  {
    name: "ensure/does-not-adopt-what-is-not-there",
    promise:
      "an id to adopt that does not exist is INVALID_ARGUMENT, and nothing is created instead",
    checks: ["error:bad-value", "list:outcome"],
    needs: [canAdopt],
    fix: "answer INVALID_FIELD with adopt.providerID when nothing is at the id: never create",
    run: async (bench) => {
      const { instance } = await shared(bench);
      const adopt = { providerId: wrongIdLike(instance.providerId) };
      const subject = bench.subject("adopts-nothing");
      const fields = ["adopt.providerID"];
      refused(await subject.ensure({ adopt }), { reasons: ["INVALID_FIELD"], fields, outcomes });
      await expectAbsent(bench, subject);
    },
  },
  {
    name: "ensure/adopt-without-capability",
    promise: "without ADOPT it is refused (UNSUPPORTED), and nothing is created instead",
    checks: ["list:capability", "error:version"],
    needs: [{ kind: "no-capability", name: "ADOPT" }],
    fix: "refuse adopt where you cannot serve it: never create a new instance instead",
    run: async (bench) => {
      const { instance } = await shared(bench);
      const subject = bench.subject("cannot-adopt");
      const adopt = { providerId: instance.providerId };
      refused(await subject.ensure({ adopt }), { reasons: ["UNSUPPORTED"], outcomes });
      await expectAbsent(bench, subject);
    },
  },
];
