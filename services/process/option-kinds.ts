/** The kinds of option a spec is made of. Each has a default, or is required without one. */
import { accessSync, constants, statSync } from "node:fs";
import { isIP } from "node:net";

import { shown } from "./options.ts";
import type { Option, Parsed, Presence } from "./options.ts";

interface Described<T> {
  readonly help: string;
  /** Absent: the option is required. */
  readonly default?: T;
}

/** Text of 1 to `charsMax` characters; `pattern` matches it whole, `form` says so in words. */
export function text(
  options: Described<string> & {
    readonly charsMax?: number;
    readonly pattern?: RegExp;
    readonly form?: string;
  },
): Option<string> {
  const charsMax = options.charsMax ?? 1_024;
  return single(options, "TEXT", shown, (given) => {
    if (given === "") return mistake("is empty");
    if (given.length > charsMax) return mistake(`is longer than ${charsMax} characters`);
    if (options.pattern?.test(given) === false) {
      return mistake(`${shown(given)} is not ${options.form ?? `of the form ${options.pattern}`}`);
    }
    return value(given);
  });
}

/** Time with a unit, in milliseconds: "300ms", "5s", "1.5m", "1h". Bounds included. */
export function duration(
  options: Described<number> & { readonly msMin?: number; readonly msMax: number },
): Option<number> {
  const { msMin = 1, msMax } = options;
  return single(options, "DURATION", durationText, (given) => {
    const match = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h)$/u.exec(given);
    if (match === null) {
      return mistake(`${shown(given)} is not a duration such as 300ms, 5s, 2m or 1h`);
    }
    const ms = Math.round(Number(match[1]) * (msOfUnit.get(match[2] ?? "") ?? Number.NaN));
    if (ms >= msMin && ms <= msMax) return value(ms);
    return mistake(
      `${shown(given)} is not within ${durationText(msMin)} and ${durationText(msMax)}`,
    );
  });
}

/** A whole number within bounds, included. */
export function integer(
  options: Described<number> & { readonly min: number; readonly max: number },
): Option<number> {
  return single(options, "NUMBER", String, (given) => {
    const number = /^-?\d{1,15}$/u.test(given) ? Number(given) : Number.NaN;
    if (number >= options.min && number <= options.max) return value(number);
    return mistake(`${shown(given)} is not a whole number from ${options.min} to ${options.max}`);
  });
}

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** An address to listen on: "127.0.0.1:8080", "[::]:0", ":8080" for all addresses. Port 0: any. */
export function hostPort(options: Described<HostPort>): Option<HostPort> {
  return single(options, "HOST:PORT", hostPortText, (given) => {
    const match = /^(?:\[([^\]]+)\]|([^:[\]\s]*)):(\d{1,5})$/u.exec(given);
    const port = Number(match?.[3]);
    const host = match?.[1] ?? match?.[2] ?? "";
    const isBracketed = match?.[1] !== undefined;
    if (match === null || port > 65_535 || isBracketed !== (isIP(host) === 6)) {
      return mistake(`${shown(given)} is not host:port such as 127.0.0.1:8080`);
    }
    return value({ host: host === "" ? "0.0.0.0" : host, port });
  });
}

/** One of a list. */
export function oneOf<const Value extends string>(
  options: Described<Value> & { readonly values: readonly Value[] },
): Option<Value> {
  return single(options, options.values.join("|"), String, (given) => {
    const found = options.values.find((one) => one === given);
    if (found !== undefined) return value(found);
    return mistake(`${shown(given)} is none of ${options.values.join(", ")}`);
  });
}

/** Path of a file that can be read when the process starts. */
export function file(options: Described<string>): Option<string> {
  return single(options, "FILE", shown, (given) => {
    try {
      accessSync(given, constants.R_OK);
      return statSync(given).isFile() ? value(given) : mistake(`${shown(given)} is not a file`);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
      return mistake(`cannot read ${shown(given)}: ${code}`);
    }
  });
}

/** On or off: the bare flag is on, "--flag=false" is off. Off by default. */
export function toggle(options: {
  readonly help: string;
  readonly default?: boolean;
}): Option<boolean> {
  const described = { help: options.help, default: options.default ?? false };
  const option = single<boolean>(described, "true|false", String, (given) =>
    given === "true" || given === "false"
      ? value(given === "true")
      : mistake(`${shown(given)} is neither true nor false`),
  );
  return { ...option, isSwitch: true };
}

/** The same option, absent as `undefined`. */
export function optional<T>(option: Option<T>): Option<T | undefined> {
  return { ...option, presence: { kind: "default", value: undefined, shown: "none" } };
}

/** The same option any number of times up to `countMax`, none by default; commas in a variable. */
export function repeated<T>(option: Option<T>, countMax: number): Option<readonly T[]> {
  return {
    ...option,
    isRepeatable: true,
    presence: { kind: "default", value: [], shown: "none" },
    parse: (texts) => {
      if (texts.length > countMax)
        return mistake(`given ${texts.length} times, at most ${countMax}`);
      const values: T[] = [];
      const mistakes: string[] = [];
      for (const one of texts) {
        const parsed = option.parse([one]);
        if (parsed.kind === "value") values.push(parsed.value);
        else mistakes.push(parsed.mistake);
      }
      return mistakes.length === 0 ? value(values) : mistake(mistakes.join("; "));
    },
  };
}

const msOfUnit = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
]);

function single<T>(
  described: Described<T>,
  placeholder: string,
  show: (value: T) => string,
  parseOne: (text: string) => Parsed<T>,
): Option<T> {
  const presence: Presence<T> =
    described.default === undefined
      ? { kind: "required" }
      : { kind: "default", value: described.default, shown: show(described.default) };
  return {
    help: described.help,
    placeholder,
    presence,
    isSwitch: false,
    isRepeatable: false,
    parse: (texts) => parseOne(texts[0] ?? ""),
  };
}

function value<T>(value: T): Parsed<T> {
  return { kind: "value", value };
}

function mistake(mistake: string): { readonly kind: "mistake"; readonly mistake: string } {
  return { kind: "mistake", mistake };
}

function durationText(ms: number): string {
  for (const [unit, unitMs] of [...msOfUnit].reverse()) {
    if (ms >= unitMs && ms % unitMs === 0) return `${ms / unitMs}${unit}`;
  }
  return `${ms}ms`;
}

function hostPortText({ host, port }: HostPort): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}
