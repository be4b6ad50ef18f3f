/**
 * Which objects wait for the same vendor and so share workers: those of one adapter, within it those
 * of one account, within that those of one host. "adapter|account|host", see queue/shares.ts.
 */
import { connectionId } from "./providers/providers.ts";
import { groupPath } from "./queue/shares.ts";
import { hostOf } from "./resource/class-choice.ts";
import { arrayAt, objectAt, stringAt } from "./resource/json-door.ts";
import type { Place } from "./resource/placement.ts";
import type { ProviderClass } from "./resource/provider-class.ts";

/** What of a place decides its group. */
type Where = Pick<Place, "class" | "account" | "endpoint">;

export class WorkGroups {
  readonly #classes: () => readonly ProviderClass[];

  constructor(classes: () => readonly ProviderClass[]) {
    this.#classes = classes;
  }

  /** Of an object as it came from the API server: where it shall be, and where it still is. */
  of(raw: unknown): readonly string[] {
    const spec = objectAt(raw, "spec");
    const status = objectAt(raw, "status");
    const places = [status, ...arrayAt(status, "placements")].map((where, at) => ({
      class: stringAt(where, at === 0 ? "className" : "class") ?? stringAt(spec, "className") ?? "",
      account: stringAt(where, "account") ?? "",
      endpoint: stringAt(at === 0 ? spec : where, "endpoint") ?? "",
    }));
    return [
      ...new Set(
        places.map((place) => groupPath(...this.#accountOf(place), hostOf(place.endpoint))),
      ),
    ];
  }

  /** Of all objects of the place's account, whatever their host. */
  account(place: Where): string {
    return groupPath(...this.#accountOf(place));
  }

  /** The group of each class that bounds its calls, with the bound; classes of one group: the least. */
  limits(): ReadonlyMap<string, number> {
    const limits = new Map<string, number>();
    for (const { name, account, maxConcurrentCalls } of this.#classes()) {
      if (maxConcurrentCalls === undefined) continue;
      const group = this.account({ class: name, account, endpoint: "" });
      limits.set(group, Math.min(limits.get(group) ?? Infinity, maxConcurrentCalls));
    }
    return limits;
  }

  /** A class that is not there (yet) groups its own. */
  #accountOf({ class: name, account }: Where): readonly [string, string] {
    const found = this.#classes().find((candidate) => candidate.name === name);
    return [found === undefined ? `class ${name}` : connectionId(found.adapter), account];
  }
}
