import { isRawObject } from "./raw-object.ts";

/** A JSON merge patch (RFC 7386): null removes, arrays are replaced whole. */
export type MergePatch = { readonly [name: string]: unknown };

/**
 * The merge patch that turns `before` into `after`, or undefined where nothing differs. Fields that
 * neither side has, such as those this program does not know, are not in it and so survive.
 * A merge patch cannot write null: null and undefined in `after` count as absent.
 */
export function mergePatch(before: object, after: object): MergePatch | undefined {
  const patch: [string, unknown][] = [];
  const old = present(before);
  const wanted = present(after);
  for (const name of old.keys()) {
    if (!wanted.has(name)) patch.push([name, null]);
  }
  for (const [name, value] of wanted) {
    const last = old.get(name);
    if (isRawObject(value) && isRawObject(last)) {
      const inner = mergePatch(last, value);
      if (inner !== undefined) patch.push([name, inner]);
    } else if (!isEqualJson(last, value)) {
      patch.push([name, withoutNulls(value)]);
    }
  }
  // fromEntries defines own properties even for the name "__proto__".
  return patch.length === 0 ? undefined : Object.fromEntries(patch);
}

/** Equality of JSON values; the order of an object's fields does not count. */
export function isEqualJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => isEqualJson(item, b[index]));
  }
  if (!isRawObject(a) || !isRawObject(b)) return false;
  const left = present(a);
  const right = present(b);
  if (left.size !== right.size) return false;
  for (const [name, value] of left) {
    if (!right.has(name) || !isEqualJson(value, right.get(name))) return false;
  }
  return true;
}

function present(object: object): Map<string, unknown> {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return new Map<string, unknown>(entries.filter(([, value]) => value !== null));
}

/** Servers drop nulls from objects a patch adds, inside arrays they keep them as they are. */
function withoutNulls(value: unknown): unknown {
  if (!isRawObject(value)) return value;
  const entries = [...present(value)].map(([name, inner]) => [name, withoutNulls(inner)]);
  return Object.fromEntries(entries);
}
