/**
 * Adapters that the two real vendors do not show, beside a real one: programs that answer rubbish,
 * a vendor that cannot delete, and one where a person has to act.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { DescribeResponseSchema } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { testHost } from "../../services/adapter-host/test-host.ts";
import { testAdapter, testInfo, TestVendor } from "../../services/adapter-host/test-vendor.ts";
import type { ProviderHandlers } from "../../services/contract/provider-handlers.ts";
import { serveProvider } from "../../services/contract/server.ts";
import type { ProviderServer } from "../../services/contract/server.ts";
import { silentLog } from "../../services/process/log.ts";
import { httpGet } from "../support/http-get.ts";
import {
  applyDhp,
  condition,
  deleteDhp,
  dhp,
  forcePass,
  patchDhp,
  readDhp,
  untilGone,
  untilReady,
} from "../support/providers.ts";
import { startStack } from "../support/stack.ts";
import type { Stack } from "../support/stack.ts";
import { proxyPage, rubbishServers, startRaw } from "./rubbish-servers.ts";

const endpoint = "https://vendor.example";
let stack: Stack;
const closers: (() => unknown)[] = [];

before(async () => {
  stack = await startStack({
    controllerFlags: ["--back-off-max=500ms", "--reprobe=1s", "--call-deadline=2s"],
  });
  await applyDhp(stack.cluster, dhp("real"));
  await untilReady(stack.cluster, "real");
});
after(async () => {
  await stack?.stop();
  for (const close of closers.reverse()) await close();
});

interface TestAdapter {
  readonly vendor: TestVendor;
  readonly handlers: ProviderHandlers;
}

async function startTestAdapter(...own: Parameters<typeof testAdapter>): Promise<TestAdapter> {
  const vendor = await TestVendor.start();
  const host = testHost(vendor, testAdapter(...own));
  closers.push(async () => {
    await host.close();
    vendor.stop();
  });
  return { vendor, handlers: host.host.handlers };
}

async function serve(handlers: ProviderHandlers, port = 0): Promise<ProviderServer> {
  const server = await serveProvider({ handlers, host: "127.0.0.1", port, log: silentLog });
  closers.push(() => server.close());
  return server;
}

/** Class `name` leads to that port, for objects that name it. */
async function applyClassTo(name: string, port: number, account = "default"): Promise<void> {
  const adapter = { address: `127.0.0.1:${port}` };
  await stack.applyClass(name, { adapter, account, endpointHosts: [] });
}

/** It says who it is as it should, and answers Describe like this. */
async function describing(describe: NonNullable<ProviderHandlers["describe"]>): Promise<number> {
  const { handlers } = await startTestAdapter();
  return (await serve({ ...handlers, describe })).port;
}

function answering(instance?: { readonly providerId?: string }): () => Promise<number> {
  return () => describing(async () => create(DescribeResponseSchema, instance && { instance }));
}

const rubbish: readonly (readonly [what: string, start: () => Promise<number>])[] = [
  ...rubbishServers.map(([what, createServer]) => {
    const start = async (): Promise<number> => {
      const server = await startRaw(createServer());
      closers.push(() => server.stop());
      return server.port;
    };
    return [what, start] as const;
  }),
  ["a bug", () => describing(() => Promise.reject(new Error("undefined is not a function")))],
  ["no instance", answering()],
  ["an instance without anything", answering({})],
  ["more than a message may hold", answering({ providerId: "x".repeat(8 << 20) })],
];

rubbish.forEach(([what, start], index) => {
  test(`an adapter that answers ${what} is its own objects' trouble alone`, async () => {
    const { status: before } = await readDhp(stack.cluster, "real");
    const name = `rubbish-${index}`;
    await applyClassTo(name, await start());
    await applyDhp(stack.cluster, dhp(name, { endpoint, className: name }));
    const object = await untilReady(stack.cluster, name, "False");
    assert.ok(condition(object, "Ready").message.length < 1_000);
    assert.deepEqual(object.status?.placements ?? [], []);
    await forcePass(stack.cluster, "real");
    await deleteDhp(stack.cluster, name);
    await untilGone(stack.cluster, name, 5_000);
    assert.deepEqual((await readDhp(stack.cluster, "real")).status, before);
  });
});

