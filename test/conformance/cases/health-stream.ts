/** WatchHealth: a snapshot first, then changes, and a heartbeat that says how old the knowledge is. */
import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { Availability, Billing } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { TargetKnowledge } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { systemClock } from "../../../services/process/clock.ts";
import type { Bench } from "../core/bench.ts";
import { expect, unmet } from "../core/case.ts";
import type { ConformanceCase, Need } from "../core/case.ts";
import { refused } from "../core/expectations.ts";
import { HealthListener } from "../core/health-listener.ts";
import { keepsNames } from "../core/needs.ts";
import type { SuiteTarget } from "../core/parameters.ts";
import { shared, sharedForeign } from "../core/shared-subjects.ts";

export const canWatch: Need = { kind: "capability", name: "WATCH_HEALTH" };

/** Heartbeats come each 2 s at least; a busy machine may be late. */
const heartbeatMsMax = 4_000;
const slackMs = 6_000;
/** A first look at a place where nobody answers. */
const deadPlaceMsMax = 15_000;
const leavingMs = 300;
const readsPerSweepMin = 5;

function sweepMsOf({ info }: Bench): number {
  const interval = info.limits?.sweepInterval;
  return interval === undefined ? 5_000 : durationMs(interval);
}

/** Two sweeps, and room for a busy machine. */
export function changeMsMax(bench: Bench): number {
  return 2 * sweepMsOf(bench) + slackMs;
}

/** How long it may take until each instance was read by itself, where lists do not carry all fields. */
async function turnsMs(bench: Bench): Promise<number> {
  const { length } = await bench.faults.instances();
  return Math.ceil(length / readsPerSweepMin) * sweepMsOf(bench);
}

async function watching(
  bench: Bench,
  work: (listener: HealthListener) => Promise<void>,
  target = bench.parameters.target,
): Promise<void> {
  const listener = new HealthListener(bench, [target]);
  try {
    await listener.until("a snapshot", slackMs, () => listener.hasSnapshot);
    await work(listener);
  } finally {
    await listener.close();
  }
}

/** Waits for a change of the instance that `isSo` accepts. */
async function untilChanged(
  bench: Bench,
  listener: HealthListener,
  {
    id,
    what,
    isSo,
    waitMs = changeMsMax(bench),
  }: { id: string; what: string; isSo: (instance: Instance) => boolean; waitMs?: number },
): Promise<void> {
  await listener.until(what, waitMs, () =>
    listener.changed.some((instance) => instance.providerId === id && isSo(instance)),
  );
}

function editSeenCase(edit: "rename" | "change"): ConformanceCase {
  return {
    name: `health/${edit}-is-seen`,
    promise: `what ${edit} at the vendor's console makes of an instance is seen within two sweeps, or when its turn comes where lists lack the field`,
    checks: ["rpc:watch-health", "rpc:describe"],
    needs: [canWatch, { kind: "edit", name: edit }, ...(edit === "rename" ? [keepsNames] : [])],
    fix: "compare what each sweep shows with what you told last, and send those that differ",
    timeoutMs: 90_000,
    run: async (bench) => {
      // Where fewer instances are, turns are short.
      const target = bench.parameters.otherRealm ?? bench.parameters.target;
      const subject = bench.subject(`seen-${edit}`, { target });
      const { providerId: id, observed: before } = await subject.converge();
      const isSeen = ({ observed }: Instance): boolean =>
        edit === "rename"
          ? observed?.displayName !== before?.displayName
          : Object.entries(observed?.parameters ?? {}).some(
              ([name, value]) => before?.parameters[name] !== value,
            );
      const look = async (listener: HealthListener): Promise<void> => {
        await listener.until("it in the stream", changeMsMax(bench), () =>
          listener.known.has(subject.stamp),
        );
        listener.changed.length = 0;
        await bench.faults.edit({ edit, id });
        const waitMs = changeMsMax(bench) + (await turnsMs(bench));
        await untilChanged(bench, listener, { id, what: "its new fields", isSo: isSeen, waitMs });
      };
      await watching(bench, look, target);
    },
  };
}

