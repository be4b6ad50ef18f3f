/**
 * `npm run demo`: the whole line on this machine, from an empty control plane to three rooms at a
 * real LiveKit server and two agents at an emulated ElevenLabs, shown as a live table. `-- --once`
 * goes through a whole life and checks at both vendors that nothing is left.
 */
import { parseArgs } from "node:util";
import { ensureBinary } from "../../deploy/dev-cluster/binaries.ts";
import { startElevenLabs } from "../support/elevenlabs.ts";
import type { ElevenLabs } from "../support/elevenlabs.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";
import { applySamples, watchUntilReady } from "./demo-objects.ts";
import { runOnce } from "./demo-once.ts";
import { hints } from "./demo-hints.ts";

const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { once: { type: "boolean", default: false } } });
  await buildPrograms();
  const startedMs = performance.now();
  let stack: Stack | undefined;
  let voices: ElevenLabs | undefined;
  const stopped = new AbortController();
  const stop = (): void => stopped.abort();
  for (const signal of stopSignals) process.once(signal, stop);
  try {
    stack = await startStack({
      withControllerManager: true,
      layers: ["crd", "policy", "controller"],
      onProgress: (what) => console.log(`starting ${what}`),
    });
    console.log("starting a second vendor: ElevenLabs' emulator and its adapter");
    voices = await startElevenLabs();
    await stack.applyClass("elevenlabs", {
      adapter: { address: voices.address },
      endpointHosts: ["api.elevenlabs.io"],
    });
    if (values.once) return await runOnce({ stack, voices }, startedMs);
    await applySamples(stack);
    await watchUntilReady(stack, stopped.signal);
    if (!stopped.signal.aborted) console.log(await hints(stack));
    await untilAborted(stopped.signal);
    console.log("\nremoving what was started");
    return 0;
  } catch (error) {
    // What was asked to stop may fail in any way.
    if (!stopped.signal.aborted) throw error;
    console.log("\nstopped before everything had started");
    return 1;
  } finally {
    for (const signal of stopSignals) process.off(signal, stop);
    await stack?.stop();
    await voices?.stop();
  }
}

/** Minutes the first time on a machine; the builder prints its own progress. */
async function buildPrograms(): Promise<void> {
  for (const name of ["guard", "cluster", "kubectl", "livekit", "grpcurl"] as const) {
    await ensureBinary(name);
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  // A timer keeps the process alive; the signal's own listener does not.
  const alive = setInterval(() => undefined, 60_000);
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => {
      clearInterval(alive);
      resolve();
    });
  });
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
