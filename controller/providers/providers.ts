/**
 * Connections to adapters, one per address, shared by all classes that name it. A provider is handed
 * out only after it has said who it is and speaks our contract version.
 */
import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Duration } from "@bufbuild/protobuf/wkt";
import {
  Capability,
  CapabilitySchema,
  GetProviderInfoRequestSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { GetProviderInfoResponse } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { ProviderClient } from "../../services/contract/provider-client.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import type { Clock } from "../../services/process/clock.ts";
import type { SettlingTimes } from "../reconcile/doubt.ts";
import type { AdapterAddress } from "../resource/provider-class.ts";

/** The contract version this controller speaks. */
export const contractVersion = 1;

export interface ConnectedProvider {
  readonly client: ProviderClient;
  readonly name: string;
  /** Of its build. */
  readonly version: string;
  /** Names of `Capability` without prefix, those this controller knows, sorted. */
  readonly capabilities: readonly string[];
  readonly canDelete: boolean;
  readonly canRelease: boolean;
  readonly settling: SettlingTimes;
}

export interface ProvidersOptions {
  readonly connect: (adapter: AdapterAddress) => ProviderClient;
  readonly clock: Clock;
  /** How long GetProviderInfo may take. */
  readonly infoDeadlineMs: number;
  /** How long its answer is trusted: an adapter may be upgraded under the same address. */
  readonly infoMaxAgeMs: number;
}

interface Connection {
  readonly client: ProviderClient;
  info: { readonly provider: ConnectedProvider; readonly readAtMs: number } | undefined;
  asking: Promise<ConnectedProvider> | undefined;
}

export class Providers {
  readonly #options: ProvidersOptions;
  readonly #connections = new Map<string, Connection>();

  constructor(options: ProvidersOptions) {
    this.#options = options;
  }

  /** @throws ProviderError when the adapter does not answer or speaks another version */
  async connected(adapter: AdapterAddress): Promise<ConnectedProvider> {
    const connection = this.#connection(adapter);
    const { info } = connection;
    if (info !== undefined && this.#ageMs(info.readAtMs) < this.#options.infoMaxAgeMs) {
      return info.provider;
    }
    connection.asking ??= this.#ask(connection, adapter).finally(() => {
      connection.asking = undefined;
    });
    return connection.asking;
  }

  /** Closes the connections to adapters that no class names any more. */
  keepOnly(adapters: readonly AdapterAddress[]): void {
    const kept = new Set(adapters.map(connectionId));
    for (const [id, connection] of this.#connections) {
      if (kept.has(id)) continue;
      connection.client.close();
      this.#connections.delete(id);
    }
  }

  close(): void {
    this.keepOnly([]);
  }

  #connection(adapter: AdapterAddress): Connection {
    const id = connectionId(adapter);
    const known = this.#connections.get(id);
    if (known !== undefined) return known;
    const client = this.#options.connect(adapter);
    const connection: Connection = { client, info: undefined, asking: undefined };
    this.#connections.set(id, connection);
    return connection;
  }

  async #ask(connection: Connection, adapter: AdapterAddress): Promise<ConnectedProvider> {
    const request = create(GetProviderInfoRequestSchema, { contractVersion });
    const answer = await connection.client.getProviderInfo(request, {
      deadlineMs: this.#options.infoDeadlineMs,
    });
    checkVersion(answer, adapter.address);
    const provider = describeProvider(connection.client, answer);
    connection.info = { provider, readAtMs: this.#options.clock.monotonicMs() };
    return provider;
  }

  #ageMs(readAtMs: number): number {
    return this.#options.clock.monotonicMs() - readAtMs;
  }
}

/** Names a connection: classes that share it share the adapter. */
export function connectionId(adapter: AdapterAddress): string {
  return JSON.stringify([adapter.address, adapter.isTls, adapter.serverName ?? ""]);
}

function checkVersion(answer: GetProviderInfoResponse, address: string): void {
  const { contractVersionMin: min, contractVersionMax: max } = answer;
  if (min <= contractVersion && contractVersion <= max) return;
  throw new ProviderError(
    "CONTRACT_VERSION",
    `adapter "${answer.name}" at ${address} speaks contract versions ${min} to ${max}, this controller speaks ${contractVersion}: upgrade the older of the two`,
    { outcome: "NOT_APPLIED" },
  );
}

function describeProvider(
  client: ProviderClient,
  answer: GetProviderInfoResponse,
): ConnectedProvider {
  const { limits } = answer;
  return {
    client,
    name: answer.name,
    version: answer.buildVersion,
    capabilities: answer.capabilities.flatMap(capabilityName).sort(),
    canDelete: answer.capabilities.includes(Capability.DELETE),
    canRelease: answer.capabilities.includes(Capability.RELEASE),
    settling: {
      mutationDeadlineMs: msOf(limits?.mutationDeadline, mutationDeadlineMsDefault),
      visibilityLagMs: msOf(answer.visibilityLag, 0),
      clockSkewMs: msOf(limits?.clockSkewAllowance, clockSkewMsDefault),
    },
  };
}

function capabilityName(capability: Capability): readonly string[] {
  const name = CapabilitySchema.value[capability]?.localName;
  return name === undefined || capability === Capability.UNSPECIFIED ? [] : [name];
}

/** An adapter that does not say is taken to need long: doubt that is too long harms nobody. */
const mutationDeadlineMsDefault = 60_000;
const clockSkewMsDefault = 2_000;

function msOf(duration: Duration | undefined, absentMs: number): number {
  return duration === undefined ? absentMs : durationMs(duration);
}
