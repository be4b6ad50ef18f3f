/** One emulated vendor at work: its model, the faults that wait, the switches, and who asked what. */
import { FaultList } from "./fault-list.ts";
import { networkEffects, operations } from "./fault-words.ts";
import type { EmulatedRequest, Fault, Operation, Switches, Vocabulary } from "./fault-words.ts";
import { incidentOf, undisturbed } from "./incident.ts";
import type { Incident } from "./incident.ts";
import { RequestLog } from "./request-log.ts";
import type { ApiRequest, RequestEnd, VendorModel } from "./vendor-model.ts";

const switchesAtFirst: Required<Switches> = {
  listLagMs: 0,
  deletionMs: 0,
  provisionMs: 0,
  awaitsHuman: false,
  pageSize: 1_000,
  credential: "good",
  billing: "current",
};

export class VendorDesk {
  readonly model: VendorModel;
  /** In the common words. */
  readonly faults = new FaultList<Fault>();
  readonly requests = new RequestLog<EmulatedRequest>();
  #switches = switchesAtFirst;

  constructor(model: VendorModel) {
    this.model = model;
    model.turn(this.#switches);
  }

  get vocabulary(): Vocabulary {
    const { effects, switches, edits } = this.model.vocabulary;
    return { operations, effects: [...networkEffects, ...effects], switches, edits };
  }

  turn(switches: Switches): void {
    this.#switches = { ...this.#switches, ...switches };
    this.model.turn(this.#switches);
  }

  reset(): void {
    this.faults.clear();
    this.turn(switchesAtFirst);
  }

  /** What befalls a request now, the common faults first. */
  meet(request: ApiRequest): Incident {
    const asked = this.#operationOf(request);
    const fault = this.faults.meet(({ operation }) => operation === "any" || operation === asked);
    if (fault !== undefined) return incidentOf(fault, request, this.model);
    return this.model.incidentOf?.(request) ?? undisturbed;
  }

  record(request: ApiRequest, end: RequestEnd): void {
    const { change = "none", instanceId = "" } = end.truth ?? {};
    this.requests.add({
      operation: this.#operationOf(request),
      atMs: Date.now(),
      change,
      id: change === "none" ? "" : instanceId,
    });
    this.model.ended?.(request, end);
  }

  #operationOf(request: ApiRequest): Operation {
    return this.model.operationOf(request) ?? "any";
  }
}
