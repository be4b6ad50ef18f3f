/**
 * Process options as data: a spec says name, kind, bounds and help of each; `readOptions` turns the
 * command line and the environment into one complete, typed, unit-named object, or says everything
 * that is wrong with them at once.
 *
 * A member named drainTimeoutMs is the flag --drain-timeout and the variable DHP_DRAIN_TIMEOUT; the
 * flag wins. Durations are written with a unit ("5s", "300ms", "2m", "1h").
 */
import { redactText } from "./redaction.ts";

/** One option; made by the functions of option-kinds.ts. */
export interface Option<T> {
  readonly help: string;
  /** What stands for the value in the help: "DURATION". */
  readonly placeholder: string;
  /** How the value may be absent. `isSwitch`: the bare flag means "true". */
  readonly presence: Presence<T>;
  readonly isSwitch: boolean;
  readonly isRepeatable: boolean;
  /** All texts given; one, unless the option may be repeated. */
  parse(texts: readonly string[]): Parsed<T>;
}

export type Presence<T> =
  | { readonly kind: "required" }
  /** `shown`: the default as its user would write it. */
  | { readonly kind: "default"; readonly value: T; readonly shown: string };

export type Parsed<T> =
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "mistake"; readonly mistake: string };

export type OptionSet = Readonly<Record<string, Option<unknown>>>;

export type ValuesOf<Options extends OptionSet> = {
  readonly [Name in keyof Options]: Options[Name] extends Option<infer T> ? T : never;
};

export interface OptionsSpec<Options extends OptionSet> {
  /** The process: "dhp-controller". */
  readonly program: string;
  readonly summary: string;
  readonly options: Options;
  /** Mistakes that lie between options; called only when each of them is right by itself. */
  readonly check?: (values: ValuesOf<Options>) => readonly string[];
}

/** All that is wrong with the options, in one message. */
export class OptionsError extends Error {
  override readonly name = "OptionsError";
  readonly mistakes: readonly string[];

  constructor(program: string, mistakes: readonly string[]) {
    const lines = mistakes.map((mistake) => `  - ${mistake}`);
    super(`cannot start ${program}:\n${lines.join("\n")}\nSee ${program} --help.`);
    this.mistakes = mistakes;
  }
}

/** --help was asked for; the message is the help text. */
export class HelpRequested extends Error {
  override readonly name = "HelpRequested";
}

const argumentsMax = 1_000;
const shownCharsMax = 80;

/**
 * @param argv what follows the program's own name
 * @throws HelpRequested, OptionsError
 */
