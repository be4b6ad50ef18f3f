/** ElevenLabs' emulator and the parameters with which the suite starts its adapter in front of it. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { emulatorApiKey, startEmulator } from "../../../adapters/elevenlabs/emulator.ts";
import type { Emulator } from "../../../adapters/elevenlabs/emulator.ts";
import { apiHosts } from "../../../adapters/elevenlabs/emulator/workspaces.ts";
import type { AgentRecord } from "../../../adapters/elevenlabs/emulator/world.ts";
import { exchange } from "../../../adapters/elevenlabs/test-bench.ts";
import { parseParameters } from "../core/parameters.ts";
import type { SuiteParameters } from "../core/parameters.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const endpoint = "https://api.elevenlabs.io";
const otherEndpoint = "https://api.eu.residency.elevenlabs.io";
const deadEndpoint = "https://dead.example.com";
const otherApiKey = "sk_emulator_key_of_another_workspace";

export interface ElevenLabsRig {
  readonly emulator: Emulator;
  readonly parameters: SuiteParameters;
  /** The same as a file. */
  readonly parametersFile: string;
  /** The emulator's port behind the scenes, in the words of every vendor; absent: it has none. */
  readonly vendorFaultsUrl: string | undefined;
  /** Carries out steps of the emulator's scripts; ids of agents they made. */
  script(...steps: readonly object[]): Promise<readonly string[]>;
  agents(): Promise<readonly AgentRecord[]>;
  stop(): Promise<void>;
}

export async function startElevenLabsRig(flags: readonly string[] = []): Promise<ElevenLabsRig> {
  const emulator = await startEmulator();
  const folder = await mkdtemp(join(tmpdir(), "dhp-conformance-elevenlabs-"));
  const ask = async (method: string, path: string, body?: string): Promise<string> => {
    const { status, text } = await exchange(method, `${emulator.faultUrl}${path}`, body);
    assert.equal(status, 200, text);
    return text;
  };
  const script = async (...steps: readonly object[]): Promise<readonly string[]> =>
    JSON.parse(await ask("POST", "/script", JSON.stringify(steps))).agentIds;
  await script({ do: "key", apiKey: otherApiKey, userId: "user-9", workspace: "eu" });
  const document = await writeFiles(folder, emulator, flags);
  const parametersFile = join(folder, "parameters.json");
  await writeFile(parametersFile, JSON.stringify(document));
  return {
    emulator,
    parameters: parseParameters(document, parametersFile),
    parametersFile,
    vendorFaultsUrl: await faultsUrlOf(emulator),
    script,
    agents: async () => JSON.parse(await ask("GET", "/world")).agents,
    stop: async () => {
      await emulator.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function faultsUrlOf({ faultUrl }: Emulator): Promise<string | undefined> {
  const { status } = await exchange("GET", `${faultUrl}/conformance`);
  return status === 200 ? faultUrl : undefined;
}

async function writeFiles(
  folder: string,
  emulator: Emulator,
  flags: readonly string[],
): Promise<object> {
  const credential = join(folder, "default.json");
  const good = JSON.stringify({ apiKey: emulatorApiKey });
  await writeFile(credential, good, { mode: 0o600 });
  const otherCredential = JSON.stringify({ apiKey: otherApiKey });
  await writeFile(join(folder, "other.json"), otherCredential, { mode: 0o600 });
  const account = (name: string): object => ({
    endpointHosts: [...apiHosts, "dead.example.com"],
    credentialFile: join(folder, `${name}.json`),
    callsPerSecond: 1_000,
  });
  const accounts = {
    default: account("default"),
    other: account("other"),
    bare: account("missing"),
  };
  await writeFile(join(folder, "accounts.json"), JSON.stringify({ accounts }));
  const wrongApiKey = "sk_emulator_key_that_nobody_has";
  return {
    target: { endpoint, region: "global" },
    otherRealm: { endpoint: otherEndpoint, region: "eu", account: "other" },
    unreachable: { endpoint: deadEndpoint, region: "global" },
    withoutCredential: { endpoint, region: "global", account: "bare" },
    parameters: { prompt: "You read the news.", language: "en", maxDurationSeconds: "600" },
    changed: { prompt: "You read the weather." },
    invalid: { language: "English" },
    credential: { file: credential, good, wrong: JSON.stringify({ apiKey: wrongApiKey }) },
    start: [
      process.execPath,
      join(root, "adapters/elevenlabs/main.ts"),
      "--listen=127.0.0.1:{port}",
      "--admin-listen=127.0.0.1:{adminPort}",
      `--accounts=${join(folder, "accounts.json")}`,
      `--vendor-ca=${emulator.caFile}`,
      ...apiHosts.map((host) => `--connect-to=https://${host}=${emulator.url}`),
      `--connect-to=${deadEndpoint}=http://127.0.0.1:1`,
      ...flags,
    ],
    secrets: [emulatorApiKey, otherApiKey, wrongApiKey],
    metrics: "http://127.0.0.1:{adminPort}/metrics",
  };
}
