/** How near the objects of each class are to their quotas, for those who watch metrics. Pure. */
import type { RawObject } from "./kubernetes/raw-object.ts";
import type { ObservedUsage } from "./reconcile/observed-instance.ts";
import { usedShares } from "./reconcile/usage.ts";
import type { Quota } from "./reconcile/usage.ts";
import { parseDigitalHumanProvider } from "./resource/digital-human-provider.ts";
import { isJsonObject, objectAt } from "./resource/json-door.ts";

export interface ClassQuotaUse {
  readonly className: string;
  readonly quota: Quota;
  /** 1 is all of it. */
  readonly share: number;
}

/** Of each class and quota the highest use; one series a class and quota, however many objects. */
export function highestUse(objects: Iterable<RawObject>): readonly ClassQuotaUse[] {
  const highest = new Map<string, ClassQuotaUse>();
  for (const raw of objects) {
    const usage = usageOf(raw);
    if (usage === undefined) continue;
    const { status, spec } = parseDigitalHumanProvider(raw);
    const className = status.className ?? "";
    for (const { quota, share } of usedShares(usage, spec.quota)) {
      const id = `${className}/${quota}`;
      if (share > (highest.get(id)?.share ?? -1)) highest.set(id, { className, quota, share });
    }
  }
  return [...highest.values()];
}

/** As this controller wrote it. */
function usageOf(raw: RawObject): ObservedUsage | undefined {
  const { usage } = objectAt(raw, "status");
  return isJsonObject(usage) ? usage : undefined;
}
