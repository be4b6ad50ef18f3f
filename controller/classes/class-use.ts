/** Who uses a class: pure, from the objects as they stand. */
import { arrayAt, objectAt, stringAt } from "../resource/json-door.ts";
import type { JsonObject } from "../resource/json-door.ts";
import { firstPlacementAnnotation } from "../resource/names.ts";

export interface ClassUse {
  /** Objects that are pinned to the class or have an instance recorded with it. */
  readonly count: number;
  /** The first few of them, "namespace/name", in order. */
  readonly names: readonly string[];
}

export const noUse: ClassUse = { count: 0, names: [] };
const namesMax = 5;

/** By class name; classes that nobody uses are absent. */
export function classUses(objects: Iterable<JsonObject>): ReadonlyMap<string, ClassUse> {
  const users = new Map<string, string[]>();
  for (const raw of objects) {
    const metadata = objectAt(raw, "metadata");
    const name = `${stringAt(metadata, "namespace") ?? ""}/${stringAt(metadata, "name") ?? ""}`;
    for (const className of usedBy(raw)) {
      const names = users.get(className);
      if (names === undefined) users.set(className, [name]);
      else names.push(name);
    }
  }
  return new Map(
    [...users].map(([className, names]) => [
      className,
      { count: names.length, names: names.sort().slice(0, namesMax) },
    ]),
  );
}

function usedBy(raw: JsonObject): ReadonlySet<string> {
  const status = objectAt(raw, "status");
  const recorded = arrayAt(status, "placements").map((placement) => stringAt(placement, "class"));
  const first = firstPlacementClass(raw);
  const names = [stringAt(status, "className"), first, ...recorded];
  return new Set(names.filter((name): name is string => name !== undefined && name !== ""));
}

/** The annotation counts here whoever wrote it: a class kept too long harms nobody. */
function firstPlacementClass(raw: JsonObject): string | undefined {
  const annotations = objectAt(objectAt(raw, "metadata"), "annotations");
  const text = stringAt(annotations, firstPlacementAnnotation);
  if (text === undefined) return undefined;
  try {
    return stringAt(objectAt(JSON.parse(text), "placement"), "class");
  } catch (_notJson) {
    // Written by somebody else; it names no class.
    return undefined;
  }
}
