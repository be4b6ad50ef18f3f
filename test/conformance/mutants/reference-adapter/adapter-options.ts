/** The options of the reference adapter as a process. */
import {
  file,
  hostPort,
  optional,
  repeated,
  text,
} from "../../../../services/process/option-kinds.ts";
import { readOptions } from "../../../../services/process/options.ts";
import type { OptionSet, ValuesOf } from "../../../../services/process/options.ts";

const options = {
  listen: hostPort({ help: "Where ProviderAPI is served." }),
  adminListen: optional(hostPort({ help: "Where /metrics is served; port 0: not at all." })),
  accounts: file({ help: "The accounts (JSON)." }),
  vendorCa: file({ help: "The authority of the vendor's certificate (PEM)." }),
  connectTo: repeated(text({ help: "https://HOST=https://127.0.0.1:PORT" }), 100),
  mutants: optional(text({ help: "What is broken on purpose: names, comma-separated." })),
  without: optional(text({ help: "Capabilities that are not served: names, comma-separated." })),
  tlsCert: optional(file({ help: "Our certificate (PEM)." })),
  tlsKey: optional(file({ help: "Its key (PEM)." })),
  tlsCa: optional(file({ help: "The authority of our clients (PEM)." })),
} as const satisfies OptionSet;

export type AdapterOptions = ValuesOf<typeof options>;

/** @throws HelpRequested, OptionsError */
export function readAdapterOptions(
  argv: readonly string[] = process.argv.slice(2),
  env: Readonly<Record<string, string | undefined>> = process.env,
): AdapterOptions {
  const summary = "an adapter that keeps the contract, or breaks it on purpose in one place";
  return readOptions({ program: "reference-adapter", summary, options }, argv, env);
}
