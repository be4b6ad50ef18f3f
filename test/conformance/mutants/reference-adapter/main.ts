/** The reference adapter as a process: serves until SIGTERM, then drains. */
import { optionsOrExit } from "../../../../services/process/shutdown.ts";
import { readAdapterOptions } from "./adapter-options.ts";
import { startAdapter } from "./running-adapter.ts";

const drainMsMax = 20_000;

const adapter = await startAdapter(
  optionsOrExit(() => readAdapterOptions()),
  (fields, message) => process.stdout.write(`${JSON.stringify({ message, ...fields })}\n`),
);

for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => void stop());

async function stop(): Promise<void> {
  const { mutations } = adapter;
  if (mutations.has("exits-at-once")) process.exit(0);
  // What cannot be ended in time is not waited for; whoever started it learns so from the code.
  setTimeout(() => process.exit(1), drainMsMax).unref();
  await adapter.drain();
  await adapter.close();
  process.exitCode = mutations.has("exits-with-1") ? 1 : 0;
}
