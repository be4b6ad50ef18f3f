/** The breaker: it opens on the vendor's failures, says so, asks nobody meanwhile, and closes. */
import { systemClock } from "../../../services/process/clock.ts";
import type { VendorEffect } from "../../../services/vendor-emulator/fault-words.ts";
import type { Bench } from "../core/bench.ts";
import { expect, unmet } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import type { RpcFailure } from "../core/rpc-failure.ts";
import { shared } from "../core/shared-subjects.ts";
import type { Subject } from "../core/subject.ts";
import { admitted } from "../core/vendor-changes.ts";
import { describeReply } from "../core/wire-client.ts";

const looksMax = 5_000;
const openingMsMax = 20_000;
/** A circuit that stays open longer is not waited for. */
const openMsMax = 20_000;

async function openedCircuit(bench: Bench, subject: Subject): Promise<RpcFailure> {
  await bench.faults.arm({ operation: "any", effect: "server-error", times: 10_000 });
  const endMs = Date.now() + openingMsMax;
  // Successes of earlier cases count too, where a breaker looks at shares.
  for (let count = 0; count < looksMax && Date.now() < endMs; count += 1) {
    const reply = await subject.describe();
    if (reply.kind === "failure" && reply.failure.reason === "CIRCUIT_OPEN") return reply.failure;
  }
  return unmet("CIRCUIT_OPEN while the vendor fails call after call", "it never came");
}

async function untilClosed(subject: Subject, waitMs: number): Promise<void> {
  const endMs = Date.now() + Math.min(waitMs, openMsMax) + 10_000;
  for (;;) {
    const reply = await subject.describe();
    if (reply.kind === "answer") return;
    if (Date.now() > endMs) unmet("OK once the circuit may close", describeReply(reply));
    await systemClock.sleep(Math.min(Math.max(reply.failure.retryDelayMs ?? 250, 50), 1_000));
  }
}

/** Calls that are sure to meet the open circuit: enough of its time is left. */
function isSureToMeetIt({ retryDelayMs = 0 }: RpcFailure): boolean {
  return retryDelayMs >= 300;
}

/** What a vendor says of the caller: however often, it is not the vendor that failed. */
const callersFaults: readonly VendorEffect[] = [
  "bad-value",
  "busy",
  "throttled",
  "quota-exhausted",
  "billing-stopped",
  "bad-credential",
  "missing-scope",
];
const refusalsCount = 15;

function neverOpens(effect: VendorEffect): ConformanceCase {
  return {
    name: `circuit/${effect}-never-opens-it`,
    promise: `however many calls the vendor answers with "${effect}", the circuit stays closed`,
    checks: ["error:circuit-open"],
    needs: [{ kind: "effect", name: effect }],
    fix: "count only the vendor's own failures for the breaker, never what the caller did wrong",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject(`not-opened-by-${effect}`);
      await admitted(() => subject.ensure());
      const { subject: known } = await shared(bench);
      // What is said of a request's content is never the answer to a look.
      const isOfContent = effect === "bad-value" || effect === "busy";
      const operation = isOfContent ? "create" : "any";
      await bench.faults.arm({ operation, effect, times: 10_000 });
      const fresh = bench.subject(`refused-by-${effect}`);
      for (let count = 0; count < refusalsCount; count += 1) {
        for (const reply of [await known.describe(), await fresh.ensure()]) {
          const isOpen = reply.kind === "failure" && reply.failure.reason === "CIRCUIT_OPEN";
          expect(!isOpen, `no open circuit after ${count} refusals`, () => describeReply(reply));
        }
      }
      await bench.faults.reset();
      await known.answered(known.describe(), "OK at once when the vendor no longer refuses");
      await fresh.made();
    },
  };
}

export const circuitCases: readonly ConformanceCase[] = [
  ...callersFaults.map(neverOpens),
  {
    name: "circuit/opens-asks-nobody-and-closes",
    promise:
      "a vendor that fails again and again opens the circuit: CIRCUIT_OPEN with RetryInfo and NOT_APPLIED, no request meanwhile, and it closes by itself",
    checks: ["error:circuit-open", "list:outcome"],
    needs: [{ kind: "effect", name: "server-error" }],
    fix: "put a breaker around every vendor call; while it is open refuse at once and say until when",
    timeoutMs: 90_000,
    run: async (bench) => {
      const { subject } = await shared(bench);
      const opened = await openedCircuit(bench, subject);
      const { retryDelayMs = 0 } = opened;
      expect(retryDelayMs > 0, "RetryInfo with CIRCUIT_OPEN", () => "it is absent");
      const mark = await bench.faults.mark();
      const other = bench.unmade("circuit");
      const replies = [await other.describe(), await other.ensure(), await subject.describe()];
      const asked = (await bench.faults.requestsSince(mark)).length;
      if (isSureToMeetIt(opened)) {
        const [look, change, known] = replies;
        const open = { reasons: ["CIRCUIT_OPEN"], hasRetry: true };
        for (const reply of [look, known]) if (reply !== undefined) refused(reply, open);
        if (change !== undefined) refused(change, { ...open, outcomes: ["NOT_APPLIED"] });
        expect(asked === 0, "no request to the vendor", () => `${asked} came`);
      }
      await bench.faults.reset();
      await untilClosed(subject, retryDelayMs);
    },
  },
  {
    name: "circuit/one-place-is-not-another",
    promise: "an open circuit of one endpoint does not refuse calls to another",
    checks: ["error:circuit-open"],
    needs: [
      { kind: "effect", name: "server-error" },
      {
        kind: "trait",
        what: "otherRealm on another host",
        isSo: ({ parameters: { target, otherRealm } }) =>
          otherRealm !== undefined && otherRealm.endpoint !== target.endpoint,
      },
    ],
    fix: "keep a circuit for each account and endpoint, not one for the process",
    timeoutMs: 90_000,
    run: async (bench) => {
      const { subject } = await shared(bench);
      const { otherRealm } = bench.parameters;
      if (otherRealm === undefined) return;
      const { retryDelayMs = 0 } = await openedCircuit(bench, subject);
      await bench.faults.reset();
      refused(await bench.unmade("elsewhere", { target: otherRealm }).describe(), {
        reasons: ["NOT_FOUND"],
      });
      await untilClosed(subject, retryDelayMs);
    },
  },
];
