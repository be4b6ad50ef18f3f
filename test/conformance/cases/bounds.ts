/** Lists that never end: given up, and no proof of anything. */
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { expectSoundDetails } from "../core/expectations.ts";
import { admitted, askedSince, expectCount } from "../core/vendor-changes.ts";
import { describeReply } from "../core/wire-client.ts";

/** What a whole list of any size may cost; one that goes round in a circle is left sooner. */
const requestsMax = 2_500;

export const boundsCases: readonly ConformanceCase[] = [
  {
    name: "bounds/list-without-end",
    promise:
      "a vendor whose pages go round in a circle is left within a bound; nothing is absent by that, and nothing is made",
    checks: ["rule:bounds", "rule:identity", "error:absent"],
    needs: [
      { kind: "effect", name: "again" },
      { kind: "switch", name: "pageSize" },
    ],
    fix: "limit the pages and instances of a scan, and give up when a token comes again: VENDOR_UNREADABLE",
    timeoutMs: 60_000,
    run: async (bench) => {
      for (const name of ["circle-a", "circle-b"]) await bench.subject(name).converge();
      const subject = bench.subject("circle-none");
      await bench.faults.turn({ pageSize: 1 });
      await bench.faults.arm({ operation: "list", effect: "again", times: 10_000 });
      const mark = await bench.faults.mark();
      const replies = [await admitted(() => subject.describe()), await subject.ensure()];
      const count = await askedSince(bench, mark, "list");
      // Whoever looks by key needs no list.
      if (count === 0) return;
      const expected = "a failure that is not NOT_FOUND";
      for (const reply of replies) {
        if (reply.kind === "answer") {
          expect(false, expected, () => describeReply(reply));
          continue;
        }
        expectSoundDetails(reply.failure, expected);
        const isLeft =
          reply.failure.code !== "NOT_FOUND" && reply.failure.code !== "DEADLINE_EXCEEDED";
        expect(isLeft, `${expected}, before the deadline`, () => describeReply(reply));
      }
      expect(count <= requestsMax, `at most ${requestsMax} pages`, () => `${count} were asked for`);
      await expectCount(bench, subject.keyStamp, 0);
    },
  },
];
