/** Answers that never come: what was sent may have been done, and exactly one instance comes of it. */
import type { Fault } from "../../../services/vendor-emulator/fault-words.ts";
import { systemClock } from "../../../services/process/clock.ts";
import type { Bench } from "../core/bench.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase, Later, Need } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import type { Subject } from "../core/subject.ts";
import { describeReply } from "../core/wire-client.ts";
import { expectCount } from "./vendor-errors.ts";

const lost = ["VENDOR_UNREACHABLE", "VENDOR_ERROR", "VENDOR_UNREADABLE", "VENDOR_TIMEOUT"] as const;

interface Loss {
  readonly effect: "reset" | "cut" | "html" | "oversized" | "server-error";
  readonly moment: "before" | "after";
}

const losses: readonly Loss[] = [
  { effect: "reset", moment: "before" },
  { effect: "reset", moment: "after" },
  { effect: "cut", moment: "after" },
  { effect: "html", moment: "after" },
  { effect: "oversized", moment: "after" },
  { effect: "server-error", moment: "after" },
];

function needsOf({ effect }: Loss): readonly Need[] {
  return [{ kind: "vendor-faults" }, { kind: "effect", name: effect }];
}

/** How often the vendor was asked to do it since the mark. */
async function askedSince(
  bench: Bench,
  mark: number,
  operation: Fault["operation"],
): Promise<number> {
  const requests = await bench.faults.requestsSince(mark);
  return requests.filter((request) => request.operation === operation).length;
}

async function expectAskedOnce(
  bench: Bench,
  mark: number,
  operation: Fault["operation"],
): Promise<void> {
  const count = await askedSince(bench, mark, operation);
  expect(count === 1, `one ${operation} request to the vendor in this call`, () => `${count}`);
}

function createCase(loss: Loss): ConformanceCase {
  const { effect, moment } = loss;
  return {
    name: `lost-answers/create-${effect}-${moment}`,
    promise: `a create whose answer is lost (${effect}, ${moment} the vendor acted) has outcome UNKNOWN, is sent once, and ends in one instance`,
    checks: ["error:vendor-failure", "rule:retries", "list:outcome", "rule:bounds"],
    needs: needsOf(loss),
    fix: "say UNKNOWN once the request may have left; never send a create again in the same call",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject(`create-${effect}-${moment}`);
      await bench.faults.arm({ operation: "create", effect, moment });
      const mark = await bench.faults.mark();
      const reply = await subject.ensure({ notAfter: subject.notAfter(500) });
      await expectAskedOnce(bench, mark, "create");
      // Whoever reads what it made before it answers may know all the same.
      if (reply.kind === "failure") {
        const outcomes = moment === "before" ? ["UNKNOWN"] : ["UNKNOWN", "APPLIED", "PARTIAL"];
        refused(reply, { reasons: lost, outcomes });
      }
      return converged(bench, subject);
    },
  };
}

function converged(bench: Bench, subject: Subject): Later {
  return {
    afterMs: subject.doubtLeftMs,
    check: async () => {
      await subject.converge();
      await expectCount(bench, subject.keyStamp, 1);
    },
  };
}

function deleteCase(loss: Loss): ConformanceCase {
  const { effect, moment } = loss;
  return {
    name: `lost-answers/delete-${effect}-${moment}`,
    promise: `a Delete whose answer is lost (${effect}, ${moment} the vendor acted) is sent once, says UNKNOWN, and ends with nothing left`,
    checks: ["error:vendor-failure", "rule:retries", "list:outcome"],
    needs: [...needsOf(loss), { kind: "capability", name: "DELETE" }],
    fix: "say UNKNOWN once the request may have left; the caller asks again",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject(`delete-${effect}-${moment}`);
      await subject.converge();
      await bench.faults.arm({ operation: "delete", effect, moment });
      const mark = await bench.faults.mark();
      const reply = await subject.delete({ notAfter: subject.notAfter(500) });
      await expectAskedOnce(bench, mark, "delete");
      if (reply.kind === "failure") {
        const outcomes = moment === "before" ? ["UNKNOWN"] : ["UNKNOWN", "APPLIED", "PARTIAL"];
        refused(reply, { reasons: lost, outcomes });
      }
      return {
        afterMs: subject.doubtLeftMs,
        check: async () => {
          await subject.remove();
          await expectCount(bench, subject.keyStamp, 0);
        },
      };
    },
  };
}

/** Waits until what was left running at the vendor is over. */
async function untilFree(subject: Subject, waitMs: number): Promise<void> {
  await systemClock.sleep(waitMs);
  await subject.converge({ mayCreate: false }, 20_000);
}

