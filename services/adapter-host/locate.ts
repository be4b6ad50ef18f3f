/**
 * Finds the instance of a key, or proves that there is none. By recorded id first, by key second;
 * where only lists tell, what a list has shown is confirmed by id, and absence needs two complete
 * equal scans unless one page of a consistent list said it all.
 */
import { ProviderError } from "../contract/provider-error.ts";
import type { Adapter, FoundInstance, Stamp, VendorCall } from "./adapter.ts";
import type { ListProofs } from "./list-proofs.ts";
import { hasKeyOf, isOwnedByCluster } from "./stamp.ts";

/** What is asked for. */
export interface LocateQuestion {
  readonly stamp: Stamp;
  /** The id that the caller recorded; empty: none. */
  readonly recordedId: string;
  /** The id that a recent create of ours brought; empty: none. */
  readonly rememberedId: string;
}

export interface LocateLimits {
  readonly pagesMax: number;
  readonly instancesMax: number;
  readonly scansMax: number;
  /** RetryInfo when lists do not settle. */
  readonly retryMs: number;
}

export const defaultLocateLimits: LocateLimits = {
  pagesMax: 1000,
  instancesMax: 100_000,
  scansMax: 4,
  retryMs: 1000,
};

/** The instance at a known id, when it carries our key; at the recorded one also without a stamp. */
export async function readKnown(
  adapter: Adapter,
  call: VendorCall,
  question: LocateQuestion,
): Promise<FoundInstance | undefined> {
  const { stamp, recordedId, rememberedId } = question;
  for (const id of new Set([recordedId, rememberedId])) {
    const found = id === "" ? undefined : await adapter.read(call, id);
    // A stamp with another key: the vendor gave the id to something else.
    const isOurKey = found?.stamp !== undefined && hasKeyOf(found.stamp, stamp);
    const isWiped = found !== undefined && found.stamp === undefined && id === recordedId;
    if (isOurKey || isWiped) return found;
  }
  return undefined;
}

/** Where whole lists come from: shared with the other calls in the realm. */
export interface ListAccess {
  readonly realm: string;
  readonly limits: LocateLimits;
  readonly proofs: ListProofs<readonly FoundInstance[]>;
}

/** All instances that carry the key, oldest first; empty: proven absent. */
export async function findByKey(
  adapter: Adapter,
  call: VendorCall,
  stamp: Stamp,
  lists: ListAccess,
): Promise<readonly FoundInstance[]> {
  if (adapter.find !== undefined) return [...(await adapter.find(call, stamp))].sort(byAge);
  const everything = await lists.proofs.prove(lists.realm, () =>
    readSettledList(adapter, call, lists.limits),
  );
  const confirmed: FoundInstance[] = [];
  for (const listed of withKey(everything, stamp)) {
    const read = await adapter.read(call, listed.id);
    if (read !== undefined) confirmed.push(read);
  }
  return confirmed.sort(byAge);
}

/** The whole list, as two complete scans agree on it; one page of a consistent list says it all. */
async function readSettledList(
  adapter: Adapter,
  call: VendorCall,
  limits: LocateLimits,
): Promise<readonly FoundInstance[]> {
  let before: Scan | undefined;
  for (let scans = 0; scans < limits.scansMax; scans += 1) {
    const scan = await scanAll(adapter, call, limits);
    const isOnePage = scan.pages === 1 && adapter.info.areListsConsistent;
    if (isOnePage || (before !== undefined && isEqual(before, scan))) return scan.instances;
    before = scan;
  }
  throw new ProviderError("IN_DOUBT", "the vendor's list keeps changing; absence is not proven", {
    outcome: "NOT_APPLIED",
    retryAfterMs: limits.retryMs,
  });
}

/** By id, then by key. Several: the oldest that is not on its way out; see `oldestOf`. */
export async function locate(
  adapter: Adapter,
  call: VendorCall,
  question: LocateQuestion,
  lists: ListAccess,
): Promise<FoundInstance | undefined> {
  const known = await readKnown(adapter, call, question);
  return known ?? oldestOf(await findByKey(adapter, call, question.stamp, lists));
}

/** Of several with one key the oldest is meant; one that is being deleted only if there is no other. */
export function oldestOf(sorted: readonly FoundInstance[]): FoundInstance | undefined {
  return sorted.find(({ state }) => state !== "DELETING") ?? sorted[0];
}

/** Those of them that a cluster may remove. */
export function ownedBy(
  instances: readonly FoundInstance[],
  cluster: string,
): readonly FoundInstance[] {
  return instances.filter(({ stamp }) => stamp !== undefined && isOwnedByCluster(stamp, cluster));
}

/** Orders by (created_at, id). */
export function byAge(left: FoundInstance, right: FoundInstance): number {
  if (left.createdAtMs !== right.createdAtMs) return left.createdAtMs - right.createdAtMs;
  if (left.id === right.id) return 0;
  return left.id < right.id ? -1 : 1;
}

interface Scan {
  readonly instances: readonly FoundInstance[];
  readonly pages: number;
}

async function scanAll(adapter: Adapter, call: VendorCall, limits: LocateLimits): Promise<Scan> {
  const instances: FoundInstance[] = [];
  let token: string | undefined;
  for (let pages = 1; pages <= limits.pagesMax; pages += 1) {
    const page = await adapter.list(call, token);
    instances.push(...page.instances);
    if (instances.length > limits.instancesMax) break;
    if (page.nextToken === undefined) return { instances, pages };
    if (page.nextToken === token) {
      throw new ProviderError("VENDOR_UNREADABLE", "the vendor's list repeats a page");
    }
    token = page.nextToken;
  }
  const { pagesMax, instancesMax } = limits;
  const message = `the vendor's list is longer than ${pagesMax} pages or ${instancesMax} instances`;
  throw new ProviderError("VENDOR_UNREADABLE", message);
}

/** A list that shifts while it is read may show one instance twice. */
function withKey(instances: readonly FoundInstance[], stamp: Stamp): readonly FoundInstance[] {
  const byId = new Map(instances.map((instance) => [instance.id, instance]));
  return [...byId.values()].filter((found) => found.stamp && hasKeyOf(found.stamp, stamp));
}

function isEqual(left: Scan, right: Scan): boolean {
  const ids = new Set(left.instances.map(({ id }) => id));
  const others = new Set(right.instances.map(({ id }) => id));
  return ids.size === others.size && [...ids].every((id) => others.has(id));
}
