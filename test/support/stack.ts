/**
 * The whole line on real parts: kube-apiserver, LiveKit, the adapter and the controller as processes
 * of their own. Demo, load and integration tests stand on it.
 */
import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCluster } from "../../deploy/dev-cluster/cluster.ts";
import type { Cluster } from "../../deploy/dev-cluster/cluster.ts";
import { startLiveKit } from "../../deploy/dev-cluster/livekit.ts";
import type { LiveKit } from "../../deploy/dev-cluster/livekit.ts";
import { expectDone, layerFolder, untilEstablished } from "../../deploy/crd/cluster-fixture.ts";
import type { Layer } from "../../deploy/crd/cluster-fixture.ts";
import { elevenLabsEndpoint, elevenLabsUsEndpoint, startElevenLabs } from "./elevenlabs.ts";
import type { ElevenLabs, ElevenLabsOptions } from "./elevenlabs.ts";
import { startProgram } from "./program.ts";
import type { Program } from "./program.ts";

export interface StackOptions {
  readonly withControllerManager?: boolean;
  readonly auditLog?: boolean;
  /** Manifest folders to apply; crd and controller when absent. */
  readonly layers?: readonly Layer[];
  readonly adapterFlags?: readonly string[];
  readonly controllerFlags?: readonly string[];
  /** A second LiveKit server, the same account's, behind `otherEndpoint`. False when absent. */
  readonly withSecondVendor?: boolean;
  /** ElevenLabs' emulator, its adapter, and class "elevenlabs". Left out when absent. */
  readonly withElevenLabs?: ElevenLabsOptions;
  /** False: the test starts the controller itself. True when absent. */
  readonly withController?: boolean;
  /** Told before each part that takes time. */
  readonly onProgress?: (what: string) => void;
}

/** Endpoints whose host leads to the local LiveKit; the objects' endpoint stays https. */
export const livekitEndpoint = "https://live.example.com";
/** Another region of the same account: the second LiveKit, where the stack has one. */
export const otherEndpoint = "https://eu.livekit.example.com";
/** Allowed like the first, but nothing listens behind it. */
export const deadEndpoint = "https://dead.livekit.example.com";
const endpointHosts = ["live.example.com", "*.livekit.example.com"];

export class Stack {
  readonly cluster: Cluster;
  readonly livekit: LiveKit;
  /** The first one again, where the stack has no second. */
  readonly otherLivekit: LiveKit;
  readonly folder: string;
  readonly #options: StackOptions;
  #adapter: Program | undefined;
  #elevenLabs: ElevenLabs | undefined;
  #controller: Program | undefined;

  constructor(parts: {
    readonly cluster: Cluster;
    readonly livekit: LiveKit;
    readonly otherLivekit: LiveKit;
    readonly folder: string;
    readonly options: StackOptions;
  }) {
    this.cluster = parts.cluster;
    this.livekit = parts.livekit;
    this.otherLivekit = parts.otherLivekit;
    this.folder = parts.folder;
    this.#options = parts.options;
  }

