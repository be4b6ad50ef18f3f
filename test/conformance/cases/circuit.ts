/** The breaker: it opens on the vendor's failures, says so, asks nobody meanwhile, and closes. */
import { systemClock } from "../../../services/process/clock.ts";
import type { Bench } from "../core/bench.ts";
import { expect, unmet } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import type { RpcFailure } from "../core/rpc-failure.ts";
import { shared } from "../core/shared-subjects.ts";
import type { Subject } from "../core/subject.ts";
import { describeReply } from "../core/wire-client.ts";

const looksMax = 200;
/** A circuit that stays open longer is not waited for. */
const openMsMax = 20_000;

async function openedCircuit(bench: Bench, subject: Subject): Promise<RpcFailure> {
  await bench.faults.arm({ operation: "any", effect: "server-error", times: 10_000 });
  for (let count = 0; count < looksMax; count += 1) {
    const reply = await subject.describe();
    if (reply.kind === "failure" && reply.failure.reason === "CIRCUIT_OPEN") return reply.failure;
  }
  return unmet(`CIRCUIT_OPEN within ${looksMax} calls that the vendor fails`, "it never came");
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

export const circuitCases: readonly ConformanceCase[] = [
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
      const { retryDelayMs } = await openedCircuit(bench, subject);
      const isTold = retryDelayMs !== undefined && retryDelayMs > 0;
      expect(isTold, "RetryInfo with CIRCUIT_OPEN", () => `${retryDelayMs}`);
      const mark = await bench.faults.mark();
      const other = bench.unmade("circuit");
      const open = { reasons: ["CIRCUIT_OPEN"], hasRetry: true };
      const replies = [await other.describe(), await other.ensure()];
      const [look, change] = replies;
      if (look?.kind === "failure" && look.failure.reason === "CIRCUIT_OPEN") refused(look, open);
      if (change?.kind === "failure" && change.failure.reason === "CIRCUIT_OPEN") {
        refused(change, { ...open, outcomes: ["NOT_APPLIED"] });
        const asked = (await bench.faults.requestsSince(mark)).length;
        expect(asked === 0, "no request to the vendor", () => `${asked} came`);
      }
      await bench.faults.reset();
      await untilClosed(subject, retryDelayMs ?? 0);
    },
  },
];
