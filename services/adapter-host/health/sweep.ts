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
  /** So many are read by id in one sweep where lists do not carry everything. */
  readonly rotationReads: number;
  /** True once the sweep has taken long enough: one read by id more, and the rest waits for the next. */
  readonly isLate: () => boolean;
}

export interface SweepFindings {
  readonly instances: KnownInstances;
  /** What the vendor attests to be gone, or to be no longer ours. */
  readonly gone: readonly FoundInstance[];
}

/** Throws ProviderError when the list cannot be read whole. */
export async function sweep(
  adapter: Adapter,
  call: VendorCall,
  before: KnownInstances,
  options: SweepLimits,
): Promise<SweepFindings> {
  const listed = await listStamped(adapter, call, options.pagesMax);
  const turns = { last: Math.max(0, ...[...before.values()].map(({ turn }) => turn)) };
  const instances = new Map<string, KnownInstance>();
  for (const found of listed) {
    const known = before.get(found.id);
    const isNew = known === undefined;
    instances.set(found.id, {
      found: isNew ? found : withUnlistedFields(found, known.found),
      turn: isNew ? turns.last : known.turn,
    });
  }
  const gone = await confirmVanished(adapter, call, { before, instances, turns, options });
  if (adapter.info.listsLackFields === true) {
    await readInRotation(adapter, call, { instances, gone, turns, options });
  }
  return { instances, gone };
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

interface SweepState {
  readonly instances: Map<string, KnownInstance>;
  /** The last turn that was given. */
  readonly turns: { last: number };
  readonly options: SweepLimits;
}

async function confirmVanished(
  adapter: Adapter,
  call: VendorCall,
  { before, instances, turns, options }: SweepState & { readonly before: KnownInstances },
): Promise<FoundInstance[]> {
  const gone: FoundInstance[] = [];
  let readsLeft = options.confirmationsMax;
  for (const [id, known] of before) {
    if (instances.has(id)) continue;
    if (readsLeft === 0) {
      instances.set(id, known);
      continue;
    }
    readsLeft -= 1;
    const found = await adapter.read(call, id);
    if (found?.stamp === undefined) gone.push(known.found);
    else instances.set(id, { found, turn: (turns.last += 1) });
  }
  return gone;
}

/**
 * Those that wait longest come first. A new one waits from when it was listed, and not before all
 * others: where instances are made all the time, the old ones would have no turn.
 */
async function readInRotation(
  adapter: Adapter,
  call: VendorCall,
  { instances, gone, turns, options }: SweepState & { readonly gone: FoundInstance[] },
): Promise<void> {
  const due = [...instances.entries()]
    .sort(([, a], [, b]) => a.turn - b.turn)
    .slice(0, options.rotationReads);
  for (const [id, known] of due) {
    const found = await adapter.read(call, id);
    if (found?.stamp === undefined) {
      instances.delete(id);
      gone.push(known.found);
    } else {
      instances.set(id, { found, turn: (turns.last += 1) });
    }
    if (options.isLate()) return;
  }
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
