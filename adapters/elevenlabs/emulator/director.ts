/** Carries out scripts: changes the world at once, and keeps faults until requests meet them. */
import { assertNever } from "../../../services/process/assert-never.ts";
import type { Fault, Step } from "./script.ts";
import type { World } from "./world.ts";

interface PendingFault {
  readonly fault: Fault;
  skipsLeft: number;
  timesLeft: number;
}

const faultsMax = 1_000;

export class Director {
  readonly #world: World;
  #pending: PendingFault[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  /** Faults that still wait. */
  get pendingFaults(): readonly Fault[] {
    return this.#pending.map(({ fault }) => fault);
  }

  /** Ids of the agents that were created. Throws on the first step that cannot be done. */
  run(steps: readonly Step[]): readonly string[] {
    return steps.flatMap((step) => this.#do(step));
  }

  /** The fault that befalls this request; the oldest goes first. @param userId empty: nobody's */
  meet(method: string, path: string, userId: string): Fault | undefined {
    for (const pending of this.#pending) {
      const { fault } = pending;
      if (fault.method !== undefined && fault.method !== method) continue;
      if (fault.path !== undefined && !new RegExp(fault.path).test(path)) continue;
      if (fault.userId !== undefined && fault.userId !== userId) continue;
      if (pending.skipsLeft > 0) {
        pending.skipsLeft -= 1;
        continue;
      }
      pending.timesLeft -= 1;
      this.#pending = this.#pending.filter(({ timesLeft }) => timesLeft > 0);
      return fault;
    }
    return undefined;
  }

  #do(step: Step): readonly string[] {
    const world = this.#world;
    switch (step.do) {
      case "fault":
        if (this.#pending.length >= faultsMax) throw new Error(`more than ${faultsMax} faults`);
        this.#pending.push({ fault: step, skipsLeft: step.skip, timesLeft: step.times });
        return [];
      case "clear-faults":
        this.#pending = [];
        return [];
      case "set":
        world.set(step.settings);
        return [];
      case "subscription":
        world.changeSubscription(step.workspace, step.fields);
        return [];
      case "create-agent":
        return Array.from(
          { length: step.count },
          () => world.create(step.workspace, step.fields).id,
        );
      case "edit-agent":
        if (world.update(step.agentId, step.fields) === undefined) throw noAgent(step.agentId);
        return [];
      case "delete-agent":
        if (!world.delete(step.agentId)) throw noAgent(step.agentId);
        return [];
      case "key":
        world.addKey(step);
        return [];
      case "revoke-key":
        world.keys.delete(step.apiKey);
        return [];
      case "advance":
        world.advance(step.ms);
        return [];
      default:
        return assertNever(step);
    }
  }
}

function noAgent(id: string): Error {
  return new Error(`there is no agent ${id}`);
}
