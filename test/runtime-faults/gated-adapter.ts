/** ElevenLabs' adapter as a process, whose way to the vendor leads through a gate of its own. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { emulatorApiKey } from "../../adapters/elevenlabs/emulator.ts";
import { apiHosts } from "../../adapters/elevenlabs/emulator/workspaces.ts";
import type { VendorEmulator } from "../../services/vendor-emulator/emulator.ts";
import { otherApiKey } from "../support/elevenlabs.ts";
import { startProgram } from "../support/program.ts";
import type { Program } from "../support/program.ts";
import { VendorGate } from "./vendor-gate.ts";

export class GatedAdapter {
  readonly gate: VendorGate;
  readonly #folder: string;
  #program: Program;

  private constructor(parts: { gate: VendorGate; folder: string; program: Program }) {
    this.gate = parts.gate;
    this.#folder = parts.folder;
    this.#program = parts.program;
  }

  static async start(name: string, vendor: VendorEmulator): Promise<GatedAdapter> {
    const folder = await mkdtemp(join(tmpdir(), "dhp-gated-"));
    await writeAccounts(folder);
    const gate = await VendorGate.start(name, vendor);
    return new GatedAdapter({ gate, folder, program: await startAdapter(gate, folder, 0) });
  }

  get program(): Program {
    return this.#program;
  }

  /** `host:port`, the same after a restart. */
  get address(): string {
    return `127.0.0.1:${this.#program.ports.grpcPort}`;
  }

  /** A fresh process with empty memory at the old address. */
  async restart(): Promise<void> {
    const { grpcPort = 0 } = this.#program.ports;
    await this.#program.stop();
    this.#program = await startAdapter(this.gate, this.#folder, grpcPort);
  }

  async stop(): Promise<void> {
    await this.#program.stop();
    await this.gate.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

function startAdapter(gate: VendorGate, folder: string, grpcPort: number): Promise<Program> {
  return startProgram("adapters/elevenlabs/main.ts", [
    `--listen=127.0.0.1:${grpcPort}`,
    "--admin-listen=127.0.0.1:0",
    `--accounts=${join(folder, "accounts.yaml")}`,
    `--vendor-ca=${gate.caFile}`,
    ...apiHosts.map((host) => `--connect-to=https://${host}=${gate.url}`),
  ]);
}

/** The accounts of `ElevenLabs`: two people who share a workspace. */
async function writeAccounts(folder: string): Promise<void> {
  const keys = { default: emulatorApiKey, other: otherApiKey };
  const accounts: Record<string, object> = {};
  for (const [name, apiKey] of Object.entries(keys)) {
    const credentialFile = join(folder, `${name}.json`);
    await writeFile(credentialFile, JSON.stringify({ apiKey }), { mode: 0o600 });
    accounts[name] = { endpointHosts: apiHosts, credentialFile, callsPerSecond: 1_000 };
  }
  await writeFile(join(folder, "accounts.yaml"), JSON.stringify({ accounts }));
}
