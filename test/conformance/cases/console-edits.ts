/** What somebody does at the vendor's console is seen, and put right once. */
import { Change } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { EditName } from "../../../services/vendor-emulator/fault-words.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { keepsNames } from "../core/needs.ts";
import { settled } from "../core/settled.ts";
import type { Subject } from "../core/subject.ts";
import { changeName } from "../core/wire-words.ts";
import { expectCount } from "../core/vendor-changes.ts";

async function driftOf(subject: Subject): Promise<readonly string[]> {
  const { spec } = subject;
  const { instance } = await subject.answered(subject.describe({ spec }), "OK with drift");
  return (instance?.drift ?? []).map(({ field }) => field);
}

function driftCase(edit: EditName, isField: (field: string) => boolean): ConformanceCase {
  return {
    name: `console/${edit}-is-drift`,
    promise: `${edit} at the vendor's console shows in Describe as drift, and Ensure puts it right with one update`,
    checks: ["rpc:describe", "list:change"],
    needs: [
      { kind: "edit", name: edit },
      { kind: "capability", name: "UPDATE" },
      ...(edit === "rename" ? [keepsNames] : []),
    ],
    fix: "compare what the vendor shows with the wanted spec, field by field, in Describe and in Ensure",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject(edit);
      const { providerId } = await subject.converge();
      await bench.faults.edit({ edit, id: providerId });
      const fields = await settled(bench, async () => {
        const drifted = await driftOf(subject);
        expect(drifted.some(isField), "the edited field", () => drifted.join(", ") || "no drift");
        return drifted;
      });
      const { change } = await subject.answered(subject.ensure(), "change UPDATED");
      const expected = `change UPDATED for ${fields.join(", ")}`;
      expect(change === Change.UPDATED, expected, () => changeName(change));
      await settled(bench, async () => {
        const left = await driftOf(subject);
        expect(left.length === 0, "no drift after Ensure", () => left.join(", "));
      });
      await expectCount(bench, subject.keyStamp, 1);
    },
  };
}

export const consoleEditCases: readonly ConformanceCase[] = [
  driftCase("rename", (field) => field === "displayName"),
  driftCase("change", (field) => field.startsWith("parameters.")),
  {
    name: "console/another-notation-is-no-drift",
    promise: "values that the vendor writes in another way but mean the same are no drift",
    checks: ["rpc:describe", "list:change"],
    needs: [{ kind: "edit", name: "normalise" }],
    fix: "bring what the vendor shows into one form before you compare",
    run: async (bench) => {
      const subject = bench.subject("notation");
      const { providerId } = await subject.converge();
      await bench.faults.edit({ edit: "normalise", id: providerId });
      const fields = await driftOf(subject);
      expect(fields.length === 0, "no drift", () => fields.join(", "));
      const { change } = await subject.answered(subject.ensure(), "change NONE");
      expect(change === Change.NONE, "change NONE", () => changeName(change));
    },
  },
  {
    name: "console/what-was-removed-is-made-once",
    promise: "an instance removed at the console is NOT_FOUND, and Ensure makes it exactly once",
    checks: ["error:absent", "error:in-doubt", "rule:identity"],
    needs: [{ kind: "edit", name: "remove" }],
    fix: "absence at the recorded id, confirmed by key, is IN_DOUBT without may_create and a create with it",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("removed-by-hand");
      const { providerId, realm } = await subject.converge();
      await bench.faults.edit({ edit: "remove", id: providerId });
      await settled(bench, async () =>
        refused(await subject.describe(), { reasons: ["NOT_FOUND"] }),
      );
      const recorded = { providerId, realm };
      refused(await subject.ensure({ recorded, mayCreate: false }), {
        reasons: ["IN_DOUBT"],
        outcomes: ["NOT_APPLIED"],
        hasRetry: true,
      });
      const again = await subject.converge();
      const isNew = again.providerId !== providerId;
      expect(isNew || bench.hasCapability("CREATE_IDEMPOTENT"), "another id", () => providerId);
      await expectCount(bench, subject.keyStamp, 1);
    },
  },
  {
    name: "console/slow-removals-are-deleting",
    promise: "where the vendor takes its time, Delete says DELETING until Describe agrees",
    checks: ["rule:deletion"],
    needs: [
      { kind: "switch", name: "deletionMs" },
      { kind: "capability", name: "DELETE" },
    ],
    fix: "answer DELETED only when the instance is gone for a reader too; else DELETING with poll_after",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("slowly-removed");
      await subject.converge();
      await bench.faults.turn({ deletionMs: 2_000 });
      const { state, pollAfter } = await subject.answered(subject.delete(), "OK");
      const look = await subject.describe();
      const isGone = look.kind === "failure" && look.failure.reason === "NOT_FOUND";
      const isHonest = state === 2 || isGone;
      expect(isHonest, "DELETING while Describe still finds it", () => "DELETED");
      if (state === 2) {
        expect(pollAfter !== undefined, "poll_after with DELETING", () => "it is absent");
      }
      await subject.remove();
      await expectCount(bench, subject.keyStamp, 0);
    },
  },
];
