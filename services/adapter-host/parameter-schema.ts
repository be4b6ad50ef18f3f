/** spec.parameters against the adapter's JSON Schema (draft 2020-12), in the words of the spec. */
import { Ajv2020 } from "ajv/dist/2020.js";
import type { ErrorObject, ValidateFunction } from "ajv/dist/2020.js";

import type { FieldViolation } from "../contract/provider-error.ts";

type Parameters = Readonly<Record<string, string>>;

/** Parameters with the schema's defaults filled in, or what is wrong with them. */
export type ParameterCheck =
  | { readonly kind: "sound"; readonly parameters: Parameters }
  | { readonly kind: "refused"; readonly violations: readonly FieldViolation[] };

/** Compiles once; throws when the schema itself is unsound. */
export function parameterChecker(
  schema: Readonly<Record<string, unknown>>,
): (parameters: Parameters) => ParameterCheck {
  const ajv = new Ajv2020({
    strict: true,
    strictRequired: true,
    allErrors: true,
    useDefaults: true,
    coerceTypes: false,
    removeAdditional: false,
    validateFormats: true,
    verbose: false,
    messages: true,
  });
  const validate: ValidateFunction = ajv.compile({ ...schema });
  return (parameters) => {
    const filled = { ...parameters };
    if (validate(filled)) return { kind: "sound", parameters: filled };
    return { kind: "refused", violations: (validate.errors ?? []).map(violationOf) };
  };
}

/** ajv's messages name rules, not values: a secret put into a parameter is not repeated. */
function violationOf(error: ErrorObject): FieldViolation {
  const own: Readonly<Record<string, unknown>> = error.params;
  const within = error.instancePath.split("/").slice(1).map(unescape);
  const extra = own["additionalProperty"] ?? own["missingProperty"];
  const parts = typeof extra === "string" ? [...within, extra] : within;
  const path = ["parameters", ...parts].join(".");
  const allowed = own["allowedValues"];
  const list = Array.isArray(allowed) ? `: ${allowed.join(", ")}` : "";
  if (error.keyword === "additionalProperties") {
    return { path, description: "is no parameter of this adapter" };
  }
  if (error.keyword === "required") return { path, description: "is required" };
  return { path, description: `${error.message ?? "is refused"}${list}` };
}

/** JSON pointer escapes. */
function unescape(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}
