/** The emulator as a process; `--help` names the options. */
import { runEmulator } from "../../services/vendor-emulator/run-emulator.ts";
import { AcmeModel } from "./emulator.ts";

await runEmulator("acme", new AcmeModel());
