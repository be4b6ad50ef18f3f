/** A process that dies at the worst moment, and the next one that knows nothing. */
import { systemClock } from "../../../services/process/clock.ts";
import type { Bench } from "../core/bench.ts";
import { unmet } from "../core/case.ts";
import type { ConformanceCase, Need } from "../core/case.ts";
import { expectCount } from "../core/vendor-changes.ts";

const waitMsMax = 10_000;
const stepMs = 50;

async function untilCount(bench: Bench, keyStamp: string, count: number): Promise<void> {
  const endMs = Date.now() + waitMsMax;
  while ((await bench.faults.instancesWith(keyStamp)).length !== count) {
    if (Date.now() > endMs) unmet(`${count} of this key at the vendor`, "it did not come about");
    await systemClock.sleep(stepMs);
  }
}

async function killAndRestart(bench: Bench): Promise<void> {
  await bench.launcher.restart();
  bench.reconnect();
}

const needs: readonly Need[] = [{ kind: "own-process" }, { kind: "vendor-faults" }];
const fix =
  "keep nothing in memory that a fresh process could not do without: the stamp at the vendor is the truth";

export const spareCases: readonly ConformanceCase[] = [
  {
    name: "spare/killed-between-commit-and-reply-makes-one",
    promise:
      "SIGKILL after the vendor has made the instance and before anybody knows, then a fresh process with lists that lag: one instance",
    checks: ["rule:spare", "rule:identity"],
    needs,
    fix,
    timeoutMs: 90_000,
    run: async (bench) => {
      const subject = bench.subject("killed-create");
      await bench.faults.arm({ operation: "create", effect: "hang", moment: "after" });
      const call = subject.ensure({ notAfter: subject.notAfter(500) });
      await untilCount(bench, subject.keyStamp, 1);
      await killAndRestart(bench);
      await call;
      const { visibilityLagMs } = bench.settling;
      if (
        bench.faults.vocabulary.switches.includes("listLagMs") &&
        !bench.info.listsAreConsistent
      ) {
        await bench.faults.turn({ listLagMs: Math.min(visibilityLagMs, 2_000) });
      }
      await subject
        .converge({ mayCreate: false }, waitMsMax + visibilityLagMs)
        .catch(() => undefined);
      return {
        afterMs: subject.doubtLeftMs,
        check: async () => {
          await subject.converge();
          await expectCount(bench, subject.keyStamp, 1);
        },
      };
    },
  },
  {
    name: "spare/killed-in-a-removal-removes-once",
    promise:
      "SIGKILL after the vendor has removed the instance and before anybody knows: the next process ends the removal",
    checks: ["rule:spare", "rule:deletion"],
    needs: [...needs, { kind: "capability", name: "DELETE" }],
    fix,
    timeoutMs: 90_000,
    run: async (bench) => {
      const subject = bench.subject("killed-delete");
      await subject.converge();
      await bench.faults.arm({ operation: "delete", effect: "hang", moment: "after" });
      const call = subject.delete({ notAfter: subject.notAfter(500) });
      await untilCount(bench, subject.keyStamp, 0);
      await killAndRestart(bench);
      await call;
      return {
        afterMs: subject.doubtLeftMs,
        check: async () => {
          await subject.remove();
          await expectCount(bench, subject.keyStamp, 0);
        },
      };
    },
  },
];
