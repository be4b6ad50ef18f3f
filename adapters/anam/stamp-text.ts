/**
 * The stamp in a persona's description: one bracket, before whatever people wrote there. It begins
 * with the short form, so that a description that Anam cut still tells whose the persona is.
 *
 *     [dhp-abcdefghijklmnop-qrstuvwx key=fleet/space/name&cluster=c&uid=u&hash=h]
 *     A friendly receptionist.
 */
import type { Stamp } from "../../services/adapter-host/adapter.ts";
import { makeStamp, readShortStamp } from "../../services/adapter-host/stamp.ts";

/** Short form, long form (no blanks, no brackets), closing bracket; each but the first may be cut. */
const bracket = /\[(dhp-[a-z2-7]{16}-[a-z2-7]{8})(?: ([^\]\s]*))?(\]?)\n?/;

/** The description to write: `text` without a stamp that it may have, below this one. */
export function descriptionWith(stamp: Stamp, text: string): string {
  const { short, key, cluster, uid, specHash } = stamp;
  const long = new URLSearchParams({ key, cluster, uid, hash: specHash });
  const words = descriptionWithout(text);
  // A slash needs no escape, and people read keys.
  const shown = long.toString().replaceAll("%2F", "/");
  return `[${short} ${shown}]${words === "" ? "" : "\n"}${words}`;
}

/** What people wrote. */
export function descriptionWithout(text: string): string {
  return text.replace(bracket, "");
}

/** Absent: no stamp. The long form counts only when it is whole and leads to the short one. */
export function readStamp(text: string): Stamp | undefined {
  const [, short = "", long = "", end] = bracket.exec(text) ?? [];
  const fields = new URLSearchParams(end === "]" ? long : "");
  const value = (name: string): string => fields.get(name) ?? "";
  const owner = { cluster: value("cluster"), uid: value("uid") };
  const full = makeStamp(value("key"), owner, value("hash"));
  return full.short === short ? full : readShortStamp(short);
}
