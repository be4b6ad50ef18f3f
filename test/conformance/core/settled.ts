/** Looks that a vendor's lag may spoil: repeated until they agree, as long as the lag explains it. */
import { systemClock } from "../../../services/process/clock.ts";
import type { Bench } from "./bench.ts";
import { Unmet } from "./case.ts";

const stepMs = 200;
/** A declared lag of minutes is not waited for within a case. */
const waitMsMaxDefault = 15_000;

/** Runs `look` until it throws no Unmet; the last Unmet when visibility_lag has passed. */
export async function settled<T>(
  bench: Bench,
  look: () => Promise<T>,
  waitMsMax = waitMsMaxDefault,
): Promise<T> {
  const endMs = Date.now() + Math.min(bench.settling.visibilityLagMs, waitMsMax);
  for (;;) {
    try {
      return await look();
    } catch (error) {
      if (!(error instanceof Unmet) || Date.now() >= endMs) throw error;
      await systemClock.sleep(stepMs);
    }
  }
}
