/** The emulator as a process; `node adapters/elevenlabs/emulator/main.ts --help` names the options. */
import { runEmulator } from "../../../services/vendor-emulator/run-emulator.ts";
import { emulated } from "../emulator.ts";

const { model, ownRoutes } = emulated();
await runEmulator("elevenlabs", model, { ownRoutes });
