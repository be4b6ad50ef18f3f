/** The adapter as a process that the suite starts, kills and asks to stop. */
import { create } from "@bufbuild/protobuf";
import { startChild } from "../../../deploy/dev-cluster/child-process.ts";
import type { ChildExit, RunningChild } from "../../../deploy/dev-cluster/child-process.ts";
import { readDevClusterOptions } from "../../../deploy/dev-cluster/dev-cluster-options.ts";
import { findFreeTcpPort } from "../../../deploy/dev-cluster/free-port.ts";
import {
  GetProviderInfoRequestSchema,
  ProviderAPI,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { WireClient } from "./wire-client.ts";
import type { TlsFiles } from "./wire-client.ts";

const startTimeoutMs = 30_000;
const probeDeadlineMs = 1_000;

interface Ports {
  readonly port: number;
  readonly adminPort: number;
}

/** Starts processes from one command line, always on the same ports. */
export class AdapterLauncher {
  readonly address: string;
  readonly #command: readonly string[];
  readonly #ports: Ports;
  readonly #tls: TlsFiles | undefined;
  #running: RunningChild | undefined;
  /** What earlier processes wrote. */
  #earlierOutput = "";

  private constructor(command: readonly string[], ports: Ports, tls: TlsFiles | undefined) {
    this.#ports = ports;
    this.#command = command.map((word) => this.fillIn(word));
    this.#tls = tls;
    this.address = `127.0.0.1:${ports.port}`;
  }

  /**
   * @param command program and arguments; "{port}" stands for the port of ProviderAPI, "{adminPort}"
   * for another free one
   */
  static async prepare(command: readonly string[], tls?: TlsFiles): Promise<AdapterLauncher> {
    if (!command.some((word) => word.includes("{port}"))) {
      throw new Error('start: no word holds "{port}", the port that the adapter is to serve at');
    }
    const [port, adminPort] = await Promise.all([findFreeTcpPort(), findFreeTcpPort()]);
    return new AdapterLauncher(command, { port, adminPort }, tls);
  }

  /** A text of the parameters file with the ports in it. */
  fillIn(text: string): string {
    const { port, adminPort } = this.#ports;
    return text.replaceAll("{port}", `${port}`).replaceAll("{adminPort}", `${adminPort}`);
  }

  /** Returns when it serves. */
  async start(): Promise<void> {
    const [program = "", ...args] = this.#command;
    const probe = async (): Promise<boolean> => await this.#answers();
    this.#running = await startChild({
      name: program,
      program,
      args,
      environment: readDevClusterOptions().environment,
      readiness: { kind: "probe", probe },
      startTimeoutMs,
    });
  }

  /** SIGKILL; fulfilled when it has ended. */
  async kill(): Promise<void> {
    await this.#running?.kill();
    this.#forget();
  }

  /** SIGTERM, and SIGKILL after `timeoutMs`. */
  async terminate(timeoutMs: number): Promise<ChildExit> {
    if (this.#running === undefined) throw new Error("the adapter is not running");
    const exit = await this.#running.stop(timeoutMs);
    this.#forget();
    return exit;
  }

  /** A fresh process with empty memory. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** The end of what all its processes wrote. */
  output(): string {
    return this.#earlierOutput + (this.#running?.output() ?? "");
  }

  #forget(): void {
    this.#earlierOutput = this.output().slice(-outputLengthMax);
    this.#running = undefined;
  }

  async #answers(): Promise<boolean> {
    const { address } = this;
    const tls = this.#tls === undefined ? {} : { tls: this.#tls };
    const client = new WireClient({ address, secrets: [], ...tls });
    try {
      const request = create(GetProviderInfoRequestSchema);
      const reply = await client.call(ProviderAPI.method.getProviderInfo, request, {
        deadlineMs: probeDeadlineMs,
      });
      return reply.kind === "answer";
    } finally {
      client.close();
    }
  }
}

const outputLengthMax = 1 << 20;
