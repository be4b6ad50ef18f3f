/** A look at the vendor that its caller has given up: nothing of it is left behind. */
import { systemClock } from "../../../services/process/clock.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { describeReply } from "../core/wire-client.ts";

const deadlineMs = 700;
/** So long an adapter may take to notice that its caller's time is over. */
const noticeMs = 500;

export const givenUpLookCases: readonly ConformanceCase[] = [
  {
    name: "lost-answers/look-that-was-given-up-holds-nothing",
    promise:
      "an Ensure whose look at the vendor never ends is over with its deadline: its key is free for the next call",
    checks: ["rule:deadline", "rule:one-at-a-time"],
    needs: [{ kind: "effect", name: "hang" }],
    fix: "abort the vendor's reads with the call's deadline, and let go of the key: nothing was sent that could still take effect",
    run: async (bench) => {
      const subject = bench.subject("given-up");
      await subject.made();
      await bench.faults.arm({ operation: "any", effect: "hang", times: 10_000 });
      const reply = await subject.ensure({}, { deadlineMs });
      expect(reply.kind === "failure", "DEADLINE_EXCEEDED", () => describeReply(reply));
      await bench.faults.reset();
      await systemClock.sleep(noticeMs);
      const next = await subject.ensure({ mayCreate: false });
      const isBusy = next.kind === "failure" && next.failure.reason === "BUSY";
      expect(!isBusy, "the key to be free again", () => describeReply(next));
    },
  },
];
