/** The emulator as a process; `node adapters/elevenlabs/emulator/main.ts --help` names the options. */
import { rename, writeFile } from "node:fs/promises";

import { createLog } from "../../../services/process/log.ts";
import { optionsOrExit, runProcess } from "../../../services/process/shutdown.ts";
import { startEmulator } from "../emulator.ts";
import { readEmulatorOptions } from "./emulator-options.ts";

const options = optionsOrExit(() => readEmulatorOptions());
const log = createLog({ name: "elevenlabs-emulator", level: "info" });

await runProcess({
  log,
  stopTimeoutMs: 5_000,
  start: async (stack) => {
    const emulator = await startEmulator({ port: options.port, faultPort: options.faultPort });
    stack.defer("emulator", () => emulator.stop());
    const { url, caFile, faultUrl } = emulator;
    log.info({ url, caFile, faultUrl }, "emulator started");
    if (options.portFile === undefined) return;
    // In one piece: whoever waits for the file never reads half of it.
    const draft = `${options.portFile}.${process.pid}.tmp`;
    await writeFile(draft, `${JSON.stringify({ url, caFile, faultUrl })}\n`);
    await rename(draft, options.portFile);
  },
});
