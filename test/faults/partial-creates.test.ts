/** Creates of several requests, of which a later one fails: what is there already is not forgotten. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { testHost } from "../../services/adapter-host/test-host.ts";
import type { TestHost } from "../../services/adapter-host/test-host.ts";
import { reset, status, testAdapter, TestVendor } from "../../services/adapter-host/test-vendor.ts";
import type { Adapter } from "../../services/adapter-host/adapter.ts";
import { serveProvider } from "../../services/contract/server.ts";
import type { ProviderServer } from "../../services/contract/server.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { silentLog } from "../../services/process/log.ts";
import {
  applyDhp,
  condition,
  deleteDhp,
  dhp,
  forcePass,
  readDhp,
  untilGone,
  untilReady,
} from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";

/** Longer than the doubt that a failed create leaves. */
const healMs = 40_000;

let stack: Stack;
let vendor: TestVendor;
let host: TestHost;
let server: ProviderServer;

before(async () => {
  [stack, vendor] = await Promise.all([
    startStack({ controllerFlags: ["--back-off-max=500ms", "--reprobe=1h"] }),
    TestVendor.start(),
  ]);
});
after(async () => {
  vendor?.stop();
  await stack?.stop();
});
afterEach(async () => {
  await stopAdapter();
  vendor.requests.length = 0;
  vendor.faults.length = 0;
});

async function startAdapter(create: Adapter["create"], port = 0): Promise<void> {
  host = testHost(vendor, testAdapter({ mutationDeadlineMs: 1_000 }, { create }));
  server = await serveProvider({
    handlers: host.host.handlers,
    host: "127.0.0.1",
    port,
    log: silentLog,
  });
}

async function stopAdapter(): Promise<void> {
  await server.close();
  await host.close();
}

/** An object at the vendor whose adapter creates like this. */
async function applyTo(create: Adapter["create"], name: string): Promise<void> {
  await startAdapter(create);
  const adapter = { address: `127.0.0.1:${server.port}` };
  await stack.applyClass(name, { adapter, endpointHosts: [] });
  const spec = { endpoint: "https://vendor.example", className: name, parameters: { size: "2" } };
  await applyDhp(stack.cluster, dhp(name, spec));
}

/** Begins with what carries the stamp, as adapters should; the vendor has a size of its own. */
const stampedFirst: Adapter["create"] = async (call, { stamp, parameters }) => {
  const begun = { stamp, parameters: { size: "1" } };
  const first = { method: "POST", path: "/things", body: begun, isMutation: true } as const;
  const { id } = (await call.http.send(first)).json as { id: string };
  const path = `/things/${id}`;
  await call.http.send({ method: "PATCH", path, body: { parameters }, isMutation: true });
  return id;
};

/** At a vendor that takes no stamp with the first request; the error names what it made. */
const stampedLast: Adapter["create"] = async (call, { stamp, parameters }) => {
  const first = {
    method: "POST",
    path: "/things",
    body: { parameters },
    isMutation: true,
  } as const;
  const { id } = (await call.http.send(first)).json as { id: string };
  try {
    const path = `/things/${id}`;
    await call.http.send({ method: "PATCH", path, body: { stamp }, isMutation: true });
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    throw error.withOutcome(error.outcome, id);
  }
  return id;
};

function createsSent(): number {
  return vendor.requests.filter((request) => request === "POST /things").length;
}

/** Not Ready, with a finalizer and the part at the vendor. */
async function untilPartial(name: string): Promise<void> {
  const object = await untilReady(stack.cluster, name, "False");
  assert.ok(object.metadata.finalizers?.length, "nothing keeps the object");
  assert.equal(vendor.things.size, 1);
}

async function expectRemoved(name: string): Promise<void> {
  await deleteDhp(stack.cluster, name);
  await untilGone(stack.cluster, name, healMs);
  assert.equal(vendor.things.size, 0);
  assert.equal(createsSent(), 1);
}

test("a later step of a create that is refused is told, keeps the finalizer, and the part goes with the object", async () => {
  vendor.faults.push({ method: "PATCH", when: "before", effect: status(422) });
  await applyTo(stampedFirst, "refused");
  await untilPartial("refused");
  const ready = condition(await readDhp(stack.cluster, "refused"), "Ready");
  assert.equal(ready.reason, "InvalidSpec", ready.message);
  await expectRemoved("refused");
});

for (const [what, name, effect] of [
  ["refused", "refused-once", status(422)],
  ["not answered", "unanswered", reset],
] as const) {
  test(`a later step that is ${what} is made up for by a later pass, and nothing is made twice`, async () => {
    vendor.faults.push({ method: "PATCH", when: "before", effect });
    await applyTo(stampedFirst, name);
    await eventually(async () => assert.equal(vendor.faults.length, 0));
    await forcePass(stack.cluster, name);
    await untilReady(stack.cluster, name);
    const [thing] = vendor.things.values();
    assert.deepEqual(thing?.parameters, { size: "2" });
    await expectRemoved(name);
  });
}

test("a part without a stamp, which the error alone names, is recorded: no restart of either side loses it", async () => {
  vendor.faults.push({ method: "PATCH", when: "before", effect: status(422) });
  await applyTo(stampedLast, "unstamped");
  await untilPartial("unstamped");
  const [part] = vendor.things.values();
  assert.equal((await readDhp(stack.cluster, "unstamped")).status?.providerID, part?.id);
  assert.equal(part?.stamp, undefined);
  const { port } = server;
  await Promise.all([stack.controller.kill(), stopAdapter()]);
  await deleteDhp(stack.cluster, "unstamped");
  await startAdapter(stampedLast, port);
  await stack.startController();
  await expectRemoved("unstamped");
});
