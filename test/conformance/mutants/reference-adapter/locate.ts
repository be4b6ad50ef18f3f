/** Finds an instance: by recorded or remembered id, then by key, where two equal scans prove absence. */
import { Failure } from "./failure.ts";
import { hasKeyOf } from "./stamp.ts";
import type { Stamp } from "./stamp.ts";
import type { VendorApi } from "./vendor-api.ts";
import { byAge } from "./vendor-record.ts";
import type { VendorRecord } from "./vendor-record.ts";
import type { World } from "./world.ts";

export interface Question {
  readonly api: VendorApi;
  readonly world: World;
  readonly stamp: Stamp;
  /** Empty: none. */
  readonly recordedId: string;
  /** "REALM KEY": what flights are known by. */
  readonly flightKey: string;
}

export interface Located {
  /** Carries our key; another cluster may own it. */
  readonly found: VendorRecord | undefined;
  /** What is at the recorded id and carries no stamp at all. */
  readonly unstamped: VendorRecord | undefined;
}

const scansMax = 12;

export async function locate(question: Question): Promise<Located> {
  const { api, world, stamp, recordedId, flightKey } = question;
  const { mutations } = world;
  let unstamped: VendorRecord | undefined;
  for (const id of new Set([recordedId, world.flights.remembered(flightKey)])) {
    if (id === "") continue;
    const record = await api.read(id);
    if (
      record !== undefined &&
      (hasKeyOf(record.stamp, stamp) || mutations.has("trusts-recorded-ids"))
    ) {
      return { found: record, unstamped: undefined };
    }
    if (id === recordedId && record !== undefined && record.stamp === undefined) unstamped = record;
    if (record === undefined && mutations.has("recorded-id-is-all")) {
      return { found: undefined, unstamped };
    }
  }
  if (mutations.has("memory-is-its-index")) return { found: undefined, unstamped };
  return { found: await byKey(question), unstamped };
}

async function byKey({ api, world, stamp }: Question): Promise<VendorRecord | undefined> {
  let before: string | undefined;
  for (let scan = 0; scan < scansMax; scan += 1) {
    const records = await api.scan();
    const candidates = records.filter((record) => hasKeyOf(record.stamp, stamp));
    const present = await stillThere(api, candidates.sort(byAge));
    const ours = present.filter((record) => record.stamp?.cluster === stamp.cluster);
    const isYoungest = world.mutations.has("picks-the-youngest");
    const found = isYoungest ? present.at(-1) : (ours[0] ?? present[0]);
    if (found !== undefined) {
      const [, ...others] = ours;
      if (world.mutations.has("removes-twins")) {
        for (const { id } of others) await api.remove(id);
      }
      return found;
    }
    if (candidates.length > 0) continue;
    const now = records.map(({ id }) => id).join(" ");
    if (now === before || world.mutations.has("trusts-one-scan")) return undefined;
    before = now;
  }
  throw new Failure("BUSY", "the vendor's list does not come to rest", { retryAfterMs: 300 });
}

/** Lists lag: the look by id decides. */
async function stillThere(
  api: VendorApi,
  candidates: readonly VendorRecord[],
): Promise<readonly VendorRecord[]> {
  const looks = await Promise.all(candidates.map(({ id }) => api.read(id)));
  return looks.flatMap((record) => record ?? []);
}
