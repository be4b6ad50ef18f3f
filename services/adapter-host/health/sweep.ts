/**
 * One sweep: all instances of one place that carry our stamp, as the vendor shows them now. A list is
 * read whole; what it no longer shows is confirmed by id, since pages shift and lists lag; and what it
 * does not carry is read by id in rotation.
 */
import type { Adapter, FoundInstance, VendorCall } from "../adapter.ts";

/** What is known of one instance. */
export interface KnownInstance {
  readonly found: FoundInstance;
  /** Counts the reads by id: which one read this instance last, or was the last when it was first listed. */
  readonly turn: number;
}

export type KnownInstances = ReadonlyMap<string, KnownInstance>;

export interface SweepLimits {
  /** More pages than this are an error: nothing is known of what follows. */
  readonly pagesMax: number;
  /** So many vanished instances are looked for in one sweep; the others stay as they were. */
  readonly confirmationsMax: number;
}

/** Where lists do not carry everything. */
export interface RotationLimits {
  /** So many are read by id. */
  readonly readsMax: number;
  /** True once it has taken long enough: the rest waits for the next time. */
  readonly isLate: () => boolean;
}

export interface SweepFindings {
  readonly instances: KnownInstances;
  /** What the vendor attests to be gone, or to be no longer ours. */
  readonly gone: readonly FoundInstance[];
}

/** Reads the list. Throws ProviderError when it cannot be read whole. */
export async function sweep(
  adapter: Adapter,
  call: VendorCall,
  before: KnownInstances,
  limits: SweepLimits,
): Promise<SweepFindings> {
  const listed = await listStamped(adapter, call, limits.pagesMax);
  const last = lastTurn(before);
  const instances = new Map<string, KnownInstance>();
  for (const found of listed) {
    const known = before.get(found.id);
    const isNew = known === undefined;
    instances.set(found.id, {
      found: isNew ? found : withUnlistedFields(found, known.found),
      turn: isNew ? last : known.turn,
    });
  }
  const gone: FoundInstance[] = [];
  let readsLeft = limits.confirmationsMax;
  for (const [id, known] of before) {
    if (instances.has(id)) continue;
    if (readsLeft === 0) {
      instances.set(id, known);
      continue;
    }
    readsLeft -= 1;
    const found = await adapter.read(call, id);
    if (found?.stamp === undefined) gone.push(known.found);
    else instances.set(id, { found, turn: lastTurn(instances) + 1 });
  }
  return { instances, gone };
}

/**
 * Reads some by id: those that wait longest, one of them at least. A new one waits from when it was
 * listed, and not before all others: where instances are made all the time, the old ones would have
 * no turn. Throws ProviderError when one cannot be read.
 */
export async function readUnlisted(
  adapter: Adapter,
  call: VendorCall,
  listed: KnownInstances,
  { readsMax, isLate }: RotationLimits,
): Promise<SweepFindings> {
  const instances = new Map(listed);
  const gone: FoundInstance[] = [];
  let turn = lastTurn(listed);
  const due = [...listed].sort(([, a], [, b]) => a.turn - b.turn).slice(0, readsMax);
  for (const [id, known] of due) {
    const found = await adapter.read(call, id);
    if (found?.stamp === undefined) {
      instances.delete(id);
      gone.push(known.found);
    } else {
      turn += 1;
      instances.set(id, { found, turn });
    }
    if (isLate()) break;
  }
  return { instances, gone };
}

function lastTurn(instances: KnownInstances): number {
  let last = 0;
  for (const { turn } of instances.values()) last = Math.max(last, turn);
  return last;
}

async function listStamped(
  adapter: Adapter,
  call: VendorCall,
  pagesMax: number,
): Promise<readonly FoundInstance[]> {
  const found: FoundInstance[] = [];
  let token: string | undefined;
  for (let page = 0; page < pagesMax; page += 1) {
    const { instances, nextToken } = await adapter.list(call, token);
    for (const instance of instances) if (instance.stamp !== undefined) found.push(instance);
    if (nextToken === undefined) return found;
    token = nextToken;
  }
  throw new Error(`the list has more than ${pagesMax} pages`);
}

/** What the list says, and of the rest what was last read: absent means "not shown here". */
function withUnlistedFields(listed: FoundInstance, known: FoundInstance): FoundInstance {
  const quota = listed.quota ?? known.quota;
  const displayName = listed.displayName ?? known.displayName;
  return {
    ...listed,
    ...(displayName === undefined ? {} : { displayName }),
    parameters: { ...known.parameters, ...listed.parameters },
    ...(quota === undefined ? {} : { quota }),
  };
}
