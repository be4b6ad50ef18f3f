/** A quota that is used up: until when, where the vendor's own usage says it. */
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { shared } from "../core/shared-subjects.ts";

export const quotaResetCases: readonly ConformanceCase[] = [
  {
    name: "vendor-errors/quota-says-until-when",
    promise:
      "where usage shows when counting starts anew or credits lapse, a used-up quota carries QuotaReset",
    checks: ["error:quota"],
    needs: [
      { kind: "effect", name: "quota-exhausted" },
      { kind: "capability", name: "USAGE" },
    ],
    fix: "put what the vendor says of the end of its period into QuotaReset, read from usage where the refusal does not say it",
    timeoutMs: 60_000,
    run: async (bench) => {
      const { subject: known } = await shared(bench);
      const { instance } = await known.answered(known.describe(), "the instance with its usage");
      const { calls, credits } = instance?.usage ?? {};
      // A vendor that does not say when has nothing to pass on.
      if (calls?.resetsAt === undefined && credits?.expiresAt === undefined) return;
      const subject = bench.subject("quota-until-when");
      await bench.faults.arm({ operation: "create", effect: "quota-exhausted" });
      const failure = refused(await subject.ensure(), { reasons: ["QUOTA_EXHAUSTED"] });
      const untilMs = failure.quotaResetsAtMs;
      expect(untilMs !== undefined, "QuotaReset", () => "it is absent");
      expect((untilMs ?? 0) > Date.now(), "QuotaReset in the future", () => `${untilMs}`);
    },
  },
];
