/** The options of the commands that look through all instances. */
import { file, optional, repeated, text, toggle } from "../../services/process/option-kinds.ts";
import { readOptions } from "../../services/process/options.ts";
import type { OptionSet, ValuesOf } from "../../services/process/options.ts";

const common = {
  fleet: text({ help: "As the controller's: first part of every instance key." }),
  cluster: optional(text({ help: "As the controller's; absent: the uid of kube-system." })),
  kubeconfig: optional(
    file({ help: "Access to the API server; absent: the pod's own ServiceAccount." }),
  ),
  adapterTlsFolder: optional(
    text({ help: "Folder with tls.crt, tls.key and ca.crt, for classes that ask for mutual TLS." }),
  ),
  allowPlaintextAdapters: toggle({ help: "Allow adapters without TLS beyond loopback." }),
  place: repeated(
    text({
      help: "CLASS,ENDPOINT,REGION[,ACCOUNT]: look there too, where no object is recorded any more.",
      pattern: /^[^,]+,https:\/\/[^,]+,[^,]+(,[^,]*)?$/u,
      form: "CLASS,https://HOST,REGION or CLASS,https://HOST,REGION,ACCOUNT",
    }),
    1_000,
  ),
  json: toggle({ help: "One JSON document instead of a table." }),
} as const satisfies OptionSet;

const removal = {
  ...common,
  delete: toggle({ help: "Delete what is listed, after a question." }),
  yes: toggle({ help: "Do not ask; with --delete." }),
} as const satisfies OptionSet;

export type InventoryOptions = ValuesOf<typeof common>;
export type OrphanOptions = ValuesOf<typeof removal>;

type Environment = Readonly<Record<string, string | undefined>>;

/** @throws HelpRequested, OptionsError */
export function readOrphanOptions(
  argv: readonly string[] = process.argv.slice(2),
  env: Environment = process.env,
): OrphanOptions {
  return readOptions(
    {
      program: "orphans",
      summary: "lists vendor instances that carry our stamp and belong to no object",
      options: removal,
      check: (values) => (values.yes && !values.delete ? ["--yes goes with --delete"] : []),
    },
    argv,
    env,
  );
}

/** @throws HelpRequested, OptionsError */
export function readBillingOptions(
  argv: readonly string[] = process.argv.slice(2),
  env: Environment = process.env,
): InventoryOptions {
  const summary = "lists all instances that may cost money, and why each is there";
  return readOptions({ program: "billing", summary, options: common }, argv, env);
}
