/** The reference vendor, and the parameters with which the suite starts its adapter, right or wrong. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createTestAuthority } from "../../../services/contract/test-certificates.ts";
import { startVendorEmulator } from "../../../services/vendor-emulator/emulator.ts";
import { parseParameters } from "../core/parameters.ts";
import type { SuiteParameters } from "../core/parameters.ts";
import type { TlsFiles } from "../core/wire-client.ts";
import { apiKeys, referenceHosts, ReferenceVendor } from "./reference-vendor.ts";

const main = fileURLToPath(new URL("reference-main.ts", import.meta.url));
const endpoint = "https://api.reference.example";
const otherEndpoint = "https://eu.reference.example";
const deadEndpoint = "https://dead.reference.example";

export interface ReferenceRig {
  readonly parameters: SuiteParameters;
  /** Of the suite's own client; absent: plaintext. */
  readonly tls?: TlsFiles;
  readonly vendorFaultsUrl: string;
  stop(): Promise<void>;
}

export interface ReferenceRigOptions {
  /** Name of the fault; absent: the right one. */
  readonly mutant?: string;
  /** Mutual TLS between the suite and the adapter. False when absent. */
  readonly hasTls?: boolean;
}

export async function startReferenceRig(options: ReferenceRigOptions = {}): Promise<ReferenceRig> {
  const { mutant, hasTls = false } = options;
  const emulator = await startVendorEmulator(new ReferenceVendor());
  const folder = await mkdtemp(join(tmpdir(), "dhp-mutant-"));
  const credential = (name: string, apiKey = ""): Promise<void> =>
    writeFile(join(folder, `${name}.json`), JSON.stringify({ apiKey }), { mode: 0o600 });
  await credential("default", apiKeys["first"]);
  await credential("other", apiKeys["second"]);
  const account = (name: string): object => ({
    endpointHosts: ["*.reference.example"],
    credentialFile: join(folder, `${name}.json`),
    callsPerSecond: 1_000,
  });
  const accounts = { default: account("default"), other: account("other"), bare: account("none") };
  await writeFile(join(folder, "accounts.json"), JSON.stringify({ accounts }));
  const tls = hasTls ? await writeTls(folder) : undefined;
  const wrongKey = "sk-reference-key-that-nobody-has";
  const document = {
    target: { endpoint, region: "global" },
    otherRealm: { endpoint: otherEndpoint, region: "eu", account: "other" },
    unreachable: { endpoint: deadEndpoint, region: "global" },
    withoutCredential: { endpoint, region: "global", account: "bare" },
    parameters: { voice: "calm", speed: "1", kind: "standard" },
    changed: { voice: "loud" },
    immutable: { kind: "studio" },
    invalid: { speed: "fast" },
    credential: {
      file: join(folder, "default.json"),
      good: JSON.stringify({ apiKey: apiKeys["first"] }),
      wrong: JSON.stringify({ apiKey: wrongKey }),
    },
    secrets: [...Object.values(apiKeys), wrongKey],
    start: [
      process.execPath,
      main,
      ...(mutant === undefined ? [] : [`--mutant=${mutant}`]),
      "--listen=127.0.0.1:{port}",
      "--admin-listen=127.0.0.1:0",
      `--accounts=${join(folder, "accounts.json")}`,
      `--vendor-ca=${emulator.caFile}`,
      ...referenceHosts.map((host) => `--connect-to=https://${host}=${emulator.url}`),
      `--connect-to=${deadEndpoint}=http://127.0.0.1:1`,
      "--read-timeout=1s",
      "--circuit-open=1s",
      "--sweep-interval=700ms",
      "--clock-skew=100ms",
      "--drain-timeout=10s",
      ...(tls === undefined
        ? []
        : [`--tls-ca=${tls.ca}`, `--tls-cert=${tls.cert}`, `--tls-key=${tls.key}`]),
    ],
  };
  return {
    parameters: parseParameters(document, "parameters of the reference adapter"),
    ...(tls === undefined ? {} : { tls }),
    vendorFaultsUrl: emulator.faultUrl,
    stop: async () => {
      await emulator.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** One pair serves both ends: it is good for 127.0.0.1, and of the authority that both trust. */
async function writeTls(folder: string): Promise<Required<TlsFiles>> {
  const authority = await createTestAuthority("conformance");
  const pair = await authority.issue(["127.0.0.1", "localhost"]);
  const paths = {
    ca: join(folder, "ca.crt"),
    cert: join(folder, "tls.crt"),
    key: join(folder, "tls.key"),
  };
  await writeFile(paths.ca, authority.pem);
  await writeFile(paths.cert, pair.cert);
  await writeFile(paths.key, pair.key, { mode: 0o600 });
  return paths;
}
