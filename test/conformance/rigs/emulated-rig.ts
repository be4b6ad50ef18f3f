/**
 * An adapter's process in front of an emulator of its vendor, as the suite starts it: accounts,
 * credentials and parameters in a folder of their own. What a vendor's conformance test is made of.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { VendorEmulator } from "../../../services/vendor-emulator/emulator.ts";
import { parseParameters } from "../core/parameters.ts";
import type { SuiteParameters } from "../core/parameters.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const deadHost = "dead.example.com";

export interface EmulatedRigOptions {
  /** The adapter's main: absolute, or relative to the repository. */
  readonly main: string;
  readonly emulator: VendorEmulator;
  /** The vendor's API hosts; the first one is the target's. */
  readonly hosts: readonly string[];
  /** Fields of a credential file that is good, and of one that is not. */
  readonly credential: Readonly<Record<string, string>>;
  readonly wrongCredential: Readonly<Record<string, string>>;
  /** The adapter's publicCredentialFields: what they hold may be seen. */
  readonly publicCredentialFields?: readonly string[];
  /** Further members of the parameters file: parameters, changed, invalid, ... */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly region?: string;
  /** Further options of the adapter. */
  readonly flags?: readonly string[];
}

export interface EmulatedRig {
  readonly parameters: SuiteParameters;
  /** http://127.0.0.1:PORT behind the scenes of the emulator. */
  readonly vendorFaultsUrl: string;
  stop(): Promise<void>;
}

export async function startEmulatedRig(options: EmulatedRigOptions): Promise<EmulatedRig> {
  const { emulator, region = "" } = options;
  const folder = await mkdtemp(join(tmpdir(), "dhp-conformance-"));
  const credentialFile = join(folder, "default.json");
  const good = JSON.stringify(options.credential);
  await writeFile(credentialFile, good, { mode: 0o600 });
  const account = (file: string): object => ({
    endpointHosts: [...options.hosts, deadHost],
    credentialFile: join(folder, file),
    callsPerSecond: 1_000,
  });
  const accounts = { default: account("default.json"), bare: account("missing.json") };
  await writeFile(join(folder, "accounts.json"), JSON.stringify({ accounts }));
  const endpoint = `https://${options.hosts[0] ?? ""}`;
  const document = {
    target: { endpoint, region },
    unreachable: { endpoint: `https://${deadHost}`, region },
    withoutCredential: { endpoint, region, account: "bare" },
    credential: {
      file: credentialFile,
      good,
      wrong: JSON.stringify(options.wrongCredential),
    },
    start: startCommand(options, join(folder, "accounts.json")),
    secrets: [options.credential, options.wrongCredential].flatMap((fields) =>
      Object.keys(fields).flatMap((name) =>
        options.publicCredentialFields?.includes(name) === true ? [] : (fields[name] ?? []),
      ),
    ),
    metrics: "http://127.0.0.1:{adminPort}/metrics",
    ...options.parameters,
  };
  return {
    parameters: parseParameters(document, "parameters of an emulated vendor"),
    vendorFaultsUrl: emulator.faultUrl,
    stop: async () => {
      await emulator.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function startCommand(options: EmulatedRigOptions, accountsFile: string): readonly string[] {
  const { main, emulator, hosts, flags = [] } = options;
  return [
    process.execPath,
    resolve(root, main),
    "--listen=127.0.0.1:{port}",
    "--admin-listen=127.0.0.1:{adminPort}",
    `--accounts=${accountsFile}`,
    `--vendor-ca=${emulator.caFile}`,
    ...hosts.map((host) => `--connect-to=https://${host}=${emulator.url}`),
    `--connect-to=https://${deadHost}=http://127.0.0.1:1`,
    ...flags,
  ];
}
