/**
 * Ends a switch over a union: the type checker refuses a forgotten case, and a value that came past
 * it is a bug that must not go on silently.
 */
export function assertNever(value: never): never {
  throw new Error(`value outside its union: ${JSON.stringify(value)}`);
}
