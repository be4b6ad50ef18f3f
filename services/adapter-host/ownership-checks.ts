/** What stands between a found instance and a change to it. */
import { ProviderError } from "../contract/provider-error.ts";
import type { Adapter, FieldChange, FoundInstance, Stamp } from "./adapter.ts";
import type { Recorded } from "./request-checks.ts";
import type { Run } from "./run.ts";
import { ownershipOf } from "./stamp.ts";

/**
 * True when the instance may be treated as ours: by stamp; or, where it carries none, because its id
 * was recorded as ours or is one that only our key leads to.
 */
export function isVouchedFor(
  run: Run,
  found: FoundInstance,
  claim: { readonly stamp: Stamp; readonly recorded: Recorded },
): boolean {
  const ownership = ownershipOf(found, claim.stamp);
  if (ownership !== "unowned") return ownership !== "foreign";
  return found.id === claim.recorded.providerId || run.adapter.info.stampPlace === "ID";
}

/** Ensure's refusal of an instance of somebody else; nothing was written to it. */
export function ownedByAnother(run: Run, found: FoundInstance): ProviderError {
  const owner = found.stamp?.cluster || found.stamp?.short || "";
  const words = owner === "" ? "carries no readable owner" : `belongs to cluster ${owner}`;
  return new ProviderError("OWNED_BY_ANOTHER", `instance ${found.id} ${words}`, {
    outcome: "NOT_APPLIED",
    owner,
    resource: found.id,
    realm: run.realm,
  });
}

/** Throws IMMUTABLE_FIELD when one of the changes cannot be made at this vendor. */
export function requireChangeable(
  adapter: Adapter,
  found: FoundInstance,
  changes: readonly FieldChange[],
): void {
  const { immutableFields } = adapter.info;
  const stuck = changes.filter(
    ({ field }) => adapter.update === undefined || immutableFields.includes(field),
  );
  if (stuck.length === 0) return;
  const names = stuck.map(({ field }) => field).join(", ");
  throw new ProviderError("IMMUTABLE_FIELD", `instance ${found.id}: cannot change ${names}`, {
    outcome: "NOT_APPLIED",
    fields: stuck.map(({ field }) => ({ path: field, description: "cannot be changed" })),
    preconditions: stuck.map(({ field, want, have }) => ({
      type: "IMMUTABLE",
      subject: field,
      description: `is ${have ?? "not set"}, wanted ${want ?? "not set"}`,
    })),
  });
}
