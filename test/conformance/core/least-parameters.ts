/** The smallest spec.parameters that an adapter takes: what its schema requires, and nothing else. */
import type { Bench } from "./bench.ts";

/** Empty for most; cases that leave things out of the spec must not leave these out. */
export function leastParameters({ info, parameters }: Bench): Record<string, string> {
  const required = requiredBy(info.parameterSchemaJson);
  const given = Object.entries(parameters.parameters);
  return Object.fromEntries(given.filter(([name]) => required.includes(name)));
}

/** info/schema-takes-the-parameters says what is wrong with a schema; here it then requires nothing. */
function requiredBy(schemaJson: string): readonly unknown[] {
  try {
    const schema: unknown = JSON.parse(schemaJson);
    const isObject = typeof schema === "object" && schema !== null && "required" in schema;
    return isObject && Array.isArray(schema.required) ? schema.required : [];
  } catch {
    // Not JSON: see above.
    return [];
  }
}
