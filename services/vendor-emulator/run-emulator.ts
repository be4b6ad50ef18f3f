/** The main of an emulator's process: options, log, servers, clean end. */
import { rename, writeFile } from "node:fs/promises";

import { createLog } from "../process/log.ts";
import { optionsOrExit, runProcess } from "../process/shutdown.ts";
import { startVendorEmulator } from "./emulator.ts";
import type { VendorEmulatorOptions } from "./emulator.ts";
import { readEmulatorOptions } from "./emulator-options.ts";
import type { VendorModel } from "./vendor-model.ts";

/** Serves until SIGTERM or SIGINT. @param vendor its name, for messages */
export async function runEmulator(
  vendor: string,
  model: VendorModel,
  own: Pick<VendorEmulatorOptions, "ownRoutes"> = {},
): Promise<void> {
  const options = optionsOrExit(() => readEmulatorOptions(vendor));
  const log = createLog({ name: `${vendor}-emulator`, level: "info" });
  await runProcess({
    log,
    stopTimeoutMs: 5_000,
    start: async (stack) => {
      const { port, faultPort, portFile } = options;
      const emulator = await startVendorEmulator(model, { port, faultPort, ...own });
      stack.defer("emulator", () => emulator.stop());
      const { url, caFile, faultUrl } = emulator;
      log.info({ url, caFile, faultUrl }, "emulator started");
      if (portFile === undefined) return;
      // In one piece: whoever waits for the file never reads half of it.
      const draft = `${portFile}.${process.pid}.tmp`;
      await writeFile(draft, `${JSON.stringify({ url, caFile, faultUrl })}\n`);
      await rename(draft, portFile);
    },
  });
}
