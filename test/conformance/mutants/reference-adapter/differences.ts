/** What differs between the wanted spec and the record. What is not wanted is not compared. */
import type { InstanceSpec } from "../../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Mutations } from "./mutations.ts";
import { normalised } from "./parameters.ts";
import type { VendorRecord } from "./vendor-record.ts";

export interface Difference {
  readonly field: string;
  readonly want: string;
  readonly have?: string;
}

export const quotaFields = ["maxConcurrency", "dailyCalls", "monthlyCredits"] as const;

export function differences(
  { displayName, parameters, quota }: InstanceSpec,
  found: VendorRecord,
  mutations: Mutations,
): readonly Difference[] {
  const changes: Difference[] = [];
  const compare = (field: string, want: string | undefined, have: string | undefined): void => {
    if (want === undefined || want === have) return;
    changes.push({ field, want, ...(have === undefined ? {} : { have }) });
  };
  const isEmptyAbsent = mutations.has("empty-name-is-absent") && displayName === "";
  const absent = mutations.has("absent-name-is-empty") ? "" : undefined;
  compare("displayName", isEmptyAbsent ? undefined : (displayName ?? absent), found.name);
  const [wanted, present] = [
    normalised(parameters, mutations),
    normalised(found.parameters, mutations),
  ];
  for (const name of Object.keys(wanted).sort()) {
    compare(`parameters.${name}`, wanted[name], present[name]);
  }
  for (const name of quotaFields) {
    compare(`quota.${name}`, quota?.[name]?.toString(), found.limits[name]?.toString());
  }
  return mutations.has("sees-no-drift") ? [] : changes;
}
