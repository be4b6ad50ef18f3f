/** Answers that never come: what was sent may have been done, and exactly one instance comes of it. */
import { systemClock } from "../../../services/process/clock.ts";
import type { Bench } from "../core/bench.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase, Later, Need } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { send } from "../core/request-fields.ts";
import type { Subject } from "../core/subject.ts";
import {
  admitted,
  askedSince,
  expectCount,
  finished,
  succeedTwice,
  vendorChanges,
} from "../core/vendor-changes.ts";
import type { VendorChange } from "../core/vendor-changes.ts";
import { describeReply } from "../core/wire-client.ts";
import type { Reply, WireCall } from "../core/wire-client.ts";

const lost = ["VENDOR_UNREACHABLE", "VENDOR_ERROR", "VENDOR_UNREADABLE", "VENDOR_TIMEOUT"] as const;

interface Loss {
  readonly effect: "reset" | "cut" | "html" | "oversized" | "redirect" | "server-error";
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

function lossCase({ effect, moment }: Loss, change: VendorChange): ConformanceCase {
  const { operation } = change;
  const name = `${operation}-${effect}-${moment}`;
  return {
    name: `lost-answers/${name}`,
    promise: `a request to ${operation} whose answer is lost (${effect}, ${moment} the vendor acted) has outcome UNKNOWN, is sent once, and takes effect once`,
    checks: ["error:vendor-failure", "rule:retries", "list:outcome", "rule:bounds"],
    needs: [...change.needs, { kind: "vendor-faults" }, { kind: "effect", name: effect }],
    fix: "say UNKNOWN once the request may have left; never send a change again in the same call",
    timeoutMs: 60_000,
    run: async (bench) => {
      await succeedTwice(bench, name);
      const subject = await change.prepare(bench, name);
      await bench.faults.arm({ operation, effect, moment });
      const mark = await bench.faults.mark();
      const reply = await admitted(() => change.send(subject));
      const count = await askedSince(bench, mark, operation);
      expect(count === 1, `one request to ${operation} in this call`, () => `${count} came`);
      // Whoever reads what it changed before it answers may know all the same.
      if (reply.kind === "failure") {
        const outcomes = moment === "before" ? ["UNKNOWN"] : ["UNKNOWN", "APPLIED", "PARTIAL"];
        refused(reply, { reasons: lost, outcomes });
      } else if (moment === "before") {
        expect(false, "outcome UNKNOWN", () => describeReply(reply));
      }
      return await finished(bench, change, subject);
    },
  };
}

/** How long the vendor takes, and how long the caller waits. */
const slowMs = 1_500;
const patienceMs = 500;
/** Who reads on after its deadline asks again when the vendor has answered: long after the grace. */
const slowLookMs = 4_000;
const lookGraceMs = 1_000;

/** No longer than the adapter waits for a change at the vendor. */
function slowMsOf({ settling }: Bench): number {
  return Math.min(slowMs, Math.floor(settling.mutationDeadlineMs * 0.7));
}

interface Leaving {
  /** Of the case; "{}" stands for the operation. */
  readonly name: string;
  readonly words: string;
  readonly moment: "before" | "after";
  readonly call: () => WireCall;
}

const leavings: readonly Leaving[] = [
  {
    name: "late-{}-runs-on",
    words: "outlives its caller's deadline before the vendor acts",
    moment: "before",
    call: () => ({ deadlineMs: patienceMs }),
  },
  {
    name: "late-{}-stands",
    words: "outlives its caller's deadline after the vendor acted",
    moment: "after",
    call: () => ({ deadlineMs: patienceMs }),
  },
  {
    name: "cancelled-{}-runs-on",
    words: "is cancelled by its caller",
    moment: "before",
    call: () => ({ signal: AbortSignal.timeout(patienceMs) }),
  },
];

/** Held keys are refused at once, by each RPC that changes something. */
async function expectHeld(bench: Bench, subject: Subject): Promise<void> {
  const busy = { reasons: ["BUSY"], outcomes: ["NOT_APPLIED"], hasRetry: true };
  refused(await subject.ensure(), busy);
  if (bench.hasCapability("DELETE")) refused(await subject.delete(), busy);
}

function leavingCase(leaving: Leaving, change: VendorChange): ConformanceCase {
  const { operation } = change;
  const name = leaving.name.replace("{}", operation);
  return {
    name: `lost-answers/${name}`,
    promise: `a request to ${operation} that ${leaving.words} runs on and holds its key; what came of it stands, and nothing is done twice`,
    checks: ["rule:deadline", "rule:one-at-a-time", "error:busy"],
    needs: [...change.needs, { kind: "vendor-faults" }],
    fix: "leaving is not rolling back: let what was sent run to its own deadline, hold its key meanwhile, and remember what came",
    timeoutMs: 60_000,
    run: async (bench) => {
      await succeedTwice(bench, name);
      const subject = await change.prepare(bench, name);
      const { moment } = leaving;
      const delayMs = slowMsOf(bench);
      await bench.faults.arm({ operation, effect: "slow", moment, delayMs });
      const mark = await bench.faults.mark();
      const sentAtMs = Date.now();
      const reply = await admitted(() => change.send(subject, leaving.call()));
      expect(reply.kind === "failure", "no answer in time", () => describeReply(reply));
      await expectHeld(bench, subject);
      return await endOf(bench, change, { subject, mark, sentAtMs });
    },
  };
}

/** What was left running ends by itself: a create is found without another, all others end as wanted. */
async function endOf(
  bench: Bench,
  change: VendorChange,
  { subject, mark, sentAtMs }: { subject: Subject; mark: number; sentAtMs: number },
): Promise<Later> {
  const { operation } = change;
  if (operation === "delete") {
    return { afterMs: subject.doubtLeftMs, check: () => change.finish(bench, subject) };
  }
  return {
    afterMs: Math.max(0, sentAtMs + slowMsOf(bench) + 500 - Date.now()),
    check: async () => {
      await subject.converge({ mayCreate: false }, 20_000);
      const [made] = await bench.faults.instancesWith(subject.keyStamp);
      const requests = await bench.faults.requestsSince(mark);
      const count = requests.filter(
        (request) => request.operation === operation && request.id === made?.id,
      ).length;
      expect(count === 1, `one request to ${operation} of it in all`, () => `${count} came`);
      await change.finish(bench, subject);
    },
  };
}

const unreadable = ["reset", "cut", "html", "oversized", "redirect"] as const;
const needsFaults: Need = { kind: "vendor-faults" };

function lostLookCase(effect: (typeof unreadable)[number]): ConformanceCase {
  return {
    name: `lost-answers/look-${effect}`,
    promise: `looks whose answers are broken (${effect}) are UNAVAILABLE, never NOT_FOUND, and work again at once`,
    checks: ["error:vendor-failure", "error:absent", "rule:bounds", "rule:endpoints"],
    needs: [needsFaults, { kind: "effect", name: effect }],
    fix: "whatever is not the vendor's own whole answer is VENDOR_UNREACHABLE or VENDOR_UNREADABLE",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject(`look-${effect}`);
      const { providerId, realm } = await subject.converge();
      const looks: readonly (() => Promise<Reply<unknown>>)[] = [
        () => subject.describe(),
        () => subject.describe({ recorded: { providerId, realm } }),
        ...(bench.hasCapability("LIST_BY_OWNER")
          ? [() => send({ bench, rpc: "list", subject })]
          : []),
      ];
      for (const look of looks) {
        // Behind the blanks of a body that is too large stands the true answer: who reads on finds it.
        const moment = effect === "oversized" ? "after" : "before";
        await bench.faults.arm({ operation: "any", effect, moment, times: 10_000 });
        const reply = await admitted(look);
        await bench.faults.reset();
        refused(reply, { reasons: lost, codes: ["UNAVAILABLE", "DEADLINE_EXCEEDED"] });
        await subject.answered(admitted(look), `OK after ${effect} is over`);
      }
    },
  };
}

