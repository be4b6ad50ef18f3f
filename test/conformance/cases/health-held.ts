/** WatchHealth where the caller knows that a vendor has asked for a wait. */
import { expect } from "../core/case.ts";
import type { ConformanceCase } from "../core/case.ts";
import { HealthListener } from "../core/health-listener.ts";
import { shared } from "../core/shared-subjects.ts";
import { canWatch, changeMsMax } from "./health-stream.ts";

/** Two heartbeats, and room for a busy machine. */
const heldMs = 6_000;
/** Clocks and timers differ by that much at most. */
const earlyMs = 300;

export const healthHeldCases: readonly ConformanceCase[] = [
  {
    name: "health/held-place-is-left-alone",
    promise:
      "a vendor that asked for a wait, as the caller tells, is not asked before; heartbeats go on, and it is afterwards",
    checks: ["rpc:watch-health", "error:throttled"],
    needs: [canWatch, { kind: "vendor-faults" }],
    fix: "begin to sweep a target of WatchHealthRequest.held when its time is over, unless you watch it already",
    timeoutMs: 60_000,
    run: async (bench) => {
      const { subject } = await shared(bench);
      const untilMs = Date.now() + heldMs;
      const mark = await bench.faults.mark();
      const listener = new HealthListener(bench, [bench.parameters.target], untilMs);
      try {
        await listener.until("two heartbeats", heldMs, () => listener.heartbeats.length >= 2);
        // Those who read the clock of their own may be a little early.
        const early = (await bench.faults.requestsSince(mark)).filter(
          ({ atMs }) => atMs < untilMs - earlyMs,
        );
        expect(early.length === 0, "no request before the time", () => `${early.length} came`);
        const waitMs = heldMs + changeMsMax(bench);
        await listener.until("our instance", waitMs, () => listener.known.has(subject.stamp));
      } finally {
        await listener.close();
      }
    },
  },
];
