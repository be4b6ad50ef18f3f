/** Ensure: made once, changed where it differs, and left alone where it does not. */
import { Change } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { expectOurs } from "../core/expectations.ts";
import { changeName } from "../core/wire-words.ts";

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
];
