/** The vendor's parameters: which values are sound, which mean the same, which are for ever. */
import type { Mutations } from "./mutations.ts";

type Values = Readonly<Record<string, string>>;

interface Parameter {
  readonly pattern: string;
  readonly isImmutable?: boolean;
  readonly isNumber?: boolean;
}

const parameters: Readonly<Record<string, Parameter>> = {
  voice: { pattern: "^[a-z]{1,40}$" },
  speed: { pattern: "^[0-9.]{1,10}$", isNumber: true },
  engine: { pattern: "^v[0-9]{1,3}$", isImmutable: true },
};

export const parameterSchema = {
  type: "object",
  additionalProperties: false,
  properties: Object.fromEntries(
    Object.entries(parameters).map(([name, { pattern }]) => [name, { type: "string", pattern }]),
  ),
};

/** Paths of what is wrong. */
export function badParameters(values: Values): readonly string[] {
  return Object.entries(values)
    .filter(([name, value]) => !new RegExp(parameters[name]?.pattern ?? "(?!)").test(value))
    .map(([name]) => `parameters.${name}`);
}

export function isImmutable(name: string): boolean {
  return parameters[name]?.isImmutable === true;
}

/** In a form in which equal means equal. */
export function normalised(values: Values, mutations: Mutations): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const isNumber = parameters[name]?.isNumber === true && !mutations.has("notation-is-drift");
      return [name, isNumber ? String(Number(value)) : value];
    }),
  );
}
