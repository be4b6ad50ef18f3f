/** A host over TestVendor, with short ways to ask it; for this folder's tests. */
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import {
  DeleteRequestSchema,
  DescribeRequestSchema,
  EnsureRequestSchema,
  ListRequestSchema,
  ReleaseRequestSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../contract/provider-error.ts";
import type { CallContext, ProviderHandlers } from "../contract/provider-handlers.ts";
import { systemClock } from "../process/clock.ts";
import type { Clock } from "../process/clock.ts";
import { silentLog } from "../process/log.ts";
import { addressRules } from "../vendor-http/allow-list.ts";
import { defaultBreakerOptions } from "../vendor-http/breaker.ts";
import { defaultGatewayOptions, VendorGateway } from "../vendor-http/http-client.ts";
import { defaultWireOptions } from "../vendor-http/wire.ts";
import type { Account, Accounts } from "./accounts.ts";
import type { Adapter } from "./adapter.ts";
import { createHost, defaultHostTimes } from "./host.ts";
import type { AdapterHost, HostOptions } from "./host.ts";
import type { TestVendor } from "./test-vendor.ts";

export const endpoint = "https://vendor.example";
export const owner = { cluster: "cluster-a", uid: "uid-1" };
export const key = "fleet/ns/name";

export interface TestHost {
  readonly host: AdapterHost;
  readonly ask: Asker;
  close(): Promise<void>;
}

/** The credential of every account: it must appear in nothing that a host says. */
export const sentinel = "sentinel-secret-value";

/** Accounts "default" and "other" with one credential each. */
export const testAccounts: Accounts = {
  names: ["default", "other"],
  find: async (name) => {
    const known = { "": "default", default: "default", other: "other" }[name];
    return known === undefined ? undefined : accountNamed(known);
  },
  credentialOf: async () => ({ apiKey: sentinel }),
};

function accountNamed(name: string): Account {
  return { name, endpointHosts: ["vendor.example"], credentialFile: "/nowhere" };
}

export interface TestHostParts {
  readonly clock?: Clock;
  readonly accounts?: Accounts;
  /** Verdicts before a circuit may open; so many by default that none does. */
  readonly verdictCountMin?: number;
}

export function testHost(
  vendor: TestVendor,
  adapter: Adapter,
  own: Partial<HostOptions> & TestHostParts = {},
): TestHost {
  const clock = own.clock ?? systemClock;
  const gateway = new VendorGateway({
    clock,
    options: {
      ...defaultGatewayOptions,
      wire: defaultWireOptions,
      breaker: { ...defaultBreakerOptions, verdictCountMin: own.verdictCountMin ?? 1000 },
    },
    addresses: addressRules([]),
    connectTo: new Map([[endpoint, vendor.origin]]),
    metrics: { requestEnded: () => undefined, circuitChanged: () => undefined },
  });
  const host = createHost({
    adapter,
    accounts: own.accounts ?? testAccounts,
    gateway,
    clock,
    log: silentLog,
    options: {
      ...defaultHostTimes,
      buildVersion: "test",
      allowsPlainLoopback: false,
      allowedNetworks: addressRules([]),
      ...own,
    },
  });
  return { host, ask: new Asker(host.handlers), close: () => gateway.close() };
}

/** What a message is made from, without messages that are made already: those cannot be spread. */
type Fields<Schema extends DescMessage> = Exclude<MessageInitShape<Schema>, MessageShape<Schema>>;
type Ensure = Fields<typeof EnsureRequestSchema>;
type Delete = Fields<typeof DeleteRequestSchema>;
type Release = Fields<typeof ReleaseRequestSchema>;
type Describe = Fields<typeof DescribeRequestSchema>;
type List = Fields<typeof ListRequestSchema>;
type Handlers = Required<ProviderHandlers>;

/** A caller who waits as long as it takes. */
export const patient: CallContext = {
  signal: new AbortController().signal,
  deadlineAtMs: Infinity,
};

const target = { endpoint, region: "", account: "" };

/** Asks with everything filled in that a test does not speak of. */
export class Asker {
  readonly #handlers: Handlers;

  constructor(handlers: ProviderHandlers) {
    const { ensure, describe, list, release } = handlers;
    assert.ok(ensure && describe && list && release && handlers.delete);
    this.#handlers = handlers as Handlers;
  }

  ensure(own: Ensure = {}, call = patient): ReturnType<Handlers["ensure"]> {
    const spec = { parameters: { size: "1" } };
    const request = { instanceKey: key, owner, target, spec, mayCreate: true, ...inTime(), ...own };
    return this.#handlers.ensure(create(EnsureRequestSchema, request), call);
  }

  describe(own: Describe = {}, call = patient): ReturnType<Handlers["describe"]> {
    const request = { instanceKey: key, owner, target, ...own };
    return this.#handlers.describe(create(DescribeRequestSchema, request), call);
  }

  list(own: List = {}, call = patient): ReturnType<Handlers["list"]> {
    return this.#handlers.list(create(ListRequestSchema, { target, ...own }), call);
  }

  delete(own: Delete = {}, call = patient): ReturnType<Handlers["delete"]> {
    const request = { instanceKey: key, owner, target, ...inTime(), ...own };
    return this.#handlers.delete(create(DeleteRequestSchema, request), call);
  }

  release(own: Release = {}, call = patient): ReturnType<Handlers["release"]> {
    const request = { instanceKey: key, owner, target, ...inTime(), ...own };
    return this.#handlers.release(create(ReleaseRequestSchema, request), call);
  }
}

function inTime(): { notAfter: ReturnType<typeof timestampFromMs> } {
  return { notAfter: timestampFromMs(Date.now() + 60_000) };
}

/** The ProviderError that a call ends with. */
export async function failure(call: Promise<unknown>): Promise<ProviderError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof ProviderError, String(error));
    return error;
  }
  return assert.fail("it did not fail");
}

/** Resolves when `isSo` holds; fails after 5 s. */
export async function eventually(isSo: () => boolean): Promise<void> {
  const endMs = Date.now() + 5000;
  while (!isSo()) {
    assert.ok(Date.now() < endMs, "it did not come about within 5 s");
    await systemClock.sleep(5);
  }
}
