/** A real adapter's process before its vendor, asked over gRPC, and the truth behind it. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import { startLiveKit } from "../../deploy/dev-cluster/livekit.ts";
import type { LiveKit } from "../../deploy/dev-cluster/livekit.ts";
import {
  DeleteRequestSchema,
  DescribeRequestSchema,
  EnsureRequestSchema,
  ListRequestSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  DeleteResponse,
  DescribeResponse,
  EnsureResponse,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { connectProvider } from "../../services/contract/client.ts";
import type { ConnectedClient } from "../../services/contract/client.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { silentLog } from "../../services/process/log.ts";
import { elevenLabsEndpoint } from "../support/elevenlabs.ts";
import type { ElevenLabs } from "../support/elevenlabs.ts";
import { listRooms } from "../support/livekit-rooms.ts";
import { startProgram } from "../support/program.ts";
import { livekitEndpoint } from "../support/stack.ts";

export type Reply<T> =
  | { readonly kind: "answer"; readonly answer: T }
  | { readonly kind: "failure"; readonly failure: ProviderError };

type Ensure = Exclude<
  MessageInitShape<typeof EnsureRequestSchema>,
  MessageShape<typeof EnsureRequestSchema>
>;
type Delete = Exclude<
  MessageInitShape<typeof DeleteRequestSchema>,
  MessageShape<typeof DeleteRequestSchema>
>;

/** As long as a mutation may take at either vendor, and some. */
const deadlineMs = 30_000;
const owner = { cluster: "cluster-of-the-test", uid: "uid-1" };

export interface FrontParts {
  readonly name: string;
  readonly address: string;
  readonly target: { readonly endpoint: string; readonly region: string };
  /** Ids of everything that is at the vendor. */
  readonly ids: () => Promise<readonly string[]>;
}

/** Calls with everything filled in that a test does not speak of; what fails is a value. */
export class VendorFront {
  readonly name: string;
  readonly ids: () => Promise<readonly string[]>;
  readonly #target: FrontParts["target"];
  readonly #client: ConnectedClient;

  constructor({ name, address, target, ids }: FrontParts) {
    this.name = name;
    this.ids = ids;
    this.#target = target;
    this.#client = connectProvider({ address, log: silentLog });
  }

  ensure(instanceKey: string, own: Ensure = {}): Promise<Reply<EnsureResponse>> {
    const request = { ...this.#asked(instanceKey), spec: {}, mayCreate: true, ...own };
    return replyOf(this.#client.ensure(create(EnsureRequestSchema, request), { deadlineMs }));
  }

  delete(instanceKey: string, own: Delete = {}): Promise<Reply<DeleteResponse>> {
    const request = { ...this.#asked(instanceKey), ...own };
    return replyOf(this.#client.delete(create(DeleteRequestSchema, request), { deadlineMs }));
  }

  describe(instanceKey: string): Promise<Reply<DescribeResponse>> {
    const request = { instanceKey, owner, target: this.#target };
    return replyOf(this.#client.describe(create(DescribeRequestSchema, request), { deadlineMs }));
  }

  /** Keys of what List shows as this cluster's; a list of one page. */
  async listedKeys(ownerCluster: string): Promise<readonly string[]> {
    const request = create(ListRequestSchema, { target: this.#target, ownerCluster });
    const { instances } = await this.#client.list(request, { deadlineMs });
    return instances.map(({ instanceKey }) => instanceKey);
  }

  close(): void {
    this.#client.close();
  }

  #asked(instanceKey: string) {
    const notAfter = timestampFromMs(Date.now() + 60_000);
    return { instanceKey, owner, target: this.#target, notAfter };
  }
}

async function replyOf<T>(call: Promise<T>): Promise<Reply<T>> {
  try {
    return { kind: "answer", answer: await call };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return { kind: "failure", failure: error };
  }
}

/** For people and for comparing: "OK", or "ABORTED BUSY NOT_APPLIED". */
export function wordsOf(reply: Reply<unknown>): string {
  if (reply.kind === "answer") return "OK";
  const { code, reason, facts } = reply.failure;
  return [code, reason, facts.outcome].join(" ");
}

export interface LiveKitFront {
  readonly front: VendorFront;
  readonly livekit: LiveKit;
  stop(): Promise<void>;
}

/** @param through where the adapter finds LiveKit, given its URL; LiveKit itself when absent */
export async function startLiveKitFront(
  through: (url: string) => Promise<string> = async (url) => url,
): Promise<LiveKitFront> {
  const livekit = await startLiveKit();
  const folder = await mkdtemp(join(tmpdir(), "dhp-livekit-front-"));
  const credentialFile = join(folder, "credential");
  await mkdir(credentialFile);
  await writeFile(join(credentialFile, "apiKey"), livekit.apiKey, { mode: 0o600 });
  await writeFile(join(credentialFile, "apiSecret"), livekit.apiSecret, { mode: 0o600 });
  const endpointHosts = [new URL(livekitEndpoint).host];
  const accounts = { accounts: { default: { endpointHosts, credentialFile } } };
  await writeFile(join(folder, "accounts.yaml"), JSON.stringify(accounts));
  const adapter = await startProgram("adapters/livekit/main.ts", [
    "--listen=127.0.0.1:0",
    "--admin-listen=127.0.0.1:0",
    `--accounts=${join(folder, "accounts.yaml")}`,
    `--connect-to=${livekitEndpoint}=${await through(livekit.url)}`,
  ]);
  const front = new VendorFront({
    name: "LiveKit",
    address: `127.0.0.1:${adapter.ports.grpcPort}`,
    target: { endpoint: livekitEndpoint, region: "" },
    ids: async () => (await listRooms(livekit)).map(({ name }) => name),
  });
  return {
    front,
    livekit,
    stop: async () => {
      front.close();
      await adapter.stop();
      await livekit.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** For the adapter that runs now; another one after it was started again. */
export function elevenLabsFront(vendor: ElevenLabs): VendorFront {
  return new VendorFront({
    name: "ElevenLabs",
    address: vendor.address,
    target: { endpoint: elevenLabsEndpoint, region: "global" },
    ids: async () => (await vendor.agents()).map(({ id }) => id),
  });
}
