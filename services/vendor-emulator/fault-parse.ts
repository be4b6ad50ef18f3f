/** What comes to the port behind the scenes, checked; every mistake is an Error with plain words. */
import { editNames, networkEffects, operations, switchNames } from "./fault-words.ts";
import type { Edit, Fault, Switches, Vocabulary } from "./fault-words.ts";

type Json = Readonly<Record<string, unknown>>;

const timesMax = 10_000;
const delayMsMax = 60_000;
const dayMs = 86_400_000;

export function parseFault(json: unknown, known: Pick<Vocabulary, "effects">): Fault {
  const fields = objectOf(json, [
    "operation",
    "moment",
    "effect",
    "times",
    "skip",
    "delayMs",
    "retryAfterMs",
  ]);
  const effects = [...networkEffects, ...known.effects];
  const effect = oneOf(fields, "effect", effects);
  const skip = optionalCount(fields, "skip", timesMax);
  const delayMs = optionalCount(fields, "delayMs", delayMsMax);
  const retryAfterMs = optionalCount(fields, "retryAfterMs", dayMs);
  if (effect === "slow" && delayMs === undefined) throw new Error("delayMs: slow needs it");
  return {
    operation: oneOf(fields, "operation", operations),
    moment: oneOf(fields, "moment", ["before", "after"]),
    effect,
    times: optionalCount(fields, "times", timesMax) ?? 1,
    ...(skip === undefined ? {} : { skip }),
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

export function parseSwitches(json: unknown, known: Pick<Vocabulary, "switches">): Switches {
  const fields = objectOf(json, switchNames);
  for (const name of Object.keys(fields)) {
    if (known.switches.some((one) => one === name)) continue;
    throw new Error(`${name}: this vendor has no such switch; it has ${known.switches.join(", ")}`);
  }
  const ms = (name: "listLagMs" | "deletionMs" | "provisionMs"): Switches => {
    const value = optionalCount(fields, name, dayMs);
    return value === undefined ? {} : { [name]: value };
  };
  const pageSize = optionalCount(fields, "pageSize", timesMax);
  const { awaitsHuman } = fields;
  if (awaitsHuman !== undefined && typeof awaitsHuman !== "boolean") {
    throw new Error("awaitsHuman: want true or false");
  }
  const choice = <const Value extends string>(
    name: "credential" | "billing",
    values: readonly Value[],
  ): { readonly [key in typeof name]?: Value } =>
    fields[name] === undefined ? {} : { [name]: oneOf(fields, name, values) };
  return {
    ...ms("listLagMs"),
    ...ms("deletionMs"),
    ...ms("provisionMs"),
    ...(awaitsHuman === undefined ? {} : { awaitsHuman }),
    ...(pageSize === undefined ? {} : { pageSize: Math.max(1, pageSize) }),
    ...choice("credential", ["good", "wrong", "scopeless"]),
    ...choice("billing", ["current", "overdue", "exhausted"]),
  } as Switches;
}

export function parseEdit(json: unknown, known: Pick<Vocabulary, "edits">): Edit {
  const fields = objectOf(json, ["edit", "id"]);
  const edit = oneOf(fields, "edit", editNames);
  if (!known.edits.includes(edit)) {
    throw new Error(`edit: this vendor has no ${edit}; it has ${known.edits.join(", ")}`);
  }
  const { id = "" } = fields;
  if (typeof id !== "string") throw new Error("id: want a text");
  return { edit, id };
}

function objectOf(json: unknown, known: readonly string[]): Json {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new Error("want a JSON object");
  }
  const fields = Object.fromEntries(Object.entries(json));
  for (const name of Object.keys(fields)) {
    if (!known.includes(name)) throw new Error(`${name}: not known; known are ${known.join(", ")}`);
  }
  return fields;
}

function oneOf<const Value extends string>(
  fields: Json,
  name: string,
  values: readonly Value[],
): Value {
  const found = values.find((value) => value === fields[name]);
  if (found !== undefined) return found;
  throw new Error(`${name}: ${JSON.stringify(fields[name])} is none of ${values.join(", ")}`);
}

function optionalCount(fields: Json, name: string, max: number): number | undefined {
  const value = fields[name];
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= max) {
    return value;
  }
  throw new Error(`${name}: want a whole number from 0 to ${max}`);
}
