/** Which event comes next: everything that can happen now, with its likelihood. */
import type { Mutation } from "./vendor.ts";
import type { World } from "./world.ts";

export interface WorldEvent {
  readonly weight: number;
  readonly label: string;
  readonly run: () => void | Promise<void>;
}

/** How much is left of what is rare. */
export interface Budget {
  userActions: number;
  faults: number;
  consoleDeletes: number;
}

/** What goes on by itself. */
export function progressEvents(world: World): readonly WorldEvent[] {
  const events: WorldEvent[] = [];
  const { slow } = world;
  for (const turn of world.turns.waiting) {
    const isApi = turn.label.startsWith("PATCH");
    const isSlow = slow === (isApi ? "api" : "wire") && turn.owner === "wire";
    const weight = isSlow ? 1 : 10;
    events.push({ weight, label: turn.label, run: () => world.turns.go(turn) });
  }
  for (const mutation of world.vendor.pending) {
    events.push(commitEvent(mutation, slow === "vendor" ? 1 : 6));
  }
  for (const instance of world.vendor.live) {
    const { id, isReady, isDeleting } = instance;
    if (isDeleting) {
      const label = `vendor: ${id} is gone`;
      events.push({ weight: 3, label, run: () => world.vendor.end(instance) });
    } else if (!isReady) {
      const run = (): void => void (instance.isReady = true);
      events.push({ weight: 3, label: `vendor: ${id} is READY`, run });
    }
  }
  const { leader } = world;
  if (leader !== undefined) {
    if (!leader.isCacheCurrent) {
      const weight = slow === "watch" ? 1 : 6;
      events.push({ weight, label: "watch: one event", run: () => leader.deliver() });
    }
    const isDue = leader.isWanted || leader.dueMs <= world.clock.now();
    if (isDue && !leader.isRunning) {
      events.push({ weight: 8, label: `${leader.owner}: a pass`, run: () => leader.start() });
    }
  } else if (world.canLeaderStart) {
    events.push({ weight: 4, label: "a new leader", run: () => world.startLeader() });
  }
  for (const paused of world.pausedLeaders) {
    const run = (): void => world.endPausedLeader(paused);
    events.push({ weight: 2, label: `${paused.owner} notices that it leads no more`, run });
  }
  return events;
}

/** Time passes, and a leader that lives renews its lease: mostly in time. */
export function tickEvent(world: World): WorldEvent {
  const { leader, clock, random } = world;
  const dueInMs = (leader?.dueMs ?? 0) - clock.now();
  const isWorthWaiting = dueInMs > 0 && dueInMs < 30_000;
  const durationMs =
    isWorthWaiting && random.chance(0.3) ? dueInMs : random.pick([200, 1_000, 3_000, 7_000]);
  const run = async (): Promise<void> => {
    await world.advance(durationMs);
    if (world.random.chance(0.9)) world.leader?.renew();
  };
  return { weight: 5, label: `${durationMs} ms pass`, run };
}

export function userEvents(world: World, budget: Budget): readonly WorldEvent[] {
  if (budget.userActions === 0) return [];
  const { api, random } = world;
  const user = (weight: number, label: string, act: () => void): WorldEvent => ({
    weight,
    label: `user: ${label}`,
    run: () => {
      budget.userActions -= 1;
      act();
    },
  });
  if (api.object === undefined) {
    const { endpoint } = random.pick(world.places);
    return [user(1, `applies at ${endpoint}`, () => api.create(specAt(endpoint)))];
  }
  if (api.object.isDeleting) return [];
  const now = api.object.spec.endpoint;
  const { endpoint } = random.pick(world.places.filter((place) => place.endpoint !== now));
  return [
    user(2, `moves to ${endpoint}`, () => api.editSpec({ endpoint })),
    user(0.5, "renames", () => api.editSpec({ displayName: `name ${random.below(9)}` })),
    user(0.5, "asks for a pass", () =>
      api.annotate({ "dhp.example.com/reconcile-requested-at": String(random.below(99)) }),
    ),
    user(1.5, "deletes", () => api.delete()),
  ];
}

export function specAt(endpoint: string): Readonly<Record<string, unknown>> {
  return { endpoint, region: "r" };
}

export function faultEvents(world: World, budget: Budget): readonly WorldEvent[] {
  if (budget.faults === 0) return [];
  const events: WorldEvent[] = [];
  const fault = (weight: number, label: string, act: () => void): void => {
    const run = (): void => {
      budget.faults -= 1;
      act();
    };
    events.push({ weight, label: `fault: ${label}`, run });
  };
  const { leader, wire, vendor, random } = world;
  if (leader !== undefined) {
    fault(1, `${leader.owner} is killed`, () => world.killLeader());
    fault(0.5, `${leader.owner} is paused`, () => world.pauseLeader());
    if (leader.isRunning) {
      const cancelsCalls = random.chance(0.5);
      fault(0.5, `${leader.owner}'s pass is told to stop`, () => leader.abortPass(cancelsCalls));
    }
  }
  for (const call of wire.calls) {
    fault(1, `${call.label} loses its answer`, () => wire.lose(call, "UNAVAILABLE"));
  }
  for (const mutation of vendor.pending) {
    fault(0.5, `the vendor refuses a ${mutation.kind}`, mutation.refuse);
  }
  for (const address of world.adapters.keys()) {
    fault(0.5, `${address} crashes`, () => world.replaceAdapter(address, "crash"));
    fault(0.5, `${address} is cut off`, () => world.replaceAdapter(address, "cut"));
  }
  const live = vendor.live.filter(({ isDeleting }) => !isDeleting);
  if (budget.consoleDeletes > 0 && live.length > 0) {
    const instance = random.pick(live);
    fault(1, `someone deletes ${instance.id} in the vendor's console`, () => {
      budget.consoleDeletes -= 1;
      vendor.end(instance);
    });
  }
  return events;
}

function commitEvent({ kind, realm, commit }: Mutation, weight: number): WorldEvent {
  return { weight, label: `vendor commits a ${kind} in ${realm}`, run: commit };
}