export function readOptions<Options extends OptionSet>(
  spec: OptionsSpec<Options>,
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ValuesOf<Options> {
  if (argv.includes("--help") || argv.includes("-h")) throw new HelpRequested(helpOf(spec));
  const mistakes: string[] = [];
  const given = readArguments(spec.options, argv, mistakes);
  const values: [string, unknown][] = [];
  for (const [name, option] of Object.entries(spec.options)) {
    const source = given.get(name) ?? readEnvironment(name, option, env);
    const parsed = valueOf(option, name, source);
    if (parsed.kind === "mistake") mistakes.push(parsed.mistake);
    else values.push([name, parsed.value]);
  }
  // Each member was parsed by the option of its name: the one place where that becomes its type.
  const complete = Object.fromEntries(values) as ValuesOf<Options>;
  if (mistakes.length === 0) mistakes.push(...(spec.check?.(complete) ?? []));
  if (mistakes.length > 0) throw new OptionsError(spec.program, mistakes);
  return complete;
}

/** The flag of a member: "drainTimeoutMs" is "--drain-timeout". */
export function flagOf(name: string): string {
  const plain = name.replace(/Ms$/u, "");
  return `--${plain.replaceAll(/[A-Z]/gu, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The environment variable of a member: "drainTimeoutMs" is "DHP_DRAIN_TIMEOUT". */
export function variableOf(name: string): string {
  return `DHP_${flagOf(name).slice(2).replaceAll("-", "_").toUpperCase()}`;
}

/** A value as it may be shown in a message: short, and without secrets. */
export function shown(text: string): string {
  const clean = redactText(text);
  return JSON.stringify(
    clean.length > shownCharsMax ? `${clean.slice(0, shownCharsMax)}...` : clean,
  );
}

interface Source {
  /** "--drain-timeout" or "DHP_DRAIN_TIMEOUT". */
  readonly where: string;
  readonly texts: readonly string[];
}

function readArguments(
  options: OptionSet,
  argv: readonly string[],
  mistakes: string[],
): ReadonlyMap<string, Source> {
  if (argv.length > argumentsMax) {
    mistakes.push(`${argv.length} arguments are more than ${argumentsMax}`);
    return new Map();
  }
  const nameOfFlag = new Map(Object.keys(options).map((name) => [flagOf(name), name]));
  const texts = new Map<string, string[]>();
  for (let at = 0; at < argv.length; at += 1) {
    const [flag, inline] = splitOnce(argv[at] ?? "", "=");
    const name = nameOfFlag.get(flag);
    const option = name === undefined ? undefined : options[name];
    if (name === undefined || option === undefined) {
      mistakes.push(unknownArgument(flag, [...nameOfFlag.keys()]));
      // A value that follows an unknown flag is part of the same mistake.
      const next = argv[at + 1];
      const hasValue = inline === undefined && flag.startsWith("--") && next !== undefined;
      if (hasValue && !next.startsWith("-")) at += 1;
      continue;
    }
    let text = inline ?? (option.isSwitch ? "true" : undefined);
    if (text === undefined && argv[at + 1]?.startsWith("--") !== true) text = argv[(at += 1)];
    if (text === undefined) {
      mistakes.push(`${flag}: its value is missing`);
      continue;
    }
    texts.set(name, [...(texts.get(name) ?? []), text]);
  }
  return new Map([...texts].map(([name, all]) => [name, { where: flagOf(name), texts: all }]));
}

function readEnvironment(
  name: string,
  option: Option<unknown>,
  env: Readonly<Record<string, string | undefined>>,
): Source | undefined {
  const text = env[variableOf(name)];
  if (text === undefined || text === "") return undefined;
  const texts = option.isRepeatable ? text.split(",").map((part) => part.trim()) : [text];
  return { where: variableOf(name), texts };
}

function valueOf(
  option: Option<unknown>,
  name: string,
  source: Source | undefined,
): Parsed<unknown> {
  if (source === undefined) {
    if (option.presence.kind === "default") return { kind: "value", value: option.presence.value };
    return { kind: "mistake", mistake: `${flagOf(name)} (or ${variableOf(name)}) is missing` };
  }
  if (source.texts.length > 1 && !option.isRepeatable) {
    return { kind: "mistake", mistake: `${source.where}: given ${source.texts.length} times` };
  }
  const parsed = option.parse(source.texts);
  if (parsed.kind === "value") return parsed;
  return { kind: "mistake", mistake: `${source.where}: ${parsed.mistake}` };
}

function unknownArgument(flag: string, known: readonly string[]): string {
  if (!flag.startsWith("--")) return `${shown(flag)}: not an option; options begin with --`;
  const bare = flag.replaceAll("-", "").toLowerCase();
  const similar = known.find((one) => one.replaceAll("-", "") === bare || one.startsWith(flag));
  return `${shown(flag)}: no such option${similar === undefined ? "" : `; did you mean ${similar}?`}`;
}

function splitOnce(text: string, separator: string): readonly [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function helpOf<Options extends OptionSet>(spec: OptionsSpec<Options>): string {
  const lines = Object.entries(spec.options).flatMap(([name, option]) => {
    const value = option.isSwitch ? "" : ` ${option.placeholder}`;
    const notes = [
      ...(option.isRepeatable ? ["may be repeated"] : []),
      option.presence.kind === "required" ? "required" : `default: ${option.presence.shown}`,
    ];
    return [`  ${flagOf(name)}${value}`, `      ${option.help} (${notes.join("; ")})`];
  });
  return [
    `${spec.program}: ${spec.summary}`,
    "",
    `Usage: ${spec.program} [options]`,
    "",
    "Each option can also be given as an environment variable: --some-name is DHP_SOME_NAME, a",
    "repeated one with commas. A flag wins over its variable.",
    "",
    ...lines,
    "",
  ].join("\n");
}
