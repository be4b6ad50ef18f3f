/**
 * The second vendor beside LiveKit: ElevenLabs' emulator, and the adapter's process in front of it.
 * Two accounts of two people who share a workspace, "default" and "other", each with its own key.
 */
import assert from "node:assert/strict";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { emulatorApiKey, startEmulator } from "../../adapters/elevenlabs/emulator.ts";
import type { Emulator } from "../../adapters/elevenlabs/emulator.ts";
import { apiHosts } from "../../adapters/elevenlabs/emulator/workspaces.ts";
import type { AgentRecord, RequestRecord } from "../../adapters/elevenlabs/emulator/world.ts";
import { exchange } from "../../adapters/elevenlabs/test-bench.ts";
import { startProgram } from "./program.ts";
import type { Program } from "./program.ts";

export const elevenLabsEndpoint = "https://api.elevenlabs.io";
/** Another host of the same workspace. */
export const elevenLabsUsEndpoint = "https://api.us.elevenlabs.io";

export interface ElevenLabsOptions {
  /** Key of account "default"; one of the emulator's user-1 when absent. */
  readonly apiKey?: string;
  readonly adapterFlags?: readonly string[];
  /** How long every answer of the vendor takes; 0 when absent. */
  readonly answerMs?: number;
}

export type AccountName = "default" | "other";

/** User of the key that account "other" has. */
export const otherUserId = "user-2";
export const otherApiKey = "sk_emulator_key_of_the_second_user";
const plentyPerSecond = 1_000;

export class ElevenLabs {
  readonly emulator: Emulator;
  readonly #folder: string;
  readonly #flags: readonly string[];
  #adapter: Program | undefined;

  constructor(emulator: Emulator, folder: string, flags: readonly string[]) {
    this.emulator = emulator;
    this.#folder = folder;
    this.#flags = flags;
  }

  get adapter(): Program {
    if (this.#adapter === undefined) throw new Error("the adapter of ElevenLabs is not running");
    return this.#adapter;
  }

  /** `host:port` for a class. */
  get address(): string {
    return `127.0.0.1:${this.adapter.ports.grpcPort}`;
  }

  /** @param grpcPort 0: a free one; a restart takes the port that the class names */
  async startAdapter(grpcPort = 0): Promise<void> {
    this.#adapter = await startProgram("adapters/elevenlabs/main.ts", [
      `--listen=127.0.0.1:${grpcPort}`,
      "--admin-listen=127.0.0.1:0",
      `--accounts=${join(this.#folder, "accounts.yaml")}`,
      `--vendor-ca=${this.emulator.caFile}`,
      ...apiHosts.map((host) => `--connect-to=https://${host}=${this.emulator.url}`),
      ...this.#flags,
    ]);
  }

  /** Carries out steps of adapters/elevenlabs/emulator/script.ts; ids of agents they made. */
  async script(...steps: readonly object[]): Promise<readonly string[]> {
    const { agentIds } = JSON.parse(await this.#ask("POST", "/script", JSON.stringify(steps)));
    return agentIds;
  }

  async agents(): Promise<readonly AgentRecord[]> {
    return JSON.parse(await this.#ask("GET", "/world")).agents;
  }

  /** Agents of one object, by the key in their tags. */
  async agentsOf(name: string): Promise<readonly AgentRecord[]> {
    const agents = await this.agents();
    return agents.filter(({ tags }) => tags.some((tag) => tag.endsWith(`/default/${name}`)));
  }

  /** Faults of scripts that no request has met yet. */
  async faults(): Promise<readonly object[]> {
    return JSON.parse(await this.#ask("GET", "/world")).faults;
  }

  async requests(): Promise<readonly RequestRecord[]> {
    return JSON.parse(await this.#ask("GET", "/requests")).requests;
  }

  /** Puts another key in place of an account's. */
  async useKey(account: AccountName, apiKey: string): Promise<void> {
    await this.writeCredential(account, JSON.stringify({ apiKey }));
  }

  /** Puts any text in place of an account's credential. */
  async writeCredential(account: AccountName, text: string): Promise<void> {
    await replaceFile(join(this.#folder, `${account}.json`), text);
  }

  /** As when its Secret is gone before an adapter starts. */
  async removeCredential(account: AccountName): Promise<void> {
    await rm(join(this.#folder, `${account}.json`));
  }

  /** @param callsPerSecond of account "default"; the other's stays as it is */
  async writeAccounts(callsPerSecond = plentyPerSecond): Promise<void> {
    const account = (name: AccountName, perSecond: number): object => ({
      endpointHosts: apiHosts,
      credentialFile: join(this.#folder, `${name}.json`),
      callsPerSecond: perSecond,
    });
    const accounts = {
      default: account("default", callsPerSecond),
      other: account("other", plentyPerSecond),
    };
    await replaceFile(join(this.#folder, "accounts.yaml"), JSON.stringify({ accounts }));
  }

  async stop(): Promise<void> {
    await this.#adapter?.stop();
    await this.emulator.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #ask(method: string, path: string, body?: string): Promise<string> {
    const { status, text } = await exchange(method, `${this.emulator.faultUrl}${path}`, body);
    assert.equal(status, 200, text);
    return text;
  }
}

/** In one piece, as a mounted Secret or ConfigMap changes. */
async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Nothing is left running when a part fails. */
export async function startElevenLabs(options: ElevenLabsOptions = {}): Promise<ElevenLabs> {
  const { apiKey = emulatorApiKey, adapterFlags = [], answerMs = 0 } = options;
  const emulator = await startEmulator({ answerMs });
  const folder = await mkdtemp(join(tmpdir(), "dhp-elevenlabs-"));
  const vendor = new ElevenLabs(emulator, folder, adapterFlags);
  try {
    await vendor.script(
      { do: "key", apiKey, userId: "user-1" },
      { do: "key", apiKey: otherApiKey, userId: otherUserId },
    );
    await vendor.useKey("default", apiKey);
    await vendor.useKey("other", otherApiKey);
    await vendor.writeAccounts();
    await vendor.startAdapter();
    return vendor;
  } catch (error) {
    await vendor.stop();
    throw error;
  }
}
