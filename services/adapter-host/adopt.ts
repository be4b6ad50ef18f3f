/** Taking over an instance that somebody else made: a compare and set on its stamp. */
import { ProviderError } from "../contract/provider-error.ts";
import type { FoundInstance, Stamp } from "./adapter.ts";
import { ownedByAnother } from "./ownership-checks.ts";
import type { EnsureQuestion } from "./request-checks.ts";
import type { Run } from "./run.ts";
import { isOwnedByCluster, ownershipOf } from "./stamp.ts";
import type { Owner } from "./stamp.ts";

/**
 * The instance to adopt. Without take_over_from it must carry no stamp; with it, exactly that owner's,
 * so that a take-over left in a file works once and two clusters do not take it to and fro.
 */
export async function adoptable(
  run: Run,
  adopt: NonNullable<EnsureQuestion["adopt"]>,
  stamp: Stamp,
): Promise<FoundInstance> {
  const { adapter, site } = run;
  if (!adapter.info.capabilities.includes("ADOPT") || adapter.update === undefined) {
    throw new ProviderError("UNSUPPORTED", "instances of this vendor cannot be taken over", {
      code: "FAILED_PRECONDITION",
      resource: "ADOPT",
    });
  }
  const found = await site.read((call) => adapter.read(call, adopt.providerId));
  if (found === undefined) {
    throw new ProviderError("INVALID_FIELD", `instance ${adopt.providerId} does not exist`, {
      fields: [{ path: "adopt.providerID", description: `does not exist in ${run.realm}` }],
    });
  }
  const ownership = ownershipOf(found, stamp);
  const isOurs = ownership === "ours" || ownership === "predecessor";
  const isExpected =
    adopt.takeOverFrom === undefined
      ? ownership === "unowned"
      : found.stamp !== undefined && isStampedBy(found.stamp, adopt.takeOverFrom);
  if (isOurs || isExpected) return found;
  throw ownedByAnother(run, found);
}

/** A stamp in short form cannot tell objects apart; then the cluster decides. */
function isStampedBy(stamp: Stamp, owner: Owner): boolean {
  return isOwnedByCluster(stamp, owner.cluster) && (stamp.uid === "" || stamp.uid === owner.uid);
}
