import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";

import { Availability, Billing } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { WatchHealthRequestSchema } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { WatchHealthResponse } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../../contract/provider-error.ts";
import type { Adapter, AdapterInfo } from "../adapter.ts";
import { makeStamp } from "../stamp.ts";
import { endpoint, eventually, failure, owner, testHost } from "../test-host.ts";
import type { TestHost } from "../test-host.ts";
import { status, testAdapter, testInfo, TestVendor } from "../test-vendor.ts";

type Event = WatchHealthResponse["event"];

let vendor: TestVendor;
let closers: (() => unknown)[] = [];

beforeEach(async () => {
  vendor = await TestVendor.start();
  closers = [() => vendor.stop()];
});
afterEach(async () => {
  for (const close of closers.reverse()) await close();
});

const target = { endpoint, region: "", account: "" };
const stampOf = (name: string, cluster = owner.cluster): ReturnType<typeof makeStamp> =>
  makeStamp(`fleet/ns/${name}`, { cluster, uid: "uid-1" }, "hash");

function hostOf(info: Partial<AdapterInfo> = {}, own: Partial<Adapter> = {}): TestHost {
  const capabilities = [...testInfo.capabilities, "WATCH_HEALTH"] as const;
  const adapter = testAdapter({ capabilities, ...info }, own);
  const host = testHost(vendor, adapter, { sweepIntervalMs: 20 });
  closers.push(() => host.close());
  return host;
}

/** Listens until the test ends; events as they came. */
function listen(
  { host }: TestHost,
  own: {
    readonly ownerCluster?: string;
    readonly targets?: readonly (typeof target)[];
    readonly heldForMs?: number;
  } = {},
): { readonly events: Event[]; leave(): void } {
  const stop = new AbortController();
  const { ownerCluster = owner.cluster, targets = [target], heldForMs } = own;
  const until = timestampFromMs(Date.now() + (heldForMs ?? 0));
  const held = heldForMs === undefined ? [] : [{ target, until }];
  const request = create(WatchHealthRequestSchema, { ownerCluster, targets: [...targets], held });
  const events: Event[] = [];
  const reading = (async () => {
    const call = { signal: stop.signal, deadlineAtMs: Infinity };
    for await (const { event } of host.handlers.watchHealth?.(request, call) ?? []) {
      events.push(event);
    }
  })();
  closers.push(async () => {
    stop.abort();
    await reading;
  });
  return { events, leave: () => stop.abort() };
}

function snapshotOf(events: readonly Event[]): readonly string[] {
  return events.flatMap((event) =>
    event.case === "snapshot" ? event.value.instances.map(({ providerId }) => providerId) : [],
  );
}

function changesOf(events: readonly Event[]): {
  readonly changed: readonly { readonly providerId: string }[];
  readonly gone: readonly string[];
} {
  const changes = events.flatMap((event) => (event.case === "change" ? [event.value] : []));
  return {
    changed: changes.flatMap(({ changed }) => changed),
    gone: changes.flatMap(({ gone }) => gone.map(({ providerId }) => providerId)),
  };
}

function messagesOf(events: readonly Event[]): readonly string[] {
  return events.flatMap((event) =>
    event.case === "heartbeat" ? event.value.targets.map(({ message }) => message) : [],
  );
}

function health(events: readonly Event[]): readonly {
  readonly availability: Availability;
  readonly billing: Billing;
  readonly isRateLimited: boolean;
}[] {
  const changes = events.flatMap((event) => (event.case === "change" ? event.value.changed : []));
  return changes.map((instance) => ({
    availability: instance.health?.availability ?? 0,
    billing: instance.health?.billing ?? 0,
    isRateLimited: instance.health?.rateLimited !== undefined,
  }));
}

