/** What a fault proxy has seen, so that tests can count what a client does in bad weather. */
import type { FaultKind } from "./fault-rule.ts";
import type { RuledRequest } from "./rule-book.ts";

export interface SeenRequest extends RuledRequest {
  /** Epoch ms. */
  readonly atMs: number;
  /** What the client got; undefined: no answer, or none yet. */
  readonly status: number | undefined;
  /** When the stream ended, epoch ms; undefined: it is open. */
  readonly endedAtMs: number | undefined;
  readonly faults: readonly FaultKind[];
}

/** Filled in while a request goes on. */
export interface OpenRequest extends SeenRequest {
  status: number | undefined;
  endedAtMs: number | undefined;
}

const requestsMax = 100_000;
const minuteMs = 60_000;

export class SeenRequests {
  readonly #all: OpenRequest[] = [];

  add(request: RuledRequest, faults: readonly FaultKind[]): OpenRequest {
    if (this.#all.length >= requestsMax) throw new Error(`more than ${requestsMax} requests`);
    const opened = {
      ...request,
      atMs: Date.now(),
      status: undefined,
      endedAtMs: undefined,
      faults,
    };
    this.#all.push(opened);
    return opened;
  }

  /** Oldest first. @param sinceMs epoch ms; all where absent */
  list(sinceMs = 0): readonly SeenRequest[] {
    return this.#all.filter(({ atMs }) => atMs >= sinceMs);
  }

  watchesOpened(sinceMs = 0): number {
    return this.list(sinceMs).filter(({ isWatch }) => isWatch).length;
  }

  /** Watches that were answered 200 and have not ended. */
  get watchesOpen(): number {
    return this.#all.filter(
      ({ isWatch, status, endedAtMs }) => isWatch && status === 200 && endedAtMs === undefined,
    ).length;
  }

  /** Most requests within any 60 s from `sinceMs` on, of those that `isMeant` accepts. */
  busiestMinute(sinceMs = 0, isMeant: (request: SeenRequest) => boolean = () => true): number {
    const times = this.list(sinceMs)
      .filter(isMeant)
      .map(({ atMs }) => atMs);
    let first = 0;
    let busiest = 0;
    for (const [last, atMs] of times.entries()) {
      while ((times[first] ?? atMs) <= atMs - minuteMs) first += 1;
      busiest = Math.max(busiest, last - first + 1);
    }
    return busiest;
  }
}
