/**
 * Our stamp among an agent's tags. Pure.
 *
 * The short form alone is enough to find an agent and its cluster; key, owner and spec hash stand
 * beside it in tags of their own. No limit of tags is documented: where the vendor refuses the long
 * ones, those that fit a short field are written alone ("short").
 */
import type { Stamp } from "../../services/adapter-host/adapter.ts";
import { isShortStamp, makeStamp, readShortStamp } from "../../services/adapter-host/stamp.ts";

export type TagExtent = "full" | "short";

const shortTagCharactersMax = 48;
const fields = ["key", "cluster", "uid", "specHash"] as const;
const labels = {
  key: "dhp-key=",
  cluster: "dhp-cluster=",
  uid: "dhp-uid=",
  specHash: "dhp-hash=",
} as const satisfies Readonly<Record<(typeof fields)[number], string>>;

/** The tags to write for `stamp`, after those that are not ours. */
export function tagsWith(
  stamp: Stamp,
  others: readonly string[],
  extent: TagExtent,
): readonly string[] {
  const own = fields.filter((name) => stamp[name] !== "").map((name) => labels[name] + stamp[name]);
  const fitting = own.filter((tag) => extent === "full" || tag.length <= shortTagCharactersMax);
  return [...tagsWithout(others), stamp.short, ...fitting];
}

/** The tags that are not ours, in their order. */
export function tagsWithout(tags: readonly string[]): readonly string[] {
  return tags.filter(
    (tag) => !isShortStamp(tag) && !fields.some((name) => tag.startsWith(labels[name])),
  );
}

/** Absent: no stamp. Key and cluster count only where they lead to the short form beside them. */
export function readStampTags(tags: readonly string[]): Stamp | undefined {
  const value = (name: (typeof fields)[number]): string =>
    tags.find((tag) => tag.startsWith(labels[name]))?.slice(labels[name].length) ?? "";
  const uid = value("uid");
  const specHash = value("specHash");
  const full = makeStamp(value("key"), { cluster: value("cluster"), uid }, specHash);
  if (tags.includes(full.short)) return full;
  const short = readShortStamp(tags.find(isShortStamp) ?? "");
  return short === undefined ? undefined : { ...short, uid, specHash };
}
