import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProviderClient } from "../../services/contract/provider-client.ts";
import { ProviderError } from "../../services/contract/provider-error.ts";
import { FakeClock } from "../../services/process/fake-clock.ts";
import type { ConnectedProvider } from "../providers/providers.ts";
import { parseConditions } from "../resource/digital-human-provider.ts";
import { objectAt, stringsAt } from "../resource/json-door.ts";
import type { JsonObject } from "../resource/json-door.ts";
import { ClassReconciler } from "./class-reconciler.ts";
import type { ClassObjects } from "./class-reconciler.ts";
import type { PlaceCounts } from "./class-status.ts";

const finalizer = "dhp.example.com/class-in-use";

/** One class, its users, and what was written. */
class World implements ClassObjects {
  raw: JsonObject | undefined;
  users_: JsonObject[] = [];
  hasSeen = true;
  writes: string[] = [];
  answer: ProviderError | undefined;
  capabilities: readonly string[] = ["DELETE"];
  places: PlaceCounts = { fresh: 0, pending: 0, stale: [] };

  constructor(metadata: object = {}) {
    this.raw = {
      metadata: { name: "tts", uid: "u", generation: 3, ...metadata },
      spec: { adapter: { address: "127.0.0.1:1" } },
    };
  }

  cached(): JsonObject | undefined {
    return this.raw;
  }

  hasSeenOwnWrite(): boolean {
    return this.hasSeen;
  }

  users(): readonly JsonObject[] {
    return this.users_;
  }

  async patch(before: JsonObject, after: JsonObject): Promise<JsonObject | undefined> {
    assert.equal(before, this.raw);
    this.writes.push("object");
    const metadata = objectAt(after, "metadata");
    const isGone =
      metadata["deletionTimestamp"] !== undefined && stringsAt(metadata, "finalizers").length === 0;
    this.raw = isGone ? undefined : after;
    return this.raw;
  }

  async patchStatus(before: JsonObject, after: JsonObject): Promise<JsonObject> {
    if (JSON.stringify(before) !== JSON.stringify(after)) this.writes.push("status");
    this.raw = after;
    return after;
  }

  use(count: number): void {
    this.users_ = Array.from({ length: count }, (_, index) => ({
      metadata: { namespace: "media", name: `user-${index}` },
      status: { className: "tts" },
    }));
  }

  finalizers(): readonly string[] {
    return stringsAt(objectAt(this.raw, "metadata"), "finalizers");
  }

  condition(type: string): string {
    const conditions = parseConditions(objectAt(this.raw, "status"));
    const found = conditions.find((condition) => condition.type === type);
    assert.ok(found, `no condition ${type}`);
    return `${found.status} ${found.reason}: ${found.message}`;
  }
}

function reconciler(world: World, clock = new FakeClock()): ClassReconciler {
  // The door: a class is never called through, only asked who its adapter is.
  const client = {} as ProviderClient;
  const provider: ConnectedProvider = {
    client,
    name: "tts-adapter",
    version: "7",
    capabilities: world.capabilities,
    canDelete: true,
    canRelease: false,
    settling: { mutationDeadlineMs: 1, visibilityLagMs: 1, clockSkewMs: 1 },
  };
  return new ClassReconciler({
    objects: world,
    providers: {
      connected: async () => {
        if (world.answer !== undefined) throw world.answer;
        return provider;
      },
    },
    placesOf: () => world.places,
    clock,
    probeMs: 15_000,
  });
}

test("a class that is used gets the finalizer, one that is not keeps none", async () => {
  const world = new World();
  await reconciler(world).reconcile("tts");
  assert.deepEqual(world.finalizers(), []);
  world.use(1);
  await reconciler(world).reconcile("tts");
  assert.deepEqual(world.finalizers(), [finalizer]);
});

test("an unused class that lives keeps its finalizer: taking it off and on would be writes for nothing", async () => {
  const world = new World({ finalizers: [finalizer] });
  await reconciler(world).reconcile("tts");
  assert.deepEqual(world.finalizers(), [finalizer]);
});

test("a deleted class waits for its users and names them, then goes", async () => {
  const world = new World({ finalizers: [finalizer], deletionTimestamp: "then" });
  const clock = new FakeClock();
  const kept = reconciler(world, clock);
  world.use(7);
  await kept.reconcile("tts");
  assert.match(world.condition("InUse"), /^True DeletionWaits: .*media\/user-0.* and 2 more/);
  await clock.advance(5_000);
  assert.equal(await kept.reconcile("tts"), 15_000);
  world.use(0);
  assert.equal(await kept.reconcile("tts"), undefined);
  assert.equal(world.raw, undefined);
});