export const healthStreamCases: readonly ConformanceCase[] = [
  {
    name: "health/snapshot-first-of-the-owner-alone",
    promise:
      "the stream opens with a snapshot of the owner's instances, ended by is_last, and of nobody else's",
    checks: ["rpc:watch-health"],
    needs: [canWatch],
    fix: "send the snapshot before anything else, filter by owner_cluster, and set is_last on its last part",
    timeoutMs: 60_000,
    run: async (bench) => {
      const { subject } = await shared(bench);
      const foreign = await sharedForeign(bench);
      await watching(bench, async (listener) => {
        const expected = "snapshots before all else";
        expect(listener.isSnapshotFirst, expected, () => listener.kinds.join(", "));
        await listener.until(`${subject.key} in the stream`, changeMsMax(bench), () =>
          listener.known.has(subject.stamp),
        );
        const isForeign = listener.known.has(foreign.subject.stamp);
        expect(!isForeign, "the owner's instances alone", () => foreign.subject.key);
      });
    },
  },
  {
    name: "health/heartbeats-say-how-old-it-is",
    promise:
      "a heartbeat comes at least each 2 s, names each target and its realm, and its observed_at moves on",
    checks: ["rpc:watch-health"],
    needs: [canWatch],
    fix: "send heartbeats by a timer of their own, with the time of the last complete sweep of each target",
    timeoutMs: 60_000,
    run: async (bench) => {
      await watching(bench, async (listener) => {
        await listener.until(
          "three heartbeats",
          4 * heartbeatMsMax,
          () => listener.heartbeats.length >= 3,
        );
        const gaps = listener.heartbeats.map(({ atMs }, at) =>
          at === 0 ? 0 : atMs - (listener.heartbeats[at - 1]?.atMs ?? atMs),
        );
        const longest = Math.max(...gaps);
        expect(longest <= heartbeatMsMax, `at most 2 s between two`, () => `${longest} ms`);
        const times = (): readonly number[] =>
          listener.heartbeats.flatMap(({ targets }) =>
            targets.flatMap(({ observedAt }) =>
              observedAt === undefined ? [] : [timestampMs(observedAt)],
            ),
          );
        await listener.until(
          "observed_at to move on",
          changeMsMax(bench),
          () => new Set(times()).size >= 2,
        );
        const [last] = listener.heartbeats.slice(-1);
        const [knowledge, ...others] = last?.targets ?? [];
        const isOurs = knowledge?.target?.endpoint === bench.parameters.target.endpoint;
        const isWhole = isOurs && others.length === 0 && knowledge.realm !== "";
        expect(isWhole, "one entry, our target, with its realm", () =>
          JSON.stringify(last?.targets.length),
        );
      });
    },
  },
  {
    name: "health/broken-and-mended-are-seen",
    promise: "an instance that breaks, and works again, is seen within two sweeps",
    checks: ["rpc:watch-health", "list:state"],
    needs: [canWatch, { kind: "edit", name: "break" }, { kind: "edit", name: "mend" }],
    fix: "read all instances in each sweep, and send those whose state or health changed",
    timeoutMs: 90_000,
    run: async (bench) => {
      const subject = bench.subject("broken");
      const { providerId: id } = await subject.converge();
      await watching(bench, async (listener) => {
        await listener.until("it in the stream", changeMsMax(bench), () =>
          listener.known.has(subject.stamp),
        );
        await bench.faults.edit({ edit: "break", id });
        const isBad = ({ health }: Instance): boolean =>
          health?.availability === Availability.UNAVAILABLE;
        await untilChanged(bench, listener, { id, what: "UNAVAILABLE", isSo: isBad });
        listener.changed.length = 0;
        await bench.faults.edit({ edit: "mend", id });
        const isGood = ({ health }: Instance): boolean =>
          health?.availability === Availability.AVAILABLE;
        await untilChanged(bench, listener, { id, what: "AVAILABLE again", isSo: isGood });
      });
    },
  },
  {
    name: "health/overdue-is-seen",
    promise: "an account whose invoice is overdue is seen within two sweeps, at each instance",
    checks: ["rpc:watch-health", "error:billing"],
    needs: [canWatch, { kind: "switch", name: "billing" }],
    fix: "read the account's billing in each sweep, and set it in each instance's health",
    timeoutMs: 90_000,
    run: async (bench) => {
      const { instance } = await shared(bench);
      const { providerId: id } = instance;
      await watching(bench, async (listener) => {
        await bench.faults.turn({ billing: "overdue" });
        const isOverdue = ({ health }: Instance): boolean => health?.billing === Billing.OVERDUE;
        await untilChanged(bench, listener, { id, what: "OVERDUE", isSo: isOverdue });
        listener.changed.length = 0;
        await bench.faults.turn({ billing: "exhausted" });
        const isGone = ({ health }: Instance): boolean => health?.billing === Billing.EXHAUSTED;
        await untilChanged(bench, listener, { id, what: "EXHAUSTED", isSo: isGone });
      });
    },
  },
  {
    name: "health/limited-is-seen",
    promise:
      "a vendor that throttles the sweeps shows as rate_limited, and is left alone meanwhile",
    checks: ["rpc:watch-health", "error:throttled"],
    needs: [canWatch, { kind: "effect", name: "throttled" }],
    fix: "when a sweep is throttled set rate_limited at the place's instances, and wait as long as the vendor says",
    timeoutMs: 90_000,
    run: async (bench) => {
      const { instance } = await shared(bench);
      const { providerId: id } = instance;
      await watching(bench, async (listener) => {
        const fault = { operation: "any", effect: "throttled", times: 10_000 } as const;
        await bench.faults.arm({ ...fault, retryAfterMs: 3_000 });
        const isLimited = ({ health }: Instance): boolean => health?.rateLimited !== undefined;
        await untilChanged(bench, listener, { id, what: "rate_limited", isSo: isLimited });
        const mark = await bench.faults.mark();
        await systemClock.sleep(1_500);
        const asked = (await bench.faults.requestsSince(mark)).length;
        expect(asked <= 2, "hardly a request before the vendor's hint", () => `${asked} came`);
      });
    },
  },
  {
    name: "health/gone-is-seen",
    promise: "an instance removed at the console is told as gone, with stamp and realm",
    checks: ["rpc:watch-health"],
    needs: [canWatch, { kind: "edit", name: "remove" }],
    fix: "what a whole sweep no longer shows, and a look by id confirms, goes into HealthChange.gone",
    timeoutMs: 90_000,
    run: async (bench) => {
      const subject = bench.subject("gone");
      const { providerId: id } = await subject.converge();
      await watching(bench, async (listener) => {
        await listener.until("it in the stream", changeMsMax(bench), () =>
          listener.known.has(subject.stamp),
        );
        await bench.faults.edit({ edit: "remove", id });
        await listener.until("it among the gone", changeMsMax(bench), () =>
          listener.gone.some(({ stamp, realm }) => stamp === subject.stamp && realm !== ""),
        );
      });
    },
  },
  {
    name: "health/silent-vendor-makes-knowledge-old",
    promise:
      "while the vendor fails, heartbeats go on, observed_at stands still, and message says why",
    checks: ["rpc:watch-health"],
    needs: [canWatch, { kind: "effect", name: "server-error" }],
    fix: "set observed_at after complete sweeps only, and message to what went wrong",
    timeoutMs: 90_000,
    run: async (bench) => {
      await shared(bench);
      await watching(bench, async (listener) => {
        await bench.faults.arm({ operation: "any", effect: "server-error", times: 10_000 });
        await listener.until("a message that says why", changeMsMax(bench), () =>
          (listener.heartbeats.at(-1)?.targets ?? []).some(({ message }) => message !== ""),
        );
        const seen = (): number | undefined => {
          const at = listener.heartbeats.at(-1)?.targets[0]?.observedAt;
          return at === undefined ? undefined : timestampMs(at);
        };
        const before = seen();
        const count = listener.heartbeats.length;
        await listener.until(
          "heartbeats to go on",
          3 * heartbeatMsMax,
          () => listener.heartbeats.length >= count + 2,
        );
        expect(seen() === before, "observed_at to stand still", () => `${before}, then ${seen()}`);
      });
    },
  },
  editSeenCase("rename"),
  editSeenCase("change"),
  {
    name: "health/one-dead-place-is-one-place",
    promise:
      "a place that cannot be reached has a message and no fresh observed_at; the place beside it is served as always",
    checks: ["rpc:watch-health", "error:vendor-failure"],
    needs: [canWatch, { kind: "parameter", name: "unreachable" }],
    fix: "sweep each target by itself, begin the stream when each was looked at once, well or not",
    timeoutMs: 90_000,
    run: async (bench) => {
      const { subject } = await shared(bench);
      const { target, unreachable = target } = bench.parameters;
      const listener = new HealthListener(bench, [target, unreachable]);
      try {
        const waitMs = changeMsMax(bench) + deadPlaceMsMax;
        await listener.until("our instance", waitMs, () => listener.known.has(subject.stamp));
        const knowledgeOf = ({ endpoint }: SuiteTarget): TargetKnowledge | undefined =>
          listener.heartbeats.at(-1)?.targets.find((one) => one.target?.endpoint === endpoint);
        const isTold = (): boolean => {
          const dead = knowledgeOf(unreachable);
          return dead !== undefined && dead.message !== "" && dead.observedAt === undefined;
        };
        await listener.until("a message of the dead place, and no observed_at", waitMs, isTold);
        const alive = (): boolean => {
          const known = knowledgeOf(target);
          return known?.message === "" && known.observedAt !== undefined;
        };
        await listener.until("fresh knowledge of the other place", waitMs, alive);
      } finally {
        await listener.close();
      }
    },
  },
  {
    name: "health/nobody-listens-nobody-asks",
    promise: "when the caller leaves, its stream ends and the vendor is asked no more",
    checks: ["rpc:watch-health"],
    needs: [
      canWatch,
      { kind: "vendor-faults" },
      {
        kind: "trait",
        what: "a sweep interval of at most 3 s",
        isSo: (bench) => sweepMsOf(bench) <= 3_000,
      },
    ],
    fix: "end sweeps with the last stream that needs them",
    timeoutMs: 60_000,
    run: async (bench) => {
      await watching(bench, async () => undefined);
      // A sweep that is under way may end.
      await systemClock.sleep(leavingMs);
      const mark = await bench.faults.mark();
      await systemClock.sleep(1.5 * sweepMsOf(bench));
      const asked = (await bench.faults.requestsSince(mark)).length;
      expect(asked === 0, "no request when nobody listens", () => `${asked} came`);
    },
  },
  {
    name: "health/question-is-checked",
    promise: "a question without owner or targets is INVALID_ARGUMENT",
    checks: ["rpc:watch-health", "error:bad-value"],
    needs: [canWatch],
    fix: "refuse a WatchHealth whose owner_cluster or targets are missing",
    run: async (bench) => {
      const { signal } = new AbortController();
      for (const request of [
        { ownerCluster: bench.cluster },
        { targets: [bench.parameters.target] },
      ]) {
        const [first = unmet("a refusal", "the stream ended with OK")] = await firstOf(
          bench.client.watchHealth(request, AbortSignal.any([signal, AbortSignal.timeout(5_000)])),
        );
        refused(first, { reasons: ["INVALID_FIELD"] });
      }
    },
  },
  {
    name: "health/not-declared-is-unimplemented",
    promise: "WatchHealth of an adapter that does not declare it is UNIMPLEMENTED (UNSUPPORTED)",
    checks: ["list:capability", "error:version"],
    needs: [{ kind: "no-capability", name: "WATCH_HEALTH" }],
    fix: "declare WATCH_HEALTH, or answer UNSUPPORTED",
    run: async (bench) => {
      const request = { ownerCluster: bench.cluster, targets: [bench.parameters.target] };
      const [first = unmet("a refusal", "the stream ended with OK")] = await firstOf(
        bench.client.watchHealth(request, AbortSignal.timeout(5_000)),
      );
      refused(first, { reasons: ["UNSUPPORTED"], codes: ["UNIMPLEMENTED"] });
    },
  },
];

async function firstOf<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  for await (const item of items) return [item];
  return [];
}
