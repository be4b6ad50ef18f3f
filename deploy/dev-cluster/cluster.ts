import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { readAuditLog, type AuditEntry } from "./audit-log.ts";
import { ensureBinary } from "./binaries.ts";
import { startChild, type RunningChild } from "./child-process.ts";
import { runCommand, type CommandResult } from "./command.ts";
import { readDevClusterOptions, type Environment } from "./dev-cluster-options.ts";

const tokenSecondsDefault = 3_600;
const requestTimeoutMs = 5_000;
const readyPrefix = "ready ";

export interface ClusterOptions {
  /** Data folder; an absent one is a temporary folder that stop() removes. */
  readonly folder?: string;
  /** Port on the loopback address; a free one when absent. */
  readonly port?: number;
  /**
   * Namespaces really end, owner references are collected, ServiceAccounts named "default" and
   * the pods of Deployments appear (nothing runs them). False when absent.
   */
  readonly withControllerManager?: boolean;
  /** The API server logs each request: see Cluster.audit. False when absent. */
  readonly auditLog?: boolean;
}

export interface ServiceAccountOptions {
  readonly namespace: string;
  readonly name: string;
  /** Life of the token; 3,600 when absent. The API server accepts no less than 600. */
  readonly expirationSeconds?: number;
}

export interface KubectlOptions {
  /** Standard input, for "apply -f -". */
  readonly input?: string;
  /** Another user's kubeconfig; the administrator's when absent. */
  readonly kubeconfig?: string;
  /** Added to the environment, KUBE_EDITOR for example. */
  readonly environment?: Environment;
  /** 120 s when absent. */
  readonly timeoutMs?: number;
}

/** A control plane of its own: kube-apiserver over etcd, RBAC on, and nothing that runs pods. */
export interface Cluster {
  /** https://127.0.0.1:<port>; stays the same over restarts. */
  readonly url: string;
  /** The authority that signed the server's certificate (PEM). */
  readonly caFile: string;
  /** Path of the administrator's kubeconfig (system:masters). */
  readonly adminKubeconfig: string;
  readonly folder: string;
  /** Ends all processes; removes the folder if it was a temporary one. May be called twice. */
  stop(): Promise<void>;
  /** SIGKILL to all processes. restart() brings the cluster back. */
  kill(): Promise<void>;
  /** Ends what still runs and starts again with the same data, certificates and port. */
  restart(): Promise<void>;
  /** SIGSTOP to the API server and etcd: connections stay open, nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /**
   * Asks for a token of an existing ServiceAccount and returns the path of a kubeconfig that
   * holds nothing else. Asking again replaces the file's content at once, under the same path.
   */
  serviceAccountKubeconfig(options: ServiceAccountOptions): Promise<string>;
  /** Runs kubectl to its end, whatever its exit code. Rejects only if it cannot run. */
  kubectl(args: readonly string[], options?: KubectlOptions): Promise<CommandResult>;
  /** All requests so far, oldest first. Rejects without the option auditLog. */
  audit(): Promise<readonly AuditEntry[]>;
}

/**
 * Starts a cluster; the first call on a machine builds the programs (minutes), later ones take
 * about two seconds. Any number may run at once. Rejects with the server's last words.
 */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const isTemporary = options.folder === undefined;
  const folder = resolve(options.folder ?? (await mkdtemp(join(tmpdir(), "dhp-cluster-"))));
  try {
    const cluster = new LocalCluster({ ...options, folder, isTemporary });
    await cluster.start();
    return cluster;
  } catch (cause) {
    if (isTemporary) await rm(folder, { recursive: true, force: true });
    throw cause;
  }
}

interface Settings extends ClusterOptions {
  readonly folder: string;
  readonly isTemporary: boolean;
}

