/**
 * ElevenLabs' agents API on this machine: HTTPS with an authority of its own, faults on request, and
 * a record of who called what. Everything it cannot know of the vendor is a setting
 * (emulator/settings.ts); the port behind the scenes takes the words of every vendor
 * (services/vendor-emulator/fault-words.ts) and scripts of its own (emulator/script-routes.ts).
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createTestAuthority } from "../../services/contract/test-certificates.ts";
import { startFaultServer } from "../../services/vendor-emulator/fault-server.ts";
import { apiHosts, startApiServer } from "./emulator/api-server.ts";
import { Director } from "./emulator/director.ts";
import { NeutralDesk } from "./emulator/neutral-desk.ts";
import { scriptRoutes } from "./emulator/script-routes.ts";
import { permissions, World } from "./emulator/world.ts";

/** A key that is good in workspace "global" from the start; scripts add others and revoke it. */
export const emulatorApiKey = "sk_emulator_key_of_the_first_user";

export interface EmulatorOptions {
  /** 0, the default: any free port. */
  readonly port?: number;
  readonly faultPort?: number;
}

export interface Emulator {
  /** https://127.0.0.1:PORT; its certificate also carries the vendor's host names. */
  readonly url: string;
  /** The authority's certificate, PEM. */
  readonly caFile: string;
  /** http://127.0.0.1:PORT for scripts. */
  readonly faultUrl: string;
  stop(): Promise<void>;
}

export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const { port = 0, faultPort = 0 } = options;
  const world = new World();
  world.addKey({ apiKey: emulatorApiKey, userId: "user-1", workspace: "global", permissions });
  const director = new Director(world);
  const authority = await createTestAuthority("ElevenLabs emulator");
  const tls = await authority.issue([...apiHosts, "localhost", "127.0.0.1"]);
  const folder = await mkdtemp(join(tmpdir(), "dhp-elevenlabs-"));
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const caFile = join(folder, "ca.crt");
    await writeFile(caFile, authority.pem);
    const api = await startApiServer({ world, director, tls, port });
    const faults = await startFaultServer(new NeutralDesk(world, director), {
      port: faultPort,
      ownRoutes: scriptRoutes(world, director),
    }).catch(async (error) => {
      await api.close();
      throw error;
    });
    return {
      url: `https://127.0.0.1:${api.port}`,
      caFile,
      faultUrl: `http://127.0.0.1:${faults.port}`,
      stop: async () => {
        await Promise.all([api.close(), faults.close()]);
        await removeFolder();
      },
    };
  } catch (error) {
    await removeFolder();
    throw error;
  }
}
