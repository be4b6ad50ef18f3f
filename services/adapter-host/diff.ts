/** What differs between an instance as wanted and as found. Pure. */
import type { FieldChange, FoundInstance, Quota, WantedInstance } from "./adapter.ts";

/** What bears on the comparison beside the two. */
export interface DiffRules {
  /** False: the vendor holds no quota of ours, so none is compared. */
  readonly isQuotaSettable: boolean;
  /** Fields that cannot be changed: unless the vendor shows them, they are taken as right. */
  readonly immutableFields: readonly string[];
}

/**
 * Fields that must change, in a fixed order. What is not wanted is not compared. A field that the
 * vendor does not show is compared by the spec hash kept with the stamp: it counts as different only
 * when both hashes are known and differ.
 */
export function differences(
  wanted: WantedInstance,
  found: FoundInstance,
  rules: DiffRules,
): readonly FieldChange[] {
  const kept = found.stamp?.specHash ?? "";
  const isHiddenChanged =
    kept !== "" && wanted.stamp.specHash !== "" && kept !== wanted.stamp.specHash;
  const changes: FieldChange[] = [];
  const compare = (field: string, want: string | undefined, have: string | undefined): void => {
    if (want === undefined || want === have) return;
    const isHidden = have === undefined;
    if (isHidden && (!isHiddenChanged || rules.immutableFields.includes(field))) return;
    changes.push({ field, want, have });
  };
  compare("displayName", wanted.displayName, found.displayName);
  for (const name of Object.keys(wanted.parameters).sort()) {
    compare(`parameters.${name}`, wanted.parameters[name], found.parameters[name]);
  }
  if (rules.isQuotaSettable) {
    for (const name of quotaFields) {
      const field = `quota.${name}`;
      const want = text(wanted.quota[name]);
      const have = text(found.quota?.[name]);
      // Where the vendor shows its quota, a limit that is absent from it is a known "no limit".
      if (found.quota === undefined) compare(field, want, have);
      else if (want !== undefined && want !== have) changes.push({ field, want, have });
    }
  }
  return changes;
}

const quotaFields = [
  "maxConcurrency",
  "dailyCalls",
  "monthlyCredits",
] as const satisfies readonly (keyof Quota)[];

function text(value: number | undefined): string | undefined {
  return value === undefined ? undefined : String(value);
}
