/** Two real LiveKit servers and the parameters with which the suite starts LiveKit's adapter at them. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startLiveKit } from "../../../deploy/dev-cluster/livekit.ts";
import type { LiveKit } from "../../../deploy/dev-cluster/livekit.ts";
import { parseParameters } from "../core/parameters.ts";
import type { SuiteParameters } from "../core/parameters.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const endpoint = "https://live.example.com";
const otherEndpoint = "https://eu.live.example.com";
const deadEndpoint = "https://dead.live.example.com";

export interface LiveKitRig {
  readonly livekit: LiveKit;
  readonly parameters: SuiteParameters;
  /** The same as a file. */
  readonly parametersFile: string;
  stop(): Promise<void>;
}

export async function startLiveKitRig(flags: readonly string[] = []): Promise<LiveKitRig> {
  const folder = await mkdtemp(join(tmpdir(), "dhp-conformance-livekit-"));
  const livekit = await startLiveKit();
  const otherLivekit = await startLiveKit({ keys: livekit });
  const stop = async (): Promise<void> => {
    await Promise.all([livekit.stop(), otherLivekit.stop()]);
    await rm(folder, { recursive: true, force: true });
  };
  const { apiKey, apiSecret } = livekit;
  const credential = join(folder, "credential.json");
  const account = { endpointHosts: ["live.example.com", "*.live.example.com"] };
  const accounts = {
    default: { ...account, credentialFile: credential },
    bare: { ...account, credentialFile: join(folder, "missing.json") },
  };
  const good = JSON.stringify({ apiKey, apiSecret });
  await writeFile(credential, good, { mode: 0o600 });
  await writeFile(join(folder, "accounts.json"), JSON.stringify({ accounts }));
  const document = {
    target: { endpoint },
    otherRealm: { endpoint: otherEndpoint },
    unreachable: { endpoint: deadEndpoint },
    withoutCredential: { endpoint, account: "bare" },
    parameters: { maxParticipants: "20", applicationMetadata: "evening" },
    changed: { applicationMetadata: "morning" },
    immutable: { maxParticipants: "21" },
    invalid: { maxParticipants: "many" },
    credential: {
      file: credential,
      good,
      wrong: JSON.stringify({ apiKey, apiSecret: "another secret that is long enough" }),
    },
    start: [
      process.execPath,
      join(root, "adapters/livekit/main.ts"),
      "--listen=127.0.0.1:{port}",
      "--admin-listen=127.0.0.1:{adminPort}",
      `--accounts=${join(folder, "accounts.json")}`,
      `--connect-to=${endpoint}=${livekit.url}`,
      `--connect-to=${otherEndpoint}=${otherLivekit.url}`,
      `--connect-to=${deadEndpoint}=http://127.0.0.1:1`,
      ...flags,
    ],
    secrets: [apiSecret],
    metrics: "http://127.0.0.1:{adminPort}/metrics",
  };
  const parametersFile = join(folder, "parameters.json");
  await writeFile(parametersFile, JSON.stringify(document));
  return { livekit, parameters: parseParameters(document, parametersFile), parametersFile, stop };
}
