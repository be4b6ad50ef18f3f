/**
 * A vendor's API on this machine: HTTPS with an authority of its own, faults on request, and a record
 * of who asked what. What is one vendor's is its model (vendor-model.ts).
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createTestAuthority } from "../contract/test-certificates.ts";
import { startApiServer } from "./api-server.ts";
import { startFaultServer } from "./fault-server.ts";
import type { OwnFaultRoutes } from "./fault-server.ts";
import { VendorDesk } from "./vendor-desk.ts";
import type { VendorModel } from "./vendor-model.ts";

export interface VendorEmulatorOptions {
  /** 0, the default: any free port. */
  readonly port?: number;
  readonly faultPort?: number;
  /** How long every answer takes; 0 when absent. */
  readonly answerMs?: number;
  /** Further words of this vendor's own on the port behind the scenes. */
  readonly ownRoutes?: OwnFaultRoutes;
}

export interface VendorEmulator {
  /** https://127.0.0.1:PORT; its certificate also carries the vendor's host names. */
  readonly url: string;
  /** The authority's certificate, PEM. */
  readonly caFile: string;
  /** http://127.0.0.1:PORT behind the scenes; fault-words.ts says what it takes. */
  readonly faultUrl: string;
  stop(): Promise<void>;
}

export async function startVendorEmulator(
  model: VendorModel,
  options: VendorEmulatorOptions = {},
): Promise<VendorEmulator> {
  const { port = 0, faultPort = 0, answerMs = 0, ownRoutes } = options;
  const desk = new VendorDesk(model);
  const authority = await createTestAuthority("vendor emulator");
  const tls = await authority.issue([...model.hosts, "localhost", "127.0.0.1"]);
  const folder = await mkdtemp(join(tmpdir(), "dhp-emulator-"));
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const caFile = join(folder, "ca.crt");
    await writeFile(caFile, authority.pem);
    const api = await startApiServer({ desk, tls, port, answerMs });
    const faults = await startFaultServer(desk, { port: faultPort, ownRoutes }).catch(
      async (error: unknown) => {
        await api.close();
        throw error;
      },
    );
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
