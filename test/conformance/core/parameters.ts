/**
 * The parameters file: what the suite has to know of one installation. YAML or JSON; only `target` is
 * required, and what is absent leaves cases out. Every mistake is reported at once.
 */
import { readFileSync } from "node:fs";
import { parse } from "yaml";

/** Parts of the file that cases may need. */
export const parameterNames = [
  "target",
  "otherRealm",
  "unreachable",
  "withoutCredential",
  "parameters",
  "changed",
  "immutable",
  "invalid",
  "normalised",
  "displayName",
  "credential",
  "start",
] as const;
export type ParameterName = (typeof parameterNames)[number];

export interface SuiteTarget {
  readonly endpoint: string;
  readonly region: string;
  readonly account: string;
}

type Values = Readonly<Record<string, string>>;

export interface SuiteParameters {
  /** Where instances are made. */
  readonly target: SuiteTarget;
  /** A second place, in another realm: another account or a region of its own. */
  readonly otherRealm?: SuiteTarget;
  /** An allowed endpoint behind which nothing listens. */
  readonly unreachable?: SuiteTarget;
  /** A place whose account has no credential (its file is missing or empty). */
  readonly withoutCredential?: SuiteTarget;
  /** spec.parameters that the vendor takes, in the notation that the adapter shows. {} when absent. */
  readonly parameters: Values;
  /** Values of one or more of them that an existing instance can be changed to. */
  readonly changed?: Values;
  /** Another value of a parameter that cannot be changed once an instance exists. */
  readonly immutable?: Values;
  /** A value that is refused: by the parameter schema or by the vendor. */
  readonly invalid?: Values;
  /** The values of `parameters` in another notation that means the same. */
  readonly normalised?: Values;
  /** False: the vendor keeps no display name. True when absent. */
  readonly displayName: boolean;
  /** The credential file of `target`'s account, which the suite may write; put back at the end. */
  readonly credential?: {
    readonly file: string;
    /** Whole contents of the file. */
    readonly good: string;
    readonly wrong: string;
  };
  /** How to start the adapter; "{port}" stands for the port of ProviderAPI, "{adminPort}" for another. */
  readonly start?: readonly string[];
  /** Texts that must appear nowhere: the credentials. */
  readonly secrets: readonly string[];
  /** http://127.0.0.1:PORT/metrics, or with "{adminPort}" for an adapter that the suite starts. */
  readonly metrics?: string;
}

/** @throws Error that names everything that is wrong */
export function readParameters(path: string): SuiteParameters {
  let document: unknown;
  try {
    document = parse(readFileSync(path, "utf8"), { maxAliasCount: 100 });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`cannot read the parameters file "${path}": ${reason}`, { cause });
  }
  return parseParameters(document, path);
}

export function parseParameters(document: unknown, where: string): SuiteParameters {
  const mistakes: string[] = [];
  const fields = new Fields(document, "", mistakes);
  fields.onlyKnown([...parameterNames, "secrets", "metrics"]);
  const parameters: SuiteParameters = {
    target: targetOf(fields.part("target")) ?? { endpoint: "", region: "", account: "" },
    ...optionalPart("otherRealm", targetOf(fields.optionalPart("otherRealm"))),
    ...optionalPart("unreachable", targetOf(fields.optionalPart("unreachable"))),
    ...optionalPart("withoutCredential", targetOf(fields.optionalPart("withoutCredential"))),
    parameters: fields.values("parameters") ?? {},
    ...optionalPart("changed", fields.values("changed")),
    ...optionalPart("immutable", fields.values("immutable")),
    ...optionalPart("invalid", fields.values("invalid")),
    ...optionalPart("normalised", fields.values("normalised")),
    displayName: fields.boolean("displayName") ?? true,
    ...optionalPart("credential", credentialOf(fields.optionalPart("credential"))),
    ...optionalPart("start", fields.texts("start")),
    secrets: fields.texts("secrets") ?? [],
    ...optionalPart("metrics", fields.optionalText("metrics")),
  };
  if (mistakes.length === 0) return parameters;
  const lines = mistakes.map((mistake) => `  - ${mistake}`).join("\n");
  throw new Error(`the parameters in "${where}" are wrong:\n${lines}`);
}

function optionalPart<Name extends string, T>(
  name: Name,
  value: T | undefined,
): { readonly [key in Name]?: T } {
  // A computed key widens to string; the object has the one member that it was built with.
  return (value === undefined ? {} : { [name]: value }) as { readonly [key in Name]?: T };
}

function targetOf(fields: Fields | undefined): SuiteTarget | undefined {
  if (fields === undefined) return undefined;
  fields.onlyKnown(["endpoint", "region", "account"]);
  return {
    endpoint: fields.text("endpoint"),
    region: fields.optionalText("region") ?? "",
    account: fields.optionalText("account") ?? "",
  };
}

function credentialOf(fields: Fields | undefined): SuiteParameters["credential"] {
  if (fields === undefined) return undefined;
  fields.onlyKnown(["file", "good", "wrong"]);
  return { file: fields.text("file"), good: fields.text("good"), wrong: fields.text("wrong") };
}

/** One object of the file; mistakes go to a list that all share. */
class Fields {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #path: string;
  readonly #mistakes: string[];

  constructor(value: unknown, path: string, mistakes: string[]) {
    this.#path = path;
    this.#mistakes = mistakes;
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    if (!isObject) mistakes.push(`${path === "" ? "the file" : path}: want an object`);
    this.#fields = isObject ? { ...value } : {};
  }

  onlyKnown(names: readonly string[]): void {
    for (const name of Object.keys(this.#fields)) {
      if (!names.includes(name)) this.#wrong(name, `is not known; known are ${names.join(", ")}`);
    }
  }

  part(name: string): Fields | undefined {
    if (this.#fields[name] === undefined) this.#wrong(name, "is required");
    return this.optionalPart(name);
  }

  optionalPart(name: string): Fields | undefined {
    const value = this.#fields[name];
    if (value === undefined) return undefined;
    return new Fields(value, this.#path + name, this.#mistakes);
  }

  text(name: string): string {
    const value = this.optionalText(name);
    if (value === undefined) this.#wrong(name, "is required");
    return value ?? "";
  }

  optionalText(name: string): string | undefined {
    const value = this.#fields[name];
    if (value === undefined || typeof value === "string") return value;
    this.#wrong(name, "want a text");
    return undefined;
  }

  boolean(name: string): boolean | undefined {
    const value = this.#fields[name];
    if (value === undefined || typeof value === "boolean") return value;
    this.#wrong(name, "want true or false");
    return undefined;
  }

  texts(name: string): readonly string[] | undefined {
    const value = this.#fields[name];
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
    this.#wrong(name, "want a list of texts");
    return undefined;
  }

  values(name: string): Values | undefined {
    const value = this.#fields[name];
    if (value === undefined) return undefined;
    const entries = typeof value === "object" && value !== null ? Object.entries(value) : undefined;
    if (entries?.every(([, text]) => typeof text === "string")) return Object.fromEntries(entries);
    this.#wrong(name, "want an object of texts");
    return undefined;
  }

  #wrong(name: string, problem: string): void {
    const path = this.#path === "" ? name : `${this.#path}.${name}`;
    this.#mistakes.push(`${path}: ${problem}`);
  }
}