test("a 404 from what stands in an adapter's place attests nothing: the object waits for its adapter", async () => {
  const { vendor, handlers } = await startTestAdapter({ mutationDeadlineMs: 1_000 });
  const server = await serve(handlers);
  await applyClassTo("replaced", server.port);
  await applyDhp(stack.cluster, dhp("replaced", { endpoint, className: "replaced" }));
  await untilReady(stack.cluster, "replaced");
  await server.close();
  const proxy = await startRaw(proxyPage(404), server.port);
  await deleteDhp(stack.cluster, "replaced");
  await eventually(async () => {
    const ready = condition(await readDhp(stack.cluster, "replaced"), "Ready");
    assert.equal(ready.status, "False");
    assert.match(ready.message, /404/);
  });
  await proxy.stop();
  assert.equal(vendor.things.size, 1);
  await serve(handlers, server.port);
  // What was sent to the proxy may have reached somebody: its doubt has to end first.
  await untilGone(stack.cluster, "replaced", 40_000);
  assert.equal(vendor.things.size, 0);
});

test("after all of this the controller is the one that was started, and works", async () => {
  const { adminPort } = stack.controller.ports;
  assert.equal((await httpGet(adminPort, "/healthz")).status, 200);
  assert.equal((await httpGet(adminPort, "/readyz")).status, 200);
  await applyDhp(stack.cluster, dhp("later"));
  await untilReady(stack.cluster, "later");
});

test("what a vendor cannot delete is refused before it is made, unless the policy fits", async () => {
  const capabilities = testInfo.capabilities.filter((name) => name !== "DELETE");
  const { vendor, handlers } = await startTestAdapter({ capabilities });
  await applyClassTo("undying", (await serve(handlers)).port);
  await applyDhp(stack.cluster, dhp("undying", { endpoint, className: "undying" }));
  const refused = await untilReady(stack.cluster, "undying", "False");
  assert.equal(condition(refused, "Ready").reason, "InvalidSpec");
  assert.match(condition(refused, "Ready").message, /cannot delete.*deletionPolicy to Retain/);
  assert.deepEqual(vendor.requests, []);
  await patchDhp(stack.cluster, "undying", { spec: { deletionPolicy: "Retain" } });
  await untilReady(stack.cluster, "undying");
  assert.equal(vendor.things.size, 1);
  await deleteDhp(stack.cluster, "undying");
  await untilGone(stack.cluster, "undying");
  const [left, ...others] = vendor.things.values();
  assert.ok(left);
  assert.deepEqual(others, []);
  assert.equal(left.stamp, null);
});

test("on a move to a place that waits for a person, the old instance serves until the new one is READY", async () => {
  const from = await startTestAdapter();
  const to = await startTestAdapter();
  await applyClassTo("old", (await serve(from.handlers)).port);
  await applyClassTo("new", (await serve(to.handlers)).port, "other");
  await applyDhp(stack.cluster, dhp("moving", { endpoint, className: "old" }));
  await untilReady(stack.cluster, "moving");
  to.vendor.newThing = { state: "AWAITING_HUMAN" };
  await patchDhp(stack.cluster, "moving", { spec: { className: "new" } });
  const waiting = await eventually(async () => {
    const object = await readDhp(stack.cluster, "moving");
    assert.equal(condition(object, "Ready").reason, "AwaitingHuman");
    return object;
  });
  const pending = condition(waiting, "CleanupPending");
  assert.equal(`${pending.status} ${pending.reason}`, "True Moving");
  assert.match(pending.message, /serves, and is billed, at https:\/\/vendor\.example/);
  for (let count = 0; count < 3; count += 1) await forcePass(stack.cluster, "moving");
  assert.deepEqual([from.vendor.things.size, to.vendor.things.size], [1, 1]);
  const [made] = to.vendor.things.values();
  assert.ok(made);
  made.state = "READY";
  await forcePass(stack.cluster, "moving");
  const moved = await untilReady(stack.cluster, "moving");
  await eventually(async () => {
    const object = await readDhp(stack.cluster, "moving");
    assert.equal(condition(object, "CleanupPending").status, "False");
  });
  assert.deepEqual([from.vendor.things.size, to.vendor.things.size], [0, 1]);
  assert.equal(moved.status?.providerID, made.id);
});
