/** The options of the emulator as a process. */
import { integer, optional, text } from "../../../services/process/option-kinds.ts";
import { readOptions } from "../../../services/process/options.ts";
import type { OptionSet, ValuesOf } from "../../../services/process/options.ts";

const options = {
  portFile: optional(
    text({ help: 'Written once it serves: {"url":...,"caFile":...,"faultUrl":...} as JSON.' }),
  ),
  port: integer({
    help: "Port of the vendor's API; 0: a free one.",
    default: 0,
    min: 0,
    max: 65_535,
  }),
  faultPort: integer({ help: "Port for scripts; 0: a free one.", default: 0, min: 0, max: 65_535 }),
} as const satisfies OptionSet;

/** @throws HelpRequested, OptionsError */
export function readEmulatorOptions(
  argv: readonly string[] = process.argv.slice(2),
  env: Readonly<Record<string, string | undefined>> = process.env,
): ValuesOf<typeof options> {
  const program = "elevenlabs-emulator";
  const summary = "emulates ElevenLabs' agents API over HTTPS, with faults on request";
  return readOptions({ program, summary, options }, argv, env);
}
