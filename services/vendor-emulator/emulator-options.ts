/** The options of an emulator as a process. */
import { integer, optional, text } from "../process/option-kinds.ts";
import { readOptions } from "../process/options.ts";
import type { OptionSet, ValuesOf } from "../process/options.ts";

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
  faultPort: integer({
    help: "Port behind the scenes; 0: a free one.",
    default: 0,
    min: 0,
    max: 65_535,
  }),
} as const satisfies OptionSet;

/** @throws HelpRequested, OptionsError */
export function readEmulatorOptions(
  vendor: string,
  argv: readonly string[] = process.argv.slice(2),
  env: Readonly<Record<string, string | undefined>> = process.env,
): ValuesOf<typeof options> {
  const program = `${vendor}-emulator`;
  const summary = `emulates the API of ${vendor} over HTTPS, with faults on request`;
  return readOptions({ program, summary, options }, argv, env);
}
