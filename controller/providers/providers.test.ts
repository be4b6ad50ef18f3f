import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";

import {
  Capability,
  GetProviderInfoResponseSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { ProviderClient } from "../../services/contract/provider-client.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { FakeClock } from "../../services/process/fake-clock.ts";
import type { AdapterAddress } from "../resource/provider-class.ts";
import { contractVersion, Providers } from "./providers.ts";

type Info = MessageInitShape<typeof GetProviderInfoResponseSchema>;
const plain: AdapterAddress = { address: "adapter:1", isTls: false };
const speaks = { contractVersionMin: 1, contractVersionMax: 1 };
const infoMaxAgeMs = 60_000;

/** Adapters that all answer alike, and what was asked of them. */
class Adapters {
  readonly connected: AdapterAddress[] = [];
  readonly closed: string[] = [];
  readonly clock = new FakeClock();
  askedCount = 0;
  answer: () => Info = () => ({ name: "simulated", ...speaks });
  readonly providers = new Providers({
    connect: (adapter) => this.#connect(adapter),
    clock: this.clock,
    infoDeadlineMs: 5_000,
    infoMaxAgeMs,
  });

  #connect(adapter: AdapterAddress): ProviderClient {
    this.connected.push(adapter);
    const unused = () => Promise.reject(new Error("not asked for here"));
    return {
      getProviderInfo: async (request, { deadlineMs }) => {
        assert.equal(request.contractVersion, contractVersion);
        assert.equal(deadlineMs, 5_000);
        this.askedCount += 1;
        return create(GetProviderInfoResponseSchema, this.answer());
      },
      ensure: unused,
      describe: unused,
      list: unused,
      delete: unused,
      release: unused,
      watchHealth: () => {
        throw new Error("not asked for here");
      },
      close: () => this.closed.push(adapter.address),
    };
  }
}

test("an adapter says who it is before it is handed out", async () => {
  const adapters = new Adapters();
  adapters.answer = () => ({
    name: "simulated",
    buildVersion: "1.2.3",
    ...speaks,
    capabilities: [Capability.DELETE, Capability.ADOPT],
    visibilityLag: durationFromMs(700),
    limits: { mutationDeadline: durationFromMs(9_000), clockSkewAllowance: durationFromMs(50) },
  });
  const provider = await adapters.providers.connected(plain);
  assert.deepEqual(provider, {
    client: provider.client,
    name: "simulated",
    version: "1.2.3",
    capabilities: ["ADOPT", "DELETE"],
    canDelete: true,
    canRelease: false,
    settling: { mutationDeadlineMs: 9_000, visibilityLagMs: 700, clockSkewMs: 50 },
  });
});

test("an adapter that names no times is taken to need long", async () => {
  const { settling } = await new Adapters().providers.connected(plain);
  assert.ok(settling.mutationDeadlineMs >= 60_000);
  assert.ok(settling.clockSkewMs >= 1_000);
});

test("what it said is trusted for a while, and then asked for again", async () => {
  const adapters = new Adapters();
  await adapters.providers.connected(plain);
  await adapters.clock.advance(infoMaxAgeMs - 1);
  await adapters.providers.connected(plain);
  assert.equal(adapters.askedCount, 1);
  await adapters.clock.advance(1);
  adapters.answer = () => ({ name: "upgraded", ...speaks });
  assert.equal((await adapters.providers.connected(plain)).name, "upgraded");
  assert.equal(adapters.askedCount, 2);
  assert.equal(adapters.connected.length, 1, "the connection stays");
});

test("many who want it at once ask once", async () => {
  const adapters = new Adapters();
  const wanted = Array.from({ length: 20 }, () => adapters.providers.connected(plain));
  const [first, ...others] = await Promise.all(wanted);
  assert.equal(adapters.askedCount, 1);
  assert.equal(adapters.connected.length, 1);
  for (const other of others) assert.equal(other.client, first?.client);
});

test("one connection an address, and another one with TLS or another name", async () => {
  const adapters = new Adapters();
  const { providers } = adapters;
  await providers.connected(plain);
  await providers.connected({ ...plain });
  await providers.connected({ ...plain, isTls: true });
  await providers.connected({ ...plain, isTls: true, serverName: "adapter" });
  await providers.connected({ ...plain, address: "adapter:2" });
  assert.equal(adapters.connected.length, 4);
});

test("an adapter of another contract version is refused with both versions", async () => {
  for (const [contractVersionMin, contractVersionMax] of [
    [2, 3],
    [0, 0],
  ] as const) {
    const adapters = new Adapters();
    adapters.answer = () => ({ name: "other", contractVersionMin, contractVersionMax });
    await assert.rejects(adapters.providers.connected(plain), (error: unknown) => {
      assert.ok(error instanceof ProviderError);
      assert.equal(error.reason, "CONTRACT_VERSION");
      assert.equal(error.outcome, "NOT_APPLIED");
      assert.match(error.message, RegExp(`${contractVersionMin} to ${contractVersionMax}`));
      return true;
    });
  }
});

test("a failure is not remembered", async () => {
  const adapters = new Adapters();
  adapters.answer = () => {
    throw ProviderError.foreign("UNAVAILABLE", "no connection");
  };
  await assert.rejects(adapters.providers.connected(plain), ProviderError);
  adapters.answer = () => ({ name: "back", ...speaks });
  assert.equal((await adapters.providers.connected(plain)).name, "back");
});

test("connections that no class names any more are closed, and all at the end", async () => {
  const adapters = new Adapters();
  const { providers } = adapters;
  await providers.connected(plain);
  await providers.connected({ ...plain, address: "adapter:2" });
  providers.keepOnly([{ ...plain, address: "adapter:2" }]);
  assert.deepEqual(adapters.closed, ["adapter:1"]);
  await providers.connected(plain);
  assert.equal(adapters.connected.length, 3, "it is opened anew when it is named again");
  providers.close();
  assert.deepEqual(adapters.closed.toSorted(), ["adapter:1", "adapter:1", "adapter:2"]);
});
