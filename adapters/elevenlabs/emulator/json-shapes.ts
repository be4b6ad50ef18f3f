/** What comes in as JSON, looked at without trust. */

export type Json = Readonly<Record<string, unknown>>;

/** `undefined` for what is no JSON object. */
export function recordOf(value: unknown): Json | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : undefined;
}

export function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string");
}

/** `undefined` for a text that is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (_notJson) {
    // The caller answers for it.
    return undefined;
  }
}

/** The value at a path; `undefined` where there is none. */
export function valueAt(value: unknown, at: readonly string[]): unknown {
  return at.reduce<unknown>((inner, name) => recordOf(inner)?.[name], value);
}

/** `base` with `over` laid on it, object by object; everything else is replaced. */
export function merged(base: Json, over: Json): Json {
  const result: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const inner = recordOf(value);
    const old = recordOf(base[name]);
    result[name] = inner !== undefined && old !== undefined ? merged(old, inner) : value;
  }
  return result;
}

/** A copy in which each text has gone through `change`. */
export function withTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((entry: unknown) => withTexts(entry, change));
  const record = recordOf(value);
  if (record === undefined) return value;
  return Object.fromEntries(
    Object.entries(record).map(([name, inner]) => [name, withTexts(inner, change)]),
  );
}
