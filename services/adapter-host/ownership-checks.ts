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

/** Throws OWNED_BY_ANOTHER when somebody else's stamp has replaced the one that was just written. */
export function requireStillOurs(
  run: Run,
  before: FoundInstance,
  after: FoundInstance,
  stamp: Stamp,
): void {
  if (ownershipOf(after, stamp) !== "foreign") return;
  // A vendor that is slow to show changes shows the owner that was displaced.
  if (before.stamp?.short === after.stamp?.short && before.stamp?.uid === after.stamp?.uid) return;
  run.nothingRemains();
  throw ownedByAnother(run, after);
}

/** Ensure's refusal of an instance of somebody else; nothing was written to it. */
export function ownedByAnother(run: Run, found: FoundInstance): ProviderError {
  return new ProviderError("OWNED_BY_ANOTHER", wordsOfOwner(found), {
    outcome: "NOT_APPLIED",
    owner: clusterOf(found),
    resource: found.id,
    realm: run.realm,
  });
}

/** Whose it is, as far as its stamp says: "instance i-1 belongs to local/default/a of cluster c". */
export function wordsOfOwner(found: FoundInstance): string {
  const owner = clusterOf(found);
  if (owner === "") return `instance ${found.id} carries no readable owner`;
  const object = found.stamp?.key ?? "";
  return `instance ${found.id} belongs to ${object === "" ? "" : `${object} of `}cluster ${owner}`;
}

/** Its cluster, or the short stamp where the vendor had no room for more; empty: neither. */
export function clusterOf({ stamp }: FoundInstance): string {
  return stamp?.cluster || stamp?.short || "";
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
