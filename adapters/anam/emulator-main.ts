/** The emulator as a process; `--help` names the options. */
import { runEmulator } from "../../services/vendor-emulator/run-emulator.ts";
import { AnamModel } from "./emulator.ts";

await runEmulator("anam", new AnamModel());