export const lostAnswerCases: readonly ConformanceCase[] = [
  ...vendorChanges.flatMap((change) => losses.map((loss) => lossCase(loss, change))),
  ...vendorChanges.flatMap((change) => leavings.map((leaving) => leavingCase(leaving, change))),
  ...unreadable.map(lostLookCase),
  {
    name: "lost-answers/look-ends-with-its-deadline",
    promise:
      "calls at a vendor that is slow to answer end with the caller's deadline, and ask the vendor nothing more",
    checks: ["rule:deadline"],
    needs: [needsFaults],
    fix: "pass the call's deadline to the vendor's reads, and abort them with it",
    run: async (bench) => {
      const subject = bench.subject("hanging-look");
      // Each request is recorded as it comes, and answered late.
      const slow = { effect: "slow", moment: "after", times: 10_000 } as const;
      await bench.faults.arm({ operation: "any", ...slow, delayMs: slowLookMs });
      const mark = await bench.faults.mark();
      const startMs = Date.now();
      const replies = await Promise.all([
        subject.describe({}, { deadlineMs: patienceMs }),
        subject.ensure({}, { deadlineMs: patienceMs }),
      ]);
      const endMs = Date.now();
      await bench.faults.reset();
      for (const reply of replies) {
        expect(reply.kind === "failure", "DEADLINE_EXCEEDED", () => describeReply(reply));
      }
      const isInTime = endMs - startMs < slowLookMs;
      expect(isInTime, `an end at ${patienceMs} ms`, () => `it took ${endMs - startMs} ms`);
      await systemClock.sleep(slowLookMs);
      const requests = await bench.faults.requestsSince(mark);
      const count = requests.filter(({ atMs }) => atMs > endMs + lookGraceMs).length;
      expect(count === 0, "no request when nobody waits any more", () => `${count} came`);
      await expectCount(bench, subject.keyStamp, 0);
      const look = await admitted(() => subject.describe());
      const isAbsent = look.kind === "failure" && look.failure.reason === "NOT_FOUND";
      expect(isAbsent, "NOT_FOUND once the vendor answers again", () => describeReply(look));
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
      const delayMs = slowMsOf(bench);
      await bench.faults.arm({ operation: "create", effect: "slow", delayMs });
      await admitted(() => subject.ensure({}, { deadlineMs: patienceMs }));
      await systemClock.sleep(delayMs);
      const instance = await subject.converge({ mayCreate: false }, 15_000);
      const [made] = await bench.faults.instancesWith(subject.keyStamp);
      expect(instance.providerId === made?.id, `instance ${made?.id}`, () => instance.providerId);
      await expectCount(bench, subject.keyStamp, 1);
    },
  },
];
