/** A fresh controller over objects that are settled: how long until it has looked at each, and at what cost. */
import { systemClock } from "../../services/process/clock.ts";
import { httpGet, metricValue } from "../support/http-get.ts";
import type { Stack } from "../support/stack.ts";

export interface ColdStart {
  /** From the start of the process until each object was looked at. */
  readonly seconds: number;
  /** To objects of ours; none is right. */
  readonly writes: number;
  /** Mutations that LiveKit's adapter sent meanwhile; none is right. */
  readonly vendorMutations: number;
}

const limitMs = 600_000;
const pollMs = 250;

export async function coldStart(
  stack: Stack,
  count: number,
  say: (line: string) => void,
): Promise<ColdStart> {
  say("starting the controller anew over settled objects");
  await stack.controller.stop();
  const mutationsBefore = await vendorMutations(stack);
  const startMs = performance.now();
  await stack.startController();
  for (;;) {
    const text = await metrics(stack.controller.ports.adminPort);
    const looks = metricValue(text, "controller_runtime_reconcile_total");
    const open =
      metricValue(text, "workqueue_depth") + metricValue(text, "controller_runtime_active_workers");
    if (looks >= count && open === 0) {
      return {
        seconds: Math.round((performance.now() - startMs) / 10) / 100,
        writes: metricValue(text, "dhp_api_writes_total"),
        vendorMutations: (await vendorMutations(stack)) - mutationsBefore,
      };
    }
    if (performance.now() - startMs > limitMs) throw new Error(`${looks} of ${count} looked at`);
    await systemClock.sleep(pollMs);
  }
}

async function vendorMutations(stack: Stack): Promise<number> {
  const text = await metrics(stack.adapter.ports.adminPort);
  return metricValue(text, "dhp_vendor_request_total", { operation: "write" });
}

async function metrics(port: number): Promise<string> {
  return (await httpGet(port, "/metrics")).text;
}