  get adapter(): Program {
    if (this.#adapter === undefined) throw new Error("the adapter is not running");
    return this.#adapter;
  }

  get elevenLabs(): ElevenLabs {
    if (this.#elevenLabs === undefined) throw new Error("the stack has no ElevenLabs");
    return this.#elevenLabs;
  }

  get controller(): Program {
    if (this.#controller === undefined) throw new Error("the controller is not running");
    return this.#controller;
  }

  /** `grpcPort`: 0 for a free one; a restart passes the port that the class names. */
  async startAdapter(grpcPort = 0, flags: readonly string[] = []): Promise<Program> {
    this.#adapter = await startProgram("adapters/livekit/main.ts", [
      "--listen",
      `127.0.0.1:${grpcPort}`,
      "--admin-listen",
      "127.0.0.1:0",
      "--accounts",
      join(this.folder, "accounts.yaml"),
      "--connect-to",
      `${livekitEndpoint}=${this.livekit.url}`,
      "--connect-to",
      `${otherEndpoint}=${this.otherLivekit.url}`,
      "--connect-to",
      `${deadEndpoint}=http://127.0.0.1:1`,
      ...(this.#options.adapterFlags ?? []),
      ...flags,
    ]);
    return this.#adapter;
  }

  async startElevenLabs(options: ElevenLabsOptions): Promise<void> {
    this.#elevenLabs = await startElevenLabs(options);
    await this.applyElevenLabsClass("elevenlabs", {
      endpointHosts: [elevenLabsEndpoint, elevenLabsUsEndpoint].map((url) => new URL(url).host),
    });
  }

  /** With the kubeconfig of its own ServiceAccount and nothing more. */
  async startController(flags: readonly string[] = []): Promise<Program> {
    const kubeconfig = await this.cluster.serviceAccountKubeconfig({
      namespace: "dhp-system",
      name: "dhp-controller",
    });
    this.#controller = await startProgram("controller/main.ts", [
      "--kubeconfig",
      kubeconfig,
      "--fleet",
      "local",
      "--admin-listen",
      "127.0.0.1:0",
      ...(this.#options.controllerFlags ?? []),
      ...flags,
    ]);
    return this.#controller;
  }

  /** The class that leads to the running adapter. */
  async applyClass(name = "livekit", spec: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const address = `127.0.0.1:${this.adapter.ports.grpcPort}`;
    await this.apply({
      apiVersion: "dhp.example.com/v1alpha1",
      kind: "DigitalHumanProviderClass",
      metadata: { name },
      spec: { adapter: { address }, endpointHosts, ...spec },
    });
  }

  /** One that leads to ElevenLabs' adapter, for objects that name it. */
  async applyElevenLabsClass(
    name: string,
    spec: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    const { address } = this.elevenLabs;
    await this.applyClass(name, { adapter: { address }, endpointHosts: [], ...spec });
  }

  async apply(manifest: object): Promise<void> {
    const input = JSON.stringify(manifest);
    expectDone(await this.cluster.kubectl(["apply", "-f", "-"], { input }));
  }

  /** Ends everything, the youngest first. */
  async stop(): Promise<void> {
    await this.#controller?.stop();
    await Promise.all([this.#adapter?.stop(), this.#elevenLabs?.stop()]);
    await Promise.all([this.livekit.stop(), this.otherLivekit.stop(), this.cluster.stop()]);
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Starts all parts in the order they need each other; nothing is left running when one fails. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const tell = options.onProgress ?? (() => undefined);
  tell("kube-apiserver and LiveKit");
  const [cluster, livekit] = await Promise.all([
    startCluster({
      withControllerManager: options.withControllerManager ?? false,
      auditLog: options.auditLog ?? false,
    }),
    startLiveKit(),
  ]);
  const folder = await mkdtemp(join(tmpdir(), "dhp-stack-"));
  const otherLivekit =
    options.withSecondVendor === true ? await startLiveKit({ keys: livekit }) : livekit;
  const stack = new Stack({ cluster, livekit, otherLivekit, folder, options });
  try {
    await writeAccounts(folder, livekit);
    tell("CustomResourceDefinitions, roles and guards");
    await applyLayers(cluster, options.layers ?? ["crd", "controller"]);
    tell("the adapter");
    await stack.startAdapter();
    if (options.withElevenLabs !== undefined) await stack.startElevenLabs(options.withElevenLabs);
    await stack.applyClass();
    if (options.withController !== false) {
      tell("the controller");
      await stack.startController();
    }
    return stack;
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

async function applyLayers(cluster: Cluster, layers: readonly Layer[]): Promise<void> {
  for (const layer of layers) {
    expectDone(await cluster.kubectl(["apply", "-k", layerFolder(layer)]));
    if (layer === "crd") await untilEstablished(cluster);
  }
}

/** One account, as a mounted Secret would look: a folder with a file a field. */
async function writeAccounts(folder: string, livekit: LiveKit): Promise<void> {
  const credential = join(folder, "credential");
  await mkdir(credential);
  await writeFile(join(credential, "apiKey"), livekit.apiKey, { mode: 0o600 });
  await writeFile(join(credential, "apiSecret"), livekit.apiSecret, { mode: 0o600 });
  const accounts = { accounts: { default: { endpointHosts, credentialFile: credential } } };
  await writeFile(join(folder, "accounts.yaml"), JSON.stringify(accounts));
}
