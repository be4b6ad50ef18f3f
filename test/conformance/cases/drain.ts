/** SIGTERM: what is in flight is finished, what is new is refused, and the process ends well. */
import { systemClock } from "../../../services/process/clock.ts";
import { checkHealth } from "../core/beside-services.ts";
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { expectCount } from "../core/vendor-changes.ts";

/** Longer drains are the operator's wish; the suite does not wait for them. */
const drainMsMax = 30_000;
const slowMs = 2_500;
/** For a call to reach the vendor, and for a signal to be heeded. */
const settleMs = 600;

export const drainCases: readonly ConformanceCase[] = [
  {
    name: "drain/finishes-what-is-in-flight",
    promise:
      "SIGTERM with a create at the vendor: health says NOT_SERVING, new calls are refused with SHUTTING_DOWN, that one is answered, exit code 0",
    checks: ["rule:drain", "error:shutting-down", "list:outcome", "rpc:operations"],
    needs: [{ kind: "own-process" }, { kind: "vendor-faults" }],
    fix: "on SIGTERM refuse new calls with SHUTTING_DOWN while you still listen, wait for those in flight, then exit 0",
    timeoutMs: 60_000,
    run: async (bench) => {
      const subject = bench.subject("drained");
      const late = bench.subject("too-late-for-it");
      await bench.faults.arm({ operation: "create", effect: "slow", delayMs: slowMs });
      const inFlight = subject.ensure();
      await systemClock.sleep(settleMs);
      const exit = bench.launcher.terminate(drainMsMax);
      await systemClock.sleep(settleMs);
      const newcomer = bench.connect();
      try {
        const [health, look, change] = await Promise.all([
          checkHealth(newcomer, ""),
          late.through(newcomer).describe({}, { deadlineMs: 1_000 }),
          late.through(newcomer).ensure({}, { deadlineMs: 1_000 }),
        ]);
        const answered = await subject.answered(inFlight, "the create in flight to be answered");
        expect(answered.instance !== undefined, "its instance", () => "it is absent");
        const { code, signal } = await exit;
        expect(code === 0, "exit code 0", () => `code ${code}, signal ${signal}`);
        expect(health !== "SERVING", "health NOT_SERVING meanwhile", () => health);
        refused(look, { reasons: ["SHUTTING_DOWN"] });
        refused(change, { reasons: ["SHUTTING_DOWN"], outcomes: ["NOT_APPLIED"] });
      } finally {
        newcomer.close();
        await exit;
        await bench.launcher.start();
        bench.reconnect();
      }
      await expectCount(bench, subject.keyStamp, 1);
      await expectCount(bench, late.keyStamp, 0);
      await subject.converge({ mayCreate: false });
    },
  },
  {
    name: "drain/idle-process-exits-with-0",
    promise: "SIGTERM to a process with nothing to do ends it at once, with exit code 0",
    checks: ["rule:drain"],
    needs: [{ kind: "own-process" }],
    fix: "close servers, timers and connections; leave nothing open",
    timeoutMs: 60_000,
    run: async (bench) => {
      const startMs = performance.now();
      const { code, signal } = await bench.launcher.terminate(drainMsMax);
      const tookMs = performance.now() - startMs;
      await bench.launcher.start();
      bench.reconnect();
      expect(code === 0, "exit code 0", () => `code ${code}, signal ${signal}`);
      expect(tookMs < 10_000, "an end at once", () => `it took ${Math.round(tookMs)} ms`);
    },
  },
];
