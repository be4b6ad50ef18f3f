/** One emulated vendor at work: its model, the faults that wait, the switches, and who asked what. */
import { FaultList } from "./fault-list.ts";
import type { FaultDesk } from "./fault-server.ts";
import { networkEffects, operations } from "./fault-words.ts";
import type {
  Edit,
  EmulatedInstance,
  EmulatedRequest,
  Fault,
  Operation,
  Switches,
  Vocabulary,
} from "./fault-words.ts";
import type { ApiAnswer, VendorModel } from "./vendor-model.ts";

const switchesAtFirst: Required<Switches> = {
  listLagMs: 0,
  deletionMs: 0,
  provisionMs: 0,
  awaitsHuman: false,
  pageSize: 1_000,
  credential: "good",
  billing: "current",
};
const requestsMax = 100_000;

export class VendorDesk implements FaultDesk {
  readonly model: VendorModel;
  readonly faults = new FaultList();
  #switches = switchesAtFirst;
  #requests: EmulatedRequest[] = [];
  /** How many of the oldest are no longer recorded. */
  #dropped = 0;

  constructor(model: VendorModel) {
    this.model = model;
    model.turn(this.#switches);
  }

  get vocabulary(): Vocabulary {
    const { effects, switches, edits } = this.model.vocabulary;
    return { operations, effects: [...networkEffects, ...effects], switches, edits };
  }

  addFault(fault: Fault): void {
    this.faults.add(fault);
  }

  turn(switches: Switches): void {
    this.#switches = { ...this.#switches, ...switches };
    this.model.turn(this.#switches);
  }

  reset(): void {
    this.faults.clear();
    this.#switches = switchesAtFirst;
    this.model.turn(this.#switches);
  }

  edit(edit: Edit): readonly string[] {
    return this.model.edit(edit);
  }

  instances(): readonly EmulatedInstance[] {
    return this.model.instances();
  }

  record(operation: Operation, answer: ApiAnswer | undefined): void {
    this.#requests.push({
      operation,
      atMs: Date.now(),
      change: answer?.change ?? "none",
      id: answer?.instanceId ?? "",
    });
    if (this.#requests.length <= requestsMax) return;
    this.#requests = this.#requests.slice(requestsMax / 2);
    this.#dropped += requestsMax / 2;
  }

  requestsSince(since: number): {
    readonly requests: readonly EmulatedRequest[];
    readonly next: number;
  } {
    const next = this.#dropped + this.#requests.length;
    return { requests: this.#requests.slice(Math.max(0, since - this.#dropped)), next };
  }
}
