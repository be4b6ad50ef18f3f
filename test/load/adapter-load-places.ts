/** The servers that `npm run load:adapter` compares: adapters in front of their vendors, and the echo. */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create, toBinary } from "@bufbuild/protobuf";
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import { startLiveKit } from "../../deploy/dev-cluster/livekit.ts";
import {
  Change,
  DescribeRequestSchema,
  DescribeResponseSchema,
  EnsureRequestSchema,
  EnsureResponseSchema,
  ProviderAPI,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  DescribeRequest,
  DescribeResponse,
  EnsureRequest,
  EnsureResponse,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { connectProvider } from "../../services/contract/client.ts";
import type { ProviderClient } from "../../services/contract/provider-client.ts";
import { silentLog } from "../../services/process/log.ts";
import { livekitEndpoint } from "../support/stack.ts";
import { startProgram } from "../support/program.ts";
import type { EchoAnswers, Listening, LoadTask } from "./adapter-load-tasks.ts";

/** Longer than any run: a settled Ensure carries it, and the adapter looks at it each time. */
const notAfterMs = 3_600_000;
const startTimeoutMs = 20_000;

/** One RPC as it is sent again and again: for each instance the request that finds it settled. */
export type LoadRequest = Pick<LoadTask, "path" | "requestsBase64">;

export type LoadedRpc = "describe" | "ensure";

/** A running server and what it is asked. */
export interface Place {
  readonly port: number;
  readonly pid: number;
  readonly requests: Readonly<Record<LoadedRpc, LoadRequest>>;
  /** What it answered to each once, in protobuf. */
  readonly answers: EchoAnswers;
}

/** Things to end, the youngest first. */
export type Closers = (() => unknown)[];

/** The test adapter in front of the smallest vendor. */
export async function startSmallest(instances: number, closers: Closers): Promise<Place> {
  const vendor = forked("adapter-load-vendor.ts", closers);
  const { port } = await listening(vendor);
  const endpoint = "https://vendor.example";
  const credential = { apiKey: "key-of-the-load" };
  const main = "test/load/adapter-load-adapter.ts";
  const url = `http://127.0.0.1:${port}`;
  const parameters = { size: "1" };
  return startPlace({ main, endpoint, url, credential, parameters, instances }, closers);
}

/** LiveKit's adapter in front of a real LiveKit. */
export async function startBeforeLiveKit(instances: number, closers: Closers): Promise<Place> {
  const livekit = await startLiveKit();
  closers.push(() => livekit.stop());
  const { apiKey, apiSecret, url } = livekit;
  return startPlace(
    {
      main: "adapters/livekit/main.ts",
      endpoint: livekitEndpoint,
      url,
      credential: { apiKey, apiSecret },
      parameters: { maxParticipants: "10" },
      instances,
    },
    closers,
  );
}

/** The echo, asked as `like` is and answering the same. */
export async function startEcho(like: Place, closers: Closers): Promise<Place> {
  const echo = forked("adapter-load-echo.ts", closers);
  echo.send(like.answers);
  const { port } = await listening(echo);
  if (echo.pid === undefined) throw new Error("the echo has no process id");
  return { ...like, port, pid: echo.pid };
}

/** Starts a module of this folder, which ends with this process. */
export function forked(module: string, closers: Closers): ChildProcess {
  const child = fork(fileURLToPath(new URL(module, import.meta.url)), [], {
    execArgv: [],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  closers.push(() => void child.kill());
  return child;
}

/** The next message of a child; rejects when it ends first or takes too long. */
export function nextMessage<T>(child: ChildProcess, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no word in ${timeoutMs} ms`)), timeoutMs);
    const onExit = (): void => reject(new Error("the process ended"));
    child.once("exit", onExit);
    child.once("message", (message: T) => {
      clearTimeout(timer);
      child.removeListener("exit", onExit);
      resolve(message);
    });
  });
}

function listening(child: ChildProcess): Promise<Listening> {
  return nextMessage<Listening>(child, startTimeoutMs);
}

interface PlaceParts {
  readonly main: string;
  readonly endpoint: string;
  readonly url: string;
  readonly credential: Readonly<Record<string, string>>;
  readonly parameters: Readonly<Record<string, string>>;
  readonly instances: number;
}

async function startPlace(parts: PlaceParts, closers: Closers): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), "dhp-adapter-load-"));
  closers.push(() => rm(folder, { recursive: true, force: true }));
  const adapter = await startProgram(parts.main, [
    "--listen=127.0.0.1:0",
    "--admin-listen=127.0.0.1:0",
    `--accounts=${await writeAccounts(folder, parts)}`,
    `--connect-to=${parts.endpoint}=${parts.url}`,
  ]);
  closers.push(() => adapter.stop());
  const { grpcPort = 0 } = adapter.ports;
  // The program runs under a guard, which is not what is measured.
  const pid = await onlyChildOf(adapter.pid);
  return { port: grpcPort, pid, ...(await settle(grpcPort, parts)) };
}

/** As a mounted Secret looks: a folder with a file a field. */
async function writeAccounts(folder: string, parts: PlaceParts): Promise<string> {
  const credentialFile = join(folder, "credential");
  await mkdir(credentialFile);
  for (const [name, value] of Object.entries(parts.credential)) {
    await writeFile(join(credentialFile, name), value, { mode: 0o600 });
  }
  const endpointHosts = [new URL(parts.endpoint).host];
  const path = join(folder, "accounts.yaml");
  const accounts = { default: { endpointHosts, credentialFile } };
  await writeFile(path, JSON.stringify({ accounts }));
  return path;
}

/** Makes the instances; the requests for them once they are settled, as the controller sends them. */
async function settle(
  port: number,
  parts: PlaceParts,
): Promise<Pick<Place, "requests" | "answers">> {
  const client = connectProvider({ address: `127.0.0.1:${port}`, log: silentLog });
  try {
    const settled: Settled[] = [];
    for (let index = 0; index < parts.instances; index += 1) {
      settled.push(await settleOne(client, `load/default/object-${index}`, parts));
    }
    const [first] = settled;
    if (first === undefined) throw new Error("no instance");
    const { method } = ProviderAPI;
    return {
      requests: {
        ensure: requestOf(
          method.ensure,
          settled.map(({ ensure }) => toBinary(EnsureRequestSchema, ensure)),
        ),
        describe: requestOf(
          method.describe,
          settled.map(({ describe }) => toBinary(DescribeRequestSchema, describe)),
        ),
      },
      answers: {
        Ensure: base64(toBinary(EnsureResponseSchema, first.ensured)),
        Describe: base64(toBinary(DescribeResponseSchema, first.described)),
      },
    };
  } finally {
    client.close();
  }
}

interface Settled {
  readonly ensure: EnsureRequest;
  readonly describe: DescribeRequest;
  readonly ensured: EnsureResponse;
  readonly described: DescribeResponse;
}

async function settleOne(
  client: ProviderClient,
  instanceKey: string,
  { endpoint, parameters }: PlaceParts,
): Promise<Settled> {
  const owner = { cluster: "cluster-of-the-load", uid: "uid-1" };
  const asked = { instanceKey, owner, target: { endpoint }, spec: { parameters } };
  const wish = { ...asked, mayCreate: true, notAfter: timestampFromMs(Date.now() + notAfterMs) };
  const call = { deadlineMs: 20_000 };
  const made = await client.ensure(create(EnsureRequestSchema, wish), call);
  const { providerId = "", realm = "" } = made.instance ?? {};
  const recorded = { providerId, realm };
  const ensure = create(EnsureRequestSchema, { ...wish, recorded });
  const describe = create(DescribeRequestSchema, { ...asked, recorded });
  const ensured = await client.ensure(ensure, call);
  if (ensured.change !== Change.NONE) throw new Error(`${instanceKey} does not settle`);
  return { ensure, describe, ensured, described: await client.describe(describe, call) };
}

function requestOf(method: DescMethodUnary, requests: readonly Uint8Array[]): LoadRequest {
  const path = `/${method.parent.typeName}/${method.name}`;
  return { path, requestsBase64: requests.map(base64) };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

async function onlyChildOf(pid: number): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  const [child] = children.trim().split(" ");
  return child === undefined || child === "" ? pid : Number(child);
}