export const lostAnswerCases: readonly ConformanceCase[] = [
  ...losses.map(createCase),
  ...losses.filter(({ effect }) => effect === "reset").map(deleteCase),
  {
    name: "lost-answers/read-failures-are-unavailable",
    promise:
      "a look that is reset, cut, answered in HTML, too large or redirected is UNAVAILABLE, never NOT_FOUND",
    checks: ["error:vendor-failure", "rule:bounds", "rule:endpoints"],
    needs: [{ kind: "vendor-faults" }],
    fix: "whatever is not the vendor's own whole answer is VENDOR_UNREACHABLE or VENDOR_UNREADABLE",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("unreadable");
      await subject.converge();
      for (const effect of ["reset", "cut", "html", "oversized", "redirect"] as const) {
        await bench.faults.arm({ operation: "any", effect, times: 10_000 });
        const reply = await subject.describe();
        await bench.faults.reset();
        refused(reply, { reasons: lost, codes: ["UNAVAILABLE", "DEADLINE_EXCEEDED"] });
        await subject.answered(subject.describe(), `OK after ${effect} is over`);
      }
    },
  },
  {
    name: "lost-answers/look-ends-with-its-deadline",
    promise: "a look at a vendor that never answers ends with the caller's deadline",
    checks: ["rule:deadline"],
    needs: [{ kind: "vendor-faults" }],
    fix: "pass the call's deadline to the vendor's reads, and abort them with it",
    run: async (bench) => {
      const subject = bench.subject("hanging-look");
      await subject.converge();
      await bench.faults.arm({ operation: "any", effect: "hang", times: 10_000 });
      const startMs = performance.now();
      const reply = await subject.describe({}, { deadlineMs: 1_000 });
      const tookMs = performance.now() - startMs;
      await bench.faults.reset();
      expect(reply.kind === "failure", "DEADLINE_EXCEEDED", () => describeReply(reply));
      const isInTime = tookMs < 4_000;
      expect(isInTime, "an end at the deadline of 1000 ms", () => `it took ${tookMs} ms`);
      await subject.answered(subject.describe(), "OK once the vendor answers again");
    },
  },
  {
    name: "lost-answers/late-create-is-known-to-the-next-call",
    promise:
      "a create that outlives its caller's deadline holds its key, and its result is the next call's",
    checks: ["rule:deadline", "rule:one-at-a-time", "error:busy"],
    needs: [{ kind: "vendor-faults" }],
    fix: "let a mutation that was sent run to its own deadline; hold its key meanwhile, and remember what came",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("late-create");
      await bench.faults.arm({ operation: "create", effect: "slow", delayMs: 2_000 });
      const first = await subject.ensure({}, { deadlineMs: 700 });
      expect(first.kind === "failure", "DEADLINE_EXCEEDED", () => describeReply(first));
      const second = await subject.ensure();
      refused(second, { reasons: ["BUSY"], outcomes: ["NOT_APPLIED"], hasRetry: true });
      await untilFree(subject, 2_000);
      await subject.made({ mayCreate: false });
      await expectCount(bench, subject.keyStamp, 1);
    },
  },
  {
    name: "lost-answers/cancelled-create-runs-on",
    promise: "a create whose caller cancels runs on, holds its key, and is made once",
    checks: ["rule:deadline", "rule:one-at-a-time"],
    needs: [{ kind: "vendor-faults" }],
    fix: "cancelling is not rolling back: finish what was sent, and keep its key until then",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("cancelled-create");
      await bench.faults.arm({ operation: "create", effect: "slow", delayMs: 2_000 });
      const leaving = AbortSignal.timeout(700);
      await subject.ensure({}, { signal: leaving });
      refused(await subject.ensure(), { reasons: ["BUSY"], outcomes: ["NOT_APPLIED"] });
      await untilFree(subject, 2_000);
      await expectCount(bench, subject.keyStamp, 1);
    },
  },
  {
    name: "lost-answers/result-is-remembered-while-lists-lag",
    promise: "the result of a create whose caller left is known although lists do not show it yet",
    checks: ["rule:deadline", "rule:identity"],
    needs: [{ kind: "switch", name: "listLagMs" }],
    fix: "remember the id that a create answered after its caller had left, and look there first",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("remembered");
      await bench.faults.turn({ listLagMs: 60_000 });
      await bench.faults.arm({ operation: "create", effect: "slow", delayMs: 1_500 });
      await subject.ensure({}, { deadlineMs: 700 });
      await systemClock.sleep(1_500);
      const instance = await subject.converge({ mayCreate: false }, 15_000);
      const [made] = await bench.faults.instancesWith(subject.keyStamp);
      expect(instance.providerId === made?.id, `instance ${made?.id}`, () => instance.providerId);
      await expectCount(bench, subject.keyStamp, 1);
    },
  },
];