class LocalCluster implements Cluster {
  readonly folder: string;
  readonly caFile: string;
  readonly adminKubeconfig: string;
  readonly #settings: Settings;
  readonly #environment: Environment = readDevClusterOptions().environment;
  readonly #auditFile: string;
  #url = "";
  #apiServer: RunningChild | undefined;
  #controllerManager: RunningChild | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.folder = settings.folder;
    this.caFile = join(this.folder, "pki/ca.crt");
    this.adminKubeconfig = join(this.folder, "admin.kubeconfig");
    this.#auditFile = join(this.folder, "audit.log");
  }

  get url(): string {
    return this.#url;
  }

  async start(): Promise<void> {
    try {
      await this.#startApiServer();
      if (this.#settings.withControllerManager === true) await this.#startControllerManager();
    } catch (cause) {
      await this.kill();
      throw cause;
    }
  }

  async stop(): Promise<void> {
    await this.#endProcesses((child) => child.stop());
    if (this.#settings.isTemporary) await rm(this.folder, { recursive: true, force: true });
  }

  async kill(): Promise<void> {
    await this.#endProcesses((child) => child.kill());
  }

  async restart(): Promise<void> {
    await this.#endProcesses((child) => child.stop());
    await this.start();
  }

  pause(): void {
    this.#apiServer?.pause();
  }

  resume(): void {
    this.#apiServer?.resume();
  }

  async kubectl(args: readonly string[], options: KubectlOptions = {}): Promise<CommandResult> {
    const kubectl = await ensureBinary("kubectl");
    const { kubeconfig = this.adminKubeconfig, input, environment, timeoutMs } = options;
    const cacheFolder = join(this.folder, "kubectl-cache");
    return await runCommand(
      kubectl,
      [`--kubeconfig=${kubeconfig}`, `--cache-dir=${cacheFolder}`, ...args],
      {
        input,
        timeoutMs,
        // A developer's own kubectl preferences must not change what a test sees.
        environment: { ...this.#environment, KUBECTL_KUBERC: "false", ...environment },
      },
    );
  }

  async serviceAccountKubeconfig(options: ServiceAccountOptions): Promise<string> {
    const { namespace, name, expirationSeconds = tokenSecondsDefault } = options;
    const user = `${namespace}.${name}`;
    const answer = await this.kubectl([
      "create",
      "token",
      name,
      `--namespace=${namespace}`,
      `--duration=${expirationSeconds}s`,
    ]);
    if (answer.code !== 0) {
      throw new Error(`no token for ServiceAccount ${namespace}/${name}: ${answer.stderr.trim()}`);
    }
    const authority = (await readFile(this.caFile)).toString("base64");
    const content = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        {
          name: "dev-cluster",
          cluster: { server: this.url, "certificate-authority-data": authority },
        },
      ],
      users: [{ name: user, user: { token: answer.stdout.trim() } }],
      contexts: [{ name: user, context: { cluster: "dev-cluster", user, namespace } }],
      "current-context": user,
    };
    const file = join(this.folder, "service-accounts", `${user}.kubeconfig`);
    await replaceFile(file, JSON.stringify(content, undefined, 2));
    return file;
  }

  async audit(): Promise<readonly AuditEntry[]> {
    if (this.#settings.auditLog !== true) {
      throw new Error("the cluster was started without the option auditLog");
    }
    return await readAuditLog(this.#auditFile);
  }

  async #startApiServer(): Promise<void> {
    const port = this.#url === "" ? (this.#settings.port ?? 0) : Number(new URL(this.#url).port);
    const args = ["apiserver", `--folder=${this.folder}`, `--port=${port}`];
    if (this.#settings.auditLog === true) args.push(`--audit-log=${this.#auditFile}`);
    this.#apiServer = await startChild({
      name: "kube-apiserver",
      program: await ensureBinary("cluster"),
      args,
      environment: this.#environment,
      readiness: { kind: "line", prefix: readyPrefix },
    });
    this.#url = this.#apiServer.readyLine.slice(readyPrefix.length);
  }

  /** Ready when its ServiceAccount controller has served the namespace "default". */
  async #startControllerManager(): Promise<void> {
    const [ca, cert, key] = await Promise.all(
      ["ca.crt", "admin.crt", "admin.key"].map((name) => readFile(join(this.folder, "pki", name))),
    );
    const url = `${this.#url}/api/v1/namespaces/default/serviceaccounts/default`;
    this.#controllerManager = await startChild({
      name: "kube-controller-manager",
      program: await ensureBinary("cluster"),
      args: ["controller-manager", `--folder=${this.folder}`],
      environment: this.#environment,
      readiness: { kind: "probe", probe: () => answersOk(url, { ca, cert, key }) },
    });
  }

  /** In reverse order: the controller manager needs the API server for its farewell. */
  async #endProcesses(end: (child: RunningChild) => Promise<unknown>): Promise<void> {
    const children = [this.#controllerManager, this.#apiServer];
    this.#controllerManager = undefined;
    this.#apiServer = undefined;
    for (const child of children) {
      if (child !== undefined) await end(child);
    }
  }
}

async function replaceFile(file: string, content: string): Promise<void> {
  await mkdir(join(file, ".."), { recursive: true });
  const temporary = `${file}.${process.pid}.tmp`;
  await writeFile(temporary, content, { mode: 0o600 });
  await rename(temporary, file);
}

interface ClientCertificate {
  readonly ca: Buffer | undefined;
  readonly cert: Buffer | undefined;
  readonly key: Buffer | undefined;
}

function answersOk(url: string, certificate: ClientCertificate): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { ...certificate, agent: false, timeout: requestTimeoutMs } as const;
    const call = request(url, options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    call.on("timeout", () => call.destroy(new Error("no answer in time")));
    // Not reachable is not ready: the starter's deadline ends the asking.
    call.on("error", () => resolve(false));
    call.end();
  });
}