test("the snapshot comes first, ends with is_last, and holds the owner's instances alone", async () => {
  for (const name of ["a", "b", "c"]) vendor.put({ stamp: stampOf(name) });
  vendor.put({ stamp: stampOf("foreign", "cluster-b") });
  vendor.put({ name: "without a stamp" });
  const { events } = listen(hostOf());
  await eventually(() => events.some((event) => event.case === "heartbeat"));
  assert.equal(events[0]?.case, "snapshot");
  assert.equal(snapshotOf(events).length, 3);
  const last = events.findLast((event) => event.case === "snapshot");
  assert.ok(last?.case === "snapshot" && last.value.isLast);
});

test("a change at the vendor arrives once, and what stays as it is never again", async () => {
  const thing = vendor.put({ stamp: stampOf("a") });
  vendor.put({ stamp: stampOf("b") });
  const { events } = listen(hostOf());
  await eventually(() => snapshotOf(events).length === 2);
  thing.state = "FAILED";
  await eventually(() => changesOf(events).changed.length > 0);
  const sweeps = vendor.requests.length;
  await eventually(() => vendor.requests.length > sweeps + 6);
  assert.deepEqual(
    changesOf(events).changed.map(({ providerId }) => providerId),
    [thing.id],
  );
});

test("what a list no longer shows is gone only when a read by id says so too", async () => {
  const hidden = vendor.put({ stamp: stampOf("hidden") });
  const removed = vendor.put({ stamp: stampOf("removed") });
  const { events } = listen(hostOf());
  await eventually(() => snapshotOf(events).length === 2);
  hidden.isUnlisted = true;
  vendor.things.delete(removed.id);
  await eventually(() => changesOf(events).gone.length > 0);
  const sweeps = vendor.requests.length;
  await eventually(() => vendor.requests.length > sweeps + 6);
  assert.deepEqual(changesOf(events).gone, [removed.id]);
});

test("a failed sweep leaves what is known, and the heartbeat says why it grows old", async () => {
  vendor.put({ stamp: stampOf("a") });
  const { events } = listen(hostOf());
  await eventually(() => messagesOf(events).includes(""));
  const faults = Array.from({ length: 200 }, () => ({
    method: "GET",
    when: "before" as const,
    effect: status(500),
  }));
  vendor.faults.push(...faults);
  await eventually(() => messagesOf(events).some((message) => message.includes("VENDOR_ERROR")));
  assert.deepEqual(changesOf(events), { changed: [], gone: [] });
  const ages = events.flatMap((event) =>
    event.case === "heartbeat" ? event.value.targets.map(({ observedAt }) => observedAt) : [],
  );
  assert.ok(ages.at(-1) !== undefined);
});

test("what the vendor states of the account by refusing shows at every instance until it serves again", async () => {
  vendor.put({ stamp: stampOf("a") });
  const classify: Adapter["classify"] = ({ status: code }) => {
    if (code === 200) return undefined;
    if (code === 402) return new ProviderError("BILLING_STOPPED", "pay first");
    return new ProviderError("THROTTLED", "slow down", { retryAfterMs: 50 });
  };
  const { events } = listen(hostOf({}, { classify }));
  await eventually(() => snapshotOf(events).length === 1);
  vendor.faults.push({ method: "GET", when: "before", effect: status(429) });
  await eventually(() => health(events).length >= 2);
  vendor.faults.push({ method: "GET", when: "before", effect: status(402) });
  await eventually(() => health(events).length >= 4);
  const available = { availability: Availability.AVAILABLE, isRateLimited: false };
  assert.deepEqual(health(events).slice(0, 4), [
    { ...available, billing: Billing.UNSPECIFIED, isRateLimited: true },
    { ...available, billing: Billing.UNSPECIFIED },
    { ...available, billing: Billing.OVERDUE },
    { ...available, billing: Billing.UNSPECIFIED },
  ]);
});

test("a vendor that says when to come again is left alone until then", async () => {
  const hint = { retryAfterMs: 60_000 };
  const classify: Adapter["classify"] = ({ status: code }) =>
    code === 200 ? undefined : new ProviderError("THROTTLED", "slow down", hint);
  const host = hostOf({}, { classify });
  vendor.faults.push({ method: "GET", when: "before", effect: status(429) });
  const { events } = listen(host);
  await eventually(() => messagesOf(events).some((message) => message.includes("THROTTLED")));
  const count = vendor.requests.length;
  await eventually(() => messagesOf(events).length >= 3);
  assert.equal(vendor.requests.length, count);
});

