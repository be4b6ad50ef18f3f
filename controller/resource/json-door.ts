/** The checked door from JSON of unknown shape to values of a known one. Never throws. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object at a field, or an empty one. */
export function objectAt(parent: unknown, field: string): JsonObject {
  const value = isJsonObject(parent) ? parent[field] : undefined;
  return isJsonObject(value) ? value : {};
}

/** The string at a field, or undefined for anything else. */
export function stringAt(parent: unknown, field: string): string | undefined {
  const value = isJsonObject(parent) ? parent[field] : undefined;
  return typeof value === "string" ? value : undefined;
}

export function numberAt(parent: unknown, field: string): number | undefined {
  const value = isJsonObject(parent) ? parent[field] : undefined;
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

export function booleanAt(parent: unknown, field: string): boolean | undefined {
  const value = isJsonObject(parent) ? parent[field] : undefined;
  return typeof value === "boolean" ? value : undefined;
}

/** The array at a field, or an empty one. */
export function arrayAt(parent: unknown, field: string): readonly unknown[] {
  const value = isJsonObject(parent) ? parent[field] : undefined;
  return Array.isArray(value) ? value : [];
}

export function stringsAt(parent: unknown, field: string): readonly string[] {
  return arrayAt(parent, field).filter((value) => typeof value === "string");
}

/** The string values of a map; others are left out. */
export function stringMapAt(parent: unknown, field: string): Readonly<Record<string, string>> {
  const entries = Object.entries(objectAt(parent, field));
  const strings: Record<string, string> = {};
  for (const [key, value] of entries) if (typeof value === "string") strings[key] = value;
  return strings;
}

/** An object without the fields that are undefined, for exact optional properties. */
export function definedOnly<T extends object>(
  value: T,
): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  // The door: only undefined fields were taken out.
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}
