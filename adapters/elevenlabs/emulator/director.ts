/** Carries out scripts: changes the world at once, and keeps faults until requests meet them. */
import { assertNever } from "../../../services/process/assert-never.ts";
import { FaultList } from "../../../services/vendor-emulator/fault-list.ts";
import type { Fault, Step } from "./script.ts";
import type { World } from "./world.ts";

export class Director {
  readonly #world: World;
  readonly #faults = new FaultList<Fault>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Faults that still wait. */
  get pendingFaults(): readonly Fault[] {
    return this.#faults.faults;
  }

  /** Ids of the agents that were created. Throws on the first step that cannot be done. */
  run(steps: readonly Step[]): readonly string[] {
    return steps.flatMap((step) => this.#do(step));
  }

  /** The fault that befalls this request. @param userId empty: nobody's */
  meet(method: string, path: string, userId: string): Fault | undefined {
    return this.#faults.meet(
      (fault) =>
        (fault.method === undefined || fault.method === method) &&
        (fault.path === undefined || new RegExp(fault.path).test(path)) &&
        (fault.userId === undefined || fault.userId === userId),
    );
  }

  #do(step: Step): readonly string[] {
    const world = this.#world;
    switch (step.do) {
      case "fault":
        this.#faults.add(step);
        return [];
      case "clear-faults":
        this.#faults.clear();
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
