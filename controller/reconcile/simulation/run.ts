/** One simulated history: a seed chooses the world and the order of events. */
import { ProviderError } from "../../../services/contract/provider-error.ts";
import { deletionViolation, missingFromGoal, violationOf } from "./invariants.ts";
import { Random } from "./random.ts";
import { faultEvents, progressEvents, specAt, tickEvent, userEvents } from "./schedule.ts";
import type { Budget, WorldEvent } from "./schedule.ts";
import { World } from "./world.ts";
import type { Mutant, SimulatedPlace } from "./world.ts";

/** A rule was broken; the message holds the seed and all that happened. */
export class ViolationError extends Error {
  override readonly name = "ViolationError";
}

const stepsMax = 4_000;

/** @throws ViolationError */
export async function runSeed(seed: number, mutant: Mutant = {}): Promise<void> {
  const chance = new Random(seed + 0x9e3779b9);
  const world = new World({
    seed,
    places: placesOf(chance),
    isNamed: chance.chance(0.3),
    isDeletionAsync: chance.chance(0.3),
    slow: chance.pick(["nothing", "api", "vendor", "watch", "wire"] as const),
    mutant,
  });
  const budget: Budget = {
    userActions: 1 + chance.below(6),
    faults: chance.below(5),
    consoleDeletes: chance.chance(0.3) ? 1 : 0,
  };
  const isVendorMoody = chance.chance(0.2);
  const run = new Run(world, seed, budget.consoleDeletes > 0);
  const first = world.random.pick(world.places);
  world.api.create(specAt(first.endpoint));
  world.startLeader();
  world.fateOfWrite = () => {
    if (budget.faults === 0 || !world.random.chance(0.05)) return "applied";
    budget.faults -= 1;
    return world.random.chance(0.5) ? "refused" : "answer-lost";
  };
  world.faultOf = () => {
    if (!isVendorMoody || budget.faults === 0 || !world.random.chance(0.1)) return undefined;
    budget.faults -= 1;
    return refusalBy(world.random);
  };
  for (let count = 0; count < stepsMax && budget.userActions + budget.faults > 0; count++) {
    await run.step(nextEvents(world, budget));
  }
  budget.faults = 0;
  await run.converge();
  await run.stayQuiet();
}

/** The vendor does nothing, and says so. */
function refusalBy(random: Random): ProviderError {
  const reason = random.pick(["THROTTLED", "VENDOR_ERROR", "BUSY", "BAD_CREDENTIAL"] as const);
  const facts = { outcome: "NOT_APPLIED", retryAfterMs: 5_000 } as const;
  return new ProviderError(reason, "a fault of the vendor", facts);
}

/** Something that goes on by itself, mostly; a user, a fault or the passing of time now and then. */
function nextEvents(world: World, budget: Budget): readonly WorldEvent[] {
  const progress = progressEvents(world);
  const isIdle = progress.length === 0;
  const share = world.random.next();
  const events =
    share < (isIdle ? 0.5 : 0.06)
      ? userEvents(world, budget)
      : share < (isIdle ? 0.6 : 0.14)
        ? faultEvents(world, budget)
        : share < 0.24
          ? [tickEvent(world)]
          : progress;
  return events.length > 0 ? events : [...progress, tickEvent(world)];
}

/** Two or three places, in one realm or more, behind one adapter or more. */
function placesOf(chance: Random): readonly SimulatedPlace[] {
  const realms = chance.pick([
    ["1", "2"],
    ["1", "2"],
    ["1", "1"],
    ["1", "2", "1"],
    ["1", "2", "3"],
  ]);
  const hasOneAdapter = chance.chance(0.5);
  return realms.map((realm, index) => {
    const letter = ["a", "b", "c"][index] ?? "";
    return {
      endpoint: `https://${letter}.example.com/api`,
      className: hasOneAdapter ? "all" : `class-${letter}`,
      address: hasOneAdapter ? "adapter:1" : `adapter-${letter}:1`,
      realm: `realm-${realm}`,
    };
  });
}

class Run {
  readonly #world: World;
  readonly #seed: number;
  #violation: string | undefined;

  constructor(world: World, seed: number, hasConsoleDeleted: boolean) {
    this.#world = world;
    this.#seed = seed;
    world.onDelete = (instance, isDuplicate) => {
      if (isDuplicate) return;
      this.#violation ??= deletionViolation(world, instance, hasConsoleDeleted);
    };
  }

  /** One event, and what must hold after it. */
  async step(events: readonly WorldEvent[]): Promise<void> {
    const world = this.#world;
    const event = world.random.weighted(events);
    if (event === undefined) throw this.#failure("nothing can happen any more");
    world.trace.push(event.label);
    await event.run();
    await world.flush();
    const violation = this.#violation ?? violationOf(world);
    if (violation !== undefined) throw this.#failure(violation);
  }

  /** Without faults, everything comes to its goal by itself. */
  async converge(): Promise<void> {
    for (let count = 0; count < stepsMax; count++) {
      const events = progressEvents(this.#world);
      if (events.length > 0) await this.step(events);
      else if (this.#isThere()) return;
      else await this.#passTime();
    }
    throw this.#failure(`no convergence: ${missingFromGoal(this.#world)}`);
  }

  #isThere(): boolean {
    const { leader } = this.#world;
    const hasLookedLast = leader !== undefined && leader.lastError === undefined;
    return hasLookedLast && missingFromGoal(this.#world) === undefined;
  }

  /** A settled object costs no request, and a resync of it no write. */
  async stayQuiet(): Promise<void> {
    const world = this.#world;
    const { api, wire, vendor } = world;
    const writes = api.writeCount;
    const calls = wire.callCount;
    const mutations = vendor.mutationCount;
    for (let count = 0; count < 3; count++) {
      if (world.leader !== undefined) world.leader.isWanted = true;
      await this.#rest();
    }
    if (api.writeCount !== writes) throw this.#failure("a settled object is written");
    if (wire.callCount !== calls) throw this.#failure("a settled object is asked for");
    if (api.object === undefined) return;
    await this.#passTime();
    await this.#rest();
    if (wire.callCount !== calls + 1) throw this.#failure("a resync is not one call");
    if (api.writeCount !== writes) throw this.#failure("a resync writes");
    if (vendor.mutationCount !== mutations) throw this.#failure("a resync changes the instance");
  }

  async #rest(): Promise<void> {
    for (let count = 0; count < stepsMax; count++) {
      const events = progressEvents(this.#world);
      if (events.length === 0) return;
      await this.step(events);
    }
    throw this.#failure("no rest");
  }

  /** To the next instant at which anybody wants to do something. */
  async #passTime(): Promise<void> {
    const world = this.#world;
    const nowMs = world.clock.now();
    const times = [
      ...(world.leader === undefined ? [] : [world.leader.dueMs]),
      ...world.pausedLeaders.map(({ certainUntilMs }) => certainUntilMs),
    ].filter((ms) => ms > nowMs);
    const untilMs = Math.min(...times);
    if (untilMs === Infinity) throw this.#failure(`stuck: ${missingFromGoal(world)}`);
    world.trace.push(`${untilMs - nowMs} ms pass`);
    await world.advance(untilMs - nowMs);
    world.leader?.renew();
  }

  #failure(what: string): ViolationError {
    const { trace, api, vendor } = this.#world;
    const lines = trace.map((line, index) => `${index + 1}. ${line}`);
    const state = JSON.stringify({ object: api.current.object, live: vendor.live }, undefined, 1);
    return new ViolationError(`seed ${this.#seed}: ${what}\n${lines.join("\n")}\n${state}`);
  }
}
