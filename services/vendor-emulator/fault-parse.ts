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
  const skip = countOf(fields, "skip", { min: 0, max: timesMax });
  const delayMs = countOf(fields, "delayMs", { min: 1, max: delayMsMax });
  const retryAfterMs = countOf(fields, "retryAfterMs", { min: 0, max: dayMs });
  if (effect === "slow" && delayMs === undefined) throw new Error("delayMs: slow needs it");
  if (effect !== "slow" && delayMs !== undefined) throw new Error("delayMs: only slow takes it");
  if (effect !== "throttled" && retryAfterMs !== undefined) {
    throw new Error("retryAfterMs: only throttled takes it");
  }
  return {
    operation: oneOf(fields, "operation", operations),
    moment: oneOf(fields, "moment", ["before", "after"]),
    effect,
    times: countOf(fields, "times", { min: 1, max: timesMax }) ?? 1,
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
  const listLagMs = countOf(fields, "listLagMs", { min: 0, max: dayMs });
  const deletionMs = countOf(fields, "deletionMs", { min: 0, max: dayMs });
  const provisionMs = countOf(fields, "provisionMs", { min: 0, max: dayMs });
  const pageSize = countOf(fields, "pageSize", { min: 1, max: timesMax });
  const { awaitsHuman, credential, billing } = fields;
  if (awaitsHuman !== undefined && typeof awaitsHuman !== "boolean") {
    throw new Error("awaitsHuman: want true or false");
  }
  return {
    ...(listLagMs === undefined ? {} : { listLagMs }),
    ...(deletionMs === undefined ? {} : { deletionMs }),
    ...(provisionMs === undefined ? {} : { provisionMs }),
    ...(awaitsHuman === undefined ? {} : { awaitsHuman }),
    ...(pageSize === undefined ? {} : { pageSize }),
    ...(credential === undefined
      ? {}
      : { credential: oneOf(fields, "credential", ["good", "wrong", "scopeless"]) }),
    ...(billing === undefined
      ? {}
      : { billing: oneOf(fields, "billing", ["current", "overdue", "exhausted"]) }),
  };
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

export function parseNothing(json: unknown): void {
  objectOf(json, []);
}

function objectOf(json: unknown, known: readonly string[]): Json {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new Error("want a JSON object");
  }
  const fields = Object.fromEntries(Object.entries(json));
  for (const name of Object.keys(fields)) {
    if (known.includes(name)) continue;
    throw new Error(`${name}: not known; known are ${known.join(", ") || "no fields"}`);
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

/** A whole number within limits, both included; undefined: absent. */
function countOf(
  fields: Json,
  name: string,
  { min, max }: { readonly min: number; readonly max: number },
): number | undefined {
  const value = fields[name];
  if (value === undefined) return undefined;
  const isSound = typeof value === "number" && Number.isInteger(value);
  if (isSound && value >= min && value <= max) return value;
  throw new Error(`${name}: want a whole number from ${min} to ${max}`);
}
