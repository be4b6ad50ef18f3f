/**
 * The reference vendor and its adapter as the suite meets them: with a process of its own for cases
 * that stop it, else served from this process, which starts in no time.
 */
import { createTestAuthority, testTlsFiles } from "../../../services/contract/test-certificates.ts";
import { startVendorEmulator } from "../../../services/vendor-emulator/emulator.ts";
import type { SuiteParameters } from "../core/parameters.ts";
import type { TlsFiles } from "../core/wire-client.ts";
import { startEmulatedRig } from "../rigs/emulated-rig.ts";
import { readAdapterOptions } from "./reference-adapter/adapter-options.ts";
import type { MutationName } from "./reference-adapter/mutation-names.ts";
import { startAdapter } from "./reference-adapter/running-adapter.ts";
import type { CapabilityName } from "./reference-adapter/world.ts";
import {
  otherVendorHost,
  ReferenceVendor,
  strangeHost,
  vendorHost,
  vendorToken,
  vendorWorkspace,
} from "./vendor.ts";

export interface ReferenceRigOptions {
  readonly mutants?: readonly MutationName[];
  /** Capabilities that the adapter does not serve. */
  readonly without?: readonly CapabilityName[];
  readonly isTls?: boolean;
}

export interface ReferenceRig {
  readonly parameters: SuiteParameters;
  readonly vendorFaultsUrl: string;
  readonly tls?: TlsFiles;
  /** Serves the adapter from this process. @returns its address */
  serveHere(): Promise<string>;
  stop(): Promise<void>;
}

const main = "test/conformance/mutants/reference-adapter/main.ts";
const wrongToken = "ref-token-that-nobody-has";

export async function startReferenceRig(options: ReferenceRigOptions = {}): Promise<ReferenceRig> {
  const { mutants = [], without = [], isTls = false } = options;
  const stops: (() => Promise<void> | void)[] = [];
  const stop = async (): Promise<void> => {
    for (const one of stops.toReversed()) await one();
  };
  const tls = isTls ? await startTls(stops) : undefined;
  const emulator = await startVendorEmulator(new ReferenceVendor());
  const rig = await startEmulatedRig({
    main,
    emulator,
    hosts: [vendorHost, otherVendorHost],
    credential: { workspace: vendorWorkspace, token: vendorToken },
    wrongCredential: { workspace: vendorWorkspace, token: wrongToken },
    publicCredentialFields: ["workspace"],
    region: "west",
    parameters: {
      otherRealm: { endpoint: `https://${otherVendorHost}`, region: "east" },
      parameters: { voice: "alto", speed: "1.5", engine: "v1" },
      changed: { voice: "tenor" },
      immutable: { engine: "v2" },
      invalid: { speed: "fast" },
      normalised: { speed: "1.50" },
    },
    flags: [
      `--connect-to=https://${strangeHost}=${emulator.url}`,
      ...(mutants.length === 0 ? [] : [`--mutants=${mutants.join(",")}`]),
      ...(without.length === 0 ? [] : [`--without=${without.join(",")}`]),
      ...(tls?.flags ?? []),
    ],
  });
  stops.push(() => rig.stop());
  return {
    parameters: rig.parameters,
    vendorFaultsUrl: rig.vendorFaultsUrl,
    ...(tls === undefined ? {} : { tls: tls.client }),
    serveHere: async () => {
      const { start = [] } = rig.parameters;
      const [, , ...words] = start.map((word) => word.replace(/\{(port|adminPort)\}/, "0"));
      const adapter = await startAdapter(readAdapterOptions(words, {}), () => undefined);
      stops.push(() => adapter.close());
      return `127.0.0.1:${adapter.port}`;
    },
    stop,
  };
}

async function startTls(
  stops: (() => void)[],
): Promise<{ readonly client: TlsFiles; readonly flags: readonly string[] }> {
  const authority = await createTestAuthority("reference adapter");
  const server = testTlsFiles(await authority.issue(["localhost", "127.0.0.1"]), authority.pem);
  const client = testTlsFiles(await authority.issue(["conformance"]), authority.pem);
  stops.push(
    () => server.remove(),
    () => client.remove(),
  );
  return {
    client: { ca: client.caFile, cert: client.certFile, key: client.keyFile },
    flags: [
      `--tls-cert=${server.certFile}`,
      `--tls-key=${server.keyFile}`,
      `--tls-ca=${server.caFile}`,
    ],
  };
}
