/** The options of the suite as a command. */
import {
  duration,
  file,
  hostPort,
  optional,
  repeated,
  text,
  toggle,
} from "../../services/process/option-kinds.ts";
import { readOptions } from "../../services/process/options.ts";
import type { OptionSet, ValuesOf } from "../../services/process/options.ts";

const options = {
  address: optional(
    hostPort({ help: "Where the adapter serves; left out: it is started as the parameters say." }),
  ),
  tlsCa: optional(file({ help: "The authority that the adapter's certificate comes from (PEM)." })),
  tlsCert: optional(file({ help: "The certificate to show it (PEM); with --tls-key." })),
  tlsKey: optional(file({ help: "Its private key (PEM)." })),
  params: optional(
    file({ help: "The parameters file (YAML or JSON); see test/conformance/README.md." }),
  ),
  endpoint: optional(
    text({
      help: "In place of --params, where nothing else is to be said: the endpoint to make instances at.",
      pattern: /^https?:\/\/[^\s]+$/u,
      form: "a URL such as https://tts.example.com",
    }),
  ),
  vendorFaults: optional(
    text({
      help: "http://127.0.0.1:PORT of an emulator's port behind the scenes.",
      pattern: /^http:\/\/[^\s]+$/u,
      form: "a URL such as http://127.0.0.1:8444",
    }),
  ),
  only: repeated(
    text({ help: "Only cases whose names begin so: ensure, or ensure/adopt-unowned." }),
    100,
  ),
  json: toggle({ help: "Only one JSON document, on one line, on standard output." }),
  junit: optional(text({ help: "Path of a JUnit XML file to write." })),
  timeoutMs: duration({
    help: "After so long no further case begins, and the run counts as incomplete.",
    default: 600_000,
    msMin: 1_000,
    msMax: 7_200_000,
  }),
} as const satisfies OptionSet;

export type ConformanceCommandOptions = ValuesOf<typeof options>;

/** @throws HelpRequested, OptionsError */
export function readConformanceOptions(
  argv: readonly string[] = process.argv.slice(2),
  env: Readonly<Record<string, string | undefined>> = process.env,
): ConformanceCommandOptions {
  return readOptions(
    {
      program: "conformance",
      summary: "tests an adapter against the ProviderAPI contract; exits 0, 1 (failed) or 2",
      options,
      check: ({ tlsCa, tlsCert, tlsKey, params, endpoint }) => [
        ...((params === undefined) === (endpoint === undefined)
          ? ["one of --params and --endpoint has to say where instances are made"]
          : []),
        ...((tlsCert === undefined) === (tlsKey === undefined)
          ? []
          : ["--tls-cert and --tls-key go together"]),
        ...(tlsCert !== undefined && tlsCa === undefined ? ["--tls-cert needs --tls-ca"] : []),
      ],
    },
    argv,
    env,
  );
}