test("an instance may still be recorded with a class that was deleted just now: it stays a while", async () => {
  const clock = new FakeClock();
  const world = new World({ finalizers: [finalizer], deletionTimestamp: "then" });
  const kept = reconciler(world, clock);
  const afterMs = await kept.reconcile("tts");
  assert.deepEqual(world.finalizers(), [finalizer]);
  assert.ok(afterMs !== undefined && afterMs > 0 && afterMs <= 5_000);
  await clock.advance(afterMs);
  assert.equal(await kept.reconcile("tts"), undefined);
  assert.equal(world.raw, undefined);
});

test("a deleted class that others still hold takes no new finalizer of ours", async () => {
  const world = new World({ finalizers: ["other"], deletionTimestamp: "then" });
  world.use(1);
  await reconciler(world).reconcile("tts");
  assert.deepEqual(world.finalizers(), ["other"]);
});

test("status says who answers, and the same again writes nothing", async () => {
  const world = new World();
  world.use(2);
  await reconciler(world).reconcile("tts");
  const status = objectAt(world.raw, "status");
  assert.deepEqual(status["adapter"], { name: "tts-adapter", version: "7" });
  assert.deepEqual(status["capabilities"], ["DELETE"]);
  assert.equal(status["instances"], 2);
  assert.match(world.condition("Connected"), /^True Answers: .*tts-adapter.*127\.0\.0\.1:1/);
  assert.match(world.condition("Compatible"), /^True SameVersion/);
  world.writes = [];
  await reconciler(world).reconcile("tts");
  assert.deepEqual(world.writes, []);
});

test("an adapter that does not answer is not connected, and its version not known", async () => {
  const world = new World();
  world.answer = ProviderError.foreign("UNAVAILABLE", "connection refused");
  await reconciler(world).reconcile("tts");
  assert.match(world.condition("Connected"), /^False Unreachable: .*127\.0\.0\.1:1.*refused/);
  assert.match(world.condition("Compatible"), /^Unknown/);
});

test("a class is healthy while what is known of its places is fresh", async () => {
  const rows: readonly (readonly [string, Partial<PlaceCounts>, RegExp])[] = [
    ["none recorded", {}, /^Unknown NotUsed/],
    ["first look", { pending: 1 }, /^Unknown Pending/],
    ["fresh", { fresh: 2 }, /^True Fresh/],
    ["one is old", { fresh: 2, stale: ["tts.example.com is old"] }, /^False Stale: tts.example/],
  ];
  for (const [name, counts, expected] of rows) {
    const world = new World();
    world.capabilities = ["WATCH_HEALTH"];
    world.places = { ...world.places, ...counts };
    await reconciler(world).reconcile("tts");
    assert.match(world.condition("Healthy"), expected, name);
  }
  const unwatched = new World();
  await reconciler(unwatched).reconcile("tts");
  assert.match(unwatched.condition("Healthy"), /^Unknown NotWatched/);
});

test("an adapter of another contract version is connected and not compatible", async () => {
  const world = new World();
  world.answer = new ProviderError("CONTRACT_VERSION", "speaks versions 2 to 3");
  await reconciler(world).reconcile("tts");
  assert.match(world.condition("Connected"), /^True/);
  assert.match(world.condition("Compatible"), /^False ContractVersion: speaks versions 2 to 3/);
});

test("what an adapter said of itself stays while it is away", async () => {
  const world = new World();
  await reconciler(world).reconcile("tts");
  world.answer = ProviderError.foreign("UNAVAILABLE", "connection refused");
  await reconciler(world).reconcile("tts");
  const status = objectAt(world.raw, "status");
  assert.deepEqual(status["adapter"], { name: "tts-adapter", version: "7" });
});

test("before its own write has come back, and of a class that is gone, nothing is done", async () => {
  const world = new World();
  world.hasSeen = false;
  assert.equal(await reconciler(world).reconcile("tts"), undefined);
  world.hasSeen = true;
  world.raw = undefined;
  assert.equal(await reconciler(world).reconcile("tts"), undefined);
  assert.deepEqual(world.writes, []);
});