test("a host that has just started leaves a vendor alone that asked its predecessor for a wait", async () => {
  vendor.put({ stamp: stampOf("a") });
  const { events } = listen(hostOf(), { heldForMs: 1_500 });
  await eventually(() => messagesOf(events).some((message) => /asked for a wait/.test(message)));
  assert.deepEqual(vendor.requests, []);
  assert.deepEqual(snapshotOf(events), []);
  await eventually(() => changesOf(events).changed.length > 0);
  await eventually(() => messagesOf(events).at(-1) === "");
});

test("nobody listens: the vendor is not asked", async () => {
  vendor.put({ stamp: stampOf("a") });
  const host = hostOf();
  const { events, leave } = listen(host);
  await eventually(() => snapshotOf(events).length === 1);
  leave();
  const second = listen(host);
  await eventually(() => snapshotOf(second.events).length === 1);
  second.leave();
  const sweeper = vendor.requests.length;
  await host.ask.list();
  assert.ok(vendor.requests.length <= sweeper + 2);
});

test("streams on the same place share its sweeps, each with its own owner's instances", async () => {
  vendor.put({ stamp: stampOf("a") });
  vendor.put({ stamp: stampOf("b", "cluster-b") });
  const host = hostOf();
  const first = listen(host);
  const second = listen(host, { ownerCluster: "cluster-b" });
  await eventually(() => messagesOf(first.events).length > 0);
  await eventually(() => messagesOf(second.events).length > 0);
  assert.equal(snapshotOf(first.events).length, 1);
  assert.equal(snapshotOf(second.events).length, 1);
  assert.notDeepEqual(snapshotOf(first.events), snapshotOf(second.events));
});

test("fields that lists lack are read one by one, and an edit of one is seen in its turn", async () => {
  const things = ["a", "b", "c"].map((name) =>
    vendor.put({ stamp: stampOf(name), parameters: { size: "1" } }),
  );
  const lacking = testAdapter();
  const host = hostOf(
    { listsLackFields: true, callsPerSecond: 100 },
    {
      list: async (call, token) => {
        const page = await lacking.list(call, token);
        return {
          ...page,
          instances: page.instances.map((found) => ({ ...found, parameters: {} })),
        };
      },
    },
  );
  const { events } = listen(host);
  const shown = (): readonly (string | undefined)[] =>
    events
      .flatMap((event) => (event.case === "change" ? event.value.changed : []))
      .map(({ observed }) => observed?.parameters["size"]);
  await eventually(() => shown().filter((size) => size === "1").length >= 2);
  const [, edited] = things;
  assert.ok(edited);
  edited.parameters["size"] = "7";
  await eventually(() => shown().includes("7"));
});

test("a target that cannot be asked is said in the heartbeat, and the others go on", async () => {
  vendor.put({ stamp: stampOf("a") });
  const wrong = { ...target, account: "unheard-of" };
  const { events } = listen(hostOf(), { targets: [wrong, target] });
  await eventually(() => messagesOf(events).length >= 2);
  assert.equal(snapshotOf(events).length, 1);
  const [first, second] = messagesOf(events);
  assert.match(first ?? "", /UNKNOWN_ACCOUNT/);
  assert.equal(second, "");
});

test("a question without owner or targets is refused", async () => {
  const { host } = hostOf();
  const call = { signal: new AbortController().signal, deadlineAtMs: Infinity };
  const asked = async (): Promise<void> => {
    const stream = host.handlers.watchHealth?.(create(WatchHealthRequestSchema), call) ?? [];
    for await (const message of stream) assert.fail(JSON.stringify(message));
  };
  const { reason, facts } = await failure(asked());
  assert.equal(reason, "INVALID_FIELD");
  assert.deepEqual(
    facts.fields?.map(({ path }) => path),
    ["owner_cluster", "targets"],
  );
});
