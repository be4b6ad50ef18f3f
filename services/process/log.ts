/** Structured log: a constant message with fields, so that lines can be counted and searched. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** A log that adds `fields` to each of its lines. */
  child(fields: object): Log;
}
