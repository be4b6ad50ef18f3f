import { destination as pinoDestination, pino, stdTimeFunctions } from "pino";

import { redactText, redactValue } from "./redaction.ts";

/** Structured log: a constant message with fields, so that lines can be counted and searched. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** A log that adds `fields` to each of its lines. */
  child(fields: object): Log;
}

/** Levels in rising order; a log writes its own and those after it. */
export const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Where lines go, each ending in a newline. */
export interface LogDestination {
  write(line: string): void;
}

export interface LogOptions {
  /** The process: "dhp-controller". Written as `process` on each line. */
  readonly name: string;
  readonly level: LogLevel;
  /** Default: standard output, written at once so that the last line before a crash is not lost. */
  readonly destination?: LogDestination;
}

/** Members that each line has of its own; a field of that name is written with an underscore. */
const reserved = new Set(["level", "time", "process", "pid", "msg"]);

/** JSON lines {level, time, process, pid, msg, ...fields}; secrets are taken out at this door. */
export function createLog(options: LogOptions): Log {
  const logger = pino(
    {
      level: options.level,
      base: { process: options.name, pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      messageKey: "msg",
      serializers: {},
      formatters: { level: (label) => ({ level: label }) },
    },
    options.destination ?? pinoDestination({ fd: 1, sync: true }),
  );
  return logOn((level, fields, message) => {
    if (logger.isLevelEnabled(level)) logger[level](lineFields(fields), redactText(message));
  }, {});
}

/** Writes nothing. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};

type WriteLine = (level: LogLevel, fields: object, message: string) => void;

// A child keeps its fields and redacts them line by line: a secret may be registered after it was made.
function logOn(write: WriteLine, base: object): Log {
  return {
    debug: (fields, message) => write("debug", { ...base, ...fields }, message),
    info: (fields, message) => write("info", { ...base, ...fields }, message),
    warn: (fields, message) => write("warn", { ...base, ...fields }, message),
    error: (fields, message) => write("error", { ...base, ...fields }, message),
    child: (fields) => logOn(write, { ...base, ...fields }),
  };
}

function lineFields(fields: object): Record<string, unknown> {
  const clean = redactValue(fields);
  if (typeof clean !== "object" || clean === null) return {};
  return Object.fromEntries(
    Object.entries(clean).map(([name, value]) => [reserved.has(name) ? `${name}_` : name, value]),
  );
}
