/**
 * Stands between one adapter and ElevenLabs' emulator, over HTTPS on both sides, and notes when each
 * change began and ended: with a gate per controller it tells who changed the vendor, and when.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { Agent, createServer, request as httpsRequest } from "node:https";
import type { Server } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { apiHosts } from "../../adapters/elevenlabs/emulator/workspaces.ts";
import { createTestAuthority } from "../../services/contract/test-certificates.ts";
import {
  closeServer,
  listenOnLoopback,
  readBody,
} from "../../services/vendor-emulator/loopback-server.ts";
import type { VendorEmulator } from "../../services/vendor-emulator/emulator.ts";

/** A request that is no read, on the monotonic scale. */
export interface Change {
  readonly gate: string;
  readonly method: string;
  readonly path: string;
  readonly beganMs: number;
  /** Undefined while it goes on. */
  endedMs: number | undefined;
}

const timeoutMs = 10_000;

export class VendorGate {
  readonly name: string;
  readonly url: string;
  /** Of the gate's own authority. */
  readonly caFile: string;
  readonly changes: Change[] = [];
  /** When the latest request of any kind came; undefined: none did. */
  lastAskedMs: number | undefined;
  readonly #folder: string;
  readonly #server: Server;
  readonly #agent: Agent;
  readonly #vendorUrl: string;

  private constructor(parts: Parts) {
    this.name = parts.name;
    this.#folder = parts.folder;
    this.#server = parts.server;
    this.#vendorUrl = parts.vendorUrl;
    this.#agent = new Agent({ ca: parts.vendorCa, keepAlive: true });
    this.url = `https://127.0.0.1:${parts.port}`;
    this.caFile = join(parts.folder, "ca.crt");
    this.#server.on("request", (asked, answer) => {
      this.#serve(asked, answer).catch(() => answer.destroy());
    });
  }

  static async start(name: string, vendor: VendorEmulator): Promise<VendorGate> {
    const authority = await createTestAuthority(name);
    const server = createServer(await authority.issue([...apiHosts, "localhost", "127.0.0.1"]));
    const port = await listenOnLoopback(server, 0);
    const folder = await mkdtemp(join(tmpdir(), "dhp-gate-"));
    const vendorCa = await readFile(vendor.caFile, "utf8");
    const gate = new VendorGate({ name, folder, server, port, vendorUrl: vendor.url, vendorCa });
    await writeFile(gate.caFile, authority.pem);
    return gate;
  }

  async stop(): Promise<void> {
    await closeServer(this.#server);
    this.#agent.destroy();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #serve(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { method = "GET", url = "/", headers } = asked;
    const body = await readBody(asked);
    const beganMs = performance.now();
    this.lastAskedMs = beganMs;
    const change: Change = { gate: this.name, method, path: url, beganMs, endedMs: undefined };
    if (method !== "GET") this.changes.push(change);
    const options = { method, headers, agent: this.#agent, timeout: timeoutMs };
    const sent = httpsRequest(new URL(url, this.#vendorUrl), options, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.on("end", () => (change.endedMs = performance.now()));
      response.pipe(answer);
    });
    sent.on("timeout", () => sent.destroy(new Error("the vendor does not answer")));
    sent.on("error", () => {
      change.endedMs = performance.now();
      answer.destroy();
    });
    sent.end(body);
  }
}

interface Parts {
  readonly name: string;
  readonly folder: string;
  readonly server: Server;
  readonly port: number;
  readonly vendorUrl: string;
  readonly vendorCa: string;
}
