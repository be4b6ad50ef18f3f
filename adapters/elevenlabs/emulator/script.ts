/**
 * Scripts as data: steps that change the emulated world, and faults that wait for requests. This
 * file says what a step is and checks it; `Director` (director.ts) carries it out.
 */
import { recordOf } from "./json-shapes.ts";
import type { Json } from "./json-shapes.ts";
import { isVendorErrorName } from "./vendor-errors.ts";
import type { VendorErrorName } from "./vendor-errors.ts";
import { permissions } from "./world.ts";
import type { EmulatorKey } from "./world.ts";

/** One step of a script. Agents are made, edited and deleted as somebody at the console would. */
export type Step =
  | ({ readonly do: "fault" } & Fault)
  | { readonly do: "clear-faults" }
  | { readonly do: "set"; readonly settings: Json }
  | { readonly do: "subscription"; readonly workspace: string; readonly fields: Json }
  | {
      readonly do: "create-agent";
      readonly workspace: string;
      readonly count: number;
      readonly fields: Json;
    }
  | { readonly do: "edit-agent"; readonly agentId: string; readonly fields: Json }
  | { readonly do: "delete-agent"; readonly agentId: string }
  | ({ readonly do: "key" } & EmulatorKey)
  | { readonly do: "revoke-key"; readonly apiKey: string }
  | { readonly do: "advance"; readonly ms: number };

/** What befalls requests that match. */
export interface Fault {
  /** Absent: any method. */
  readonly method?: string;
  /** Regular expression of the path; absent: any path. */
  readonly path?: string;
  /** Whose key the request carries; absent: anybody's. */
  readonly userId?: string;
  /** So many matching requests go by first. */
  readonly skip: number;
  /** How many it befalls. */
  readonly times: number;
  /** Before anything is done. */
  readonly delayMs: number;
  /** Steps carried out before the request is served: pages that shift while they are read. */
  readonly console: readonly Step[];
  /** True: the request takes effect first, and the answer is lost or wrong. */
  readonly isAfter: boolean;
  readonly effect: Effect;
}

export type Effect =
  /** The request is served as always. */
  | { readonly kind: "pass" }
  /** One of the vendor's own refusals. */
  | {
      readonly kind: "error";
      readonly name: VendorErrorName;
      readonly headers: Readonly<Record<string, string>>;
    }
  /** Any answer. */
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly text: string;
    }
  /** TCP reset without an answer. */
  | { readonly kind: "reset" }
  /** Half of the true answer, then the end of the connection. */
  | { readonly kind: "cut" }
  /** No answer until the emulator stops. */
  | { readonly kind: "hang" };

const delayMsMax = 60_000;
const countMax = 10_000;
const stepsMax = 1_000;

/** A step or a list of them; throws an error that says what is wrong. */
export function parseScript(json: unknown): readonly Step[] {
  const steps: readonly unknown[] = Array.isArray(json) ? json : [json];
  if (steps.length > stepsMax) throw new Error(`more than ${stepsMax} steps`);
  return steps.map(parseStep);
}

function parseStep(json: unknown): Step {
  const fields = fieldsOf(json, "step");
  const name = fields["do"];
  switch (name) {
    case "fault":
      return { do: name, ...parseFault(fields) };
    case "clear-faults":
      return { do: name };
    case "set":
      return { do: name, settings: fieldsOf(fields["settings"], "settings") };
    case "subscription":
      return { do: name, workspace: workspaceOf(fields), fields: fieldsOf(fields["fields"]) };
    case "create-agent":
      return {
        do: name,
        workspace: workspaceOf(fields),
        count: count(fields, "count", { default: 1, max: countMax }),
        fields: fieldsOf(fields["fields"] ?? {}),
      };
    case "edit-agent":
      return { do: name, agentId: text(fields, "agentId"), fields: fieldsOf(fields["fields"]) };
    case "delete-agent":
      return { do: name, agentId: text(fields, "agentId") };
    case "key":
      return { do: name, ...parseKey(fields) };
    case "revoke-key":
      return { do: name, apiKey: text(fields, "apiKey") };
    case "advance":
      return { do: name, ms: count(fields, "ms", { default: 0, max: 365 * 86_400_000 }) };
    default:
      throw new Error(`there is no step ${JSON.stringify(name)}`);
  }
}

function parseKey(fields: Json): EmulatorKey {
  const given = fields["permissions"] ?? permissions;
  if (!Array.isArray(given)) throw new Error("permissions: want a list");
  return {
    apiKey: text(fields, "apiKey"),
    userId: text(fields, "userId"),
    workspace: workspaceOf(fields),
    permissions: permissions.filter((permission) => given.includes(permission)),
  };
}

function parseFault(fields: Json): Fault {
  const path = fields["path"] === undefined ? undefined : new RegExp(text(fields, "path")).source;
  return {
    ...(fields["method"] === undefined ? {} : { method: text(fields, "method") }),
    ...(path === undefined ? {} : { path }),
    ...(fields["userId"] === undefined ? {} : { userId: text(fields, "userId") }),
    skip: count(fields, "skip", { default: 0, max: countMax }),
    times: count(fields, "times", { default: 1, max: countMax }),
    delayMs: count(fields, "delayMs", { default: 0, max: delayMsMax }),
    console: fields["console"] === undefined ? [] : parseScript(fields["console"]),
    isAfter: fields["isAfter"] === true,
    effect: parseEffect(fieldsOf(fields["effect"] ?? { kind: "pass" }, "effect")),
  };
}

function parseEffect(fields: Json): Effect {
  const { kind, name } = fields;
  const headers = headersOf(fields["headers"]);
  switch (kind) {
    case "pass":
    case "reset":
    case "cut":
    case "hang":
      return { kind };
    case "error":
      if (!isVendorErrorName(name)) throw new Error(`no such error: ${JSON.stringify(name)}`);
      return { kind, name, headers };
    case "answer": {
      const status = count(fields, "status", { default: 200, max: 599 });
      if (status < 200) throw new Error("status: want 200 to 599");
      const isText = typeof fields["text"] === "string";
      const type = isText ? "text/html; charset=utf-8" : "application/json";
      const body = isText ? text(fields, "text") : JSON.stringify(fields["json"] ?? {});
      return { kind, status, headers: { "content-type": type, ...headers }, text: body };
    }
    default:
      throw new Error(`there is no effect ${JSON.stringify(kind)}`);
  }
}

function headersOf(json: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(fieldsOf(json ?? {}, "headers"));
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), String(value)]));
}

function workspaceOf(fields: Json): string {
  return fields["workspace"] === undefined ? "global" : text(fields, "workspace");
}

function fieldsOf(json: unknown, name = "fields"): Json {
  const fields = recordOf(json);
  if (fields === undefined) throw new Error(`${name}: want an object`);
  return fields;
}

function text(fields: Json, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw new Error(`${name}: want a text`);
  return value;
}

function count(
  fields: Json,
  name: string,
  rule: { readonly default: number; readonly max: number },
): number {
  const value = fields[name] ?? rule.default;
  const isSound = typeof value === "number" && Number.isInteger(value);
  if (!isSound || value < 0 || value > rule.max) {
    throw new Error(`${name}: want a whole number from 0 to ${rule.max}`);
  }
  return value;
}
