/**
 * The one place where secrets are taken out of what leaves the process: log lines, error messages,
 * status texts. It knows secrets by value (`registerSecret`) and by shape: names such as
 * turn_password, Authorization and Bearer, JSON Web Tokens, private keys, passwords in URLs.
 *
 * It errs towards taking too much: a mangled log line costs less than a leaked key.
 */

/** What stands in a secret's place. */
export const redacted = "[redacted]";

const secretCharsMin = 6;
const secretsMax = 1_000;
const textCharsMax = 16_384;
const scanCharsMax = 65_536;
const depthMax = 8;
const entriesMax = 100;
const nodesMax = 2_000;

/** Forms in which a registered value may appear, by value; oldest first. */
const formsBySecret = new Map<string, readonly string[]>();

/**
 * Makes `value` unspeakable from now on. Values shorter than 6 characters are refused with false:
 * replacing them everywhere would garble unrelated text. The newest 1000 values are remembered.
 */
export function registerSecret(value: string): boolean {
  if (value.length < secretCharsMin) return false;
  const forms = formsBySecret.get(value) ?? formsOf(value);
  formsBySecret.delete(value);
  formsBySecret.set(value, forms);
  for (const oldest of formsBySecret.keys()) {
    if (formsBySecret.size <= secretsMax) break;
    formsBySecret.delete(oldest);
  }
  return true;
}

/** The text without secrets, cut to 16,384 characters. */
export function redactText(text: string): string {
  const isCut = text.length > scanCharsMax;
  const clean = withoutShapes(withoutValues(isCut ? text.slice(0, scanCharsMax) : text));
  // The end of a cut text may hold half a secret that no rule recognises: stay well clear of it.
  const keep = isCut
    ? Math.min(textCharsMax, Math.max(clean.length - textCharsMax, 0))
    : textCharsMax;
  return clean.length > keep ? `${clean.slice(0, keep)}...(cut)` : clean;
}

/**
 * A plain copy of `value` without secrets, fit for JSON: errors become {name, message, stack, ...},
 * bytes their length, anything too deep, too wide or unreadable a note that says so. Never throws.
 */
export function redactValue(value: unknown): unknown {
  return copy(value, { nodesLeft: nodesMax, path: [] });
}

/** True for names whose values are secret wherever they stand: headers, JSON members, options. */
export function isSecretName(name: string): boolean {
  const plain = name.toLowerCase().replaceAll(/[-_.\s]/gu, "");
  if (harmlessName.test(plain)) return false;
  return secretName.test(plain);
}

const secretName =
  /passw|passphrase|passwd|pwd$|secret|token|apikey|accesskey|privatekey|signingkey|keydata|credential|authorization|cookie|signature/u;
// A file, a count or a page position is named after the secret it is not.
const harmlessName =
  /(?:pagetoken|file|path|ref|name|namespace|kind|count|bytes|tokens|ms|max|min)$/u;

const headerLine =
  /\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key)(\\{0,3}["']?\s*[:=]\s*\\{0,3}["']?)[^\r\n"'\\]+/giu;
const bearer = /\b(bearer)\s+[\w.~+/=-]{6,}/giu;
const basic = /\b(Basic)\s+(?=[\w+/=-]{0,200}?[A-Z0-9=])[\w+/=-]{8,}/gu;
const jsonWebToken = /\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/gu;
const privateKey =
  /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}-----|$)/gu;
const urlPassword = /(:\/\/)[^\s/@:]{0,200}:[^\s/@]{1,400}@/gu;
const prefixedKey = /\b(?:sk|rk|pk)[-_][\w-]{16,}/gu;
const nameAndValue =
  /([A-Za-z][\w.-]{0,63})(\\{0,3}["']?\s{0,8}[:=]\s{0,8})("(?:[^"\\]|\\.)*"|\\{0,3}["']?[^\s,;&"'{}[\]\\]+)/gu;

function withoutValues(text: string): string {
  let clean = text;
  for (const forms of formsBySecret.values()) {
    for (const form of forms) {
      if (clean.includes(form)) clean = clean.replaceAll(form, redacted);
    }
  }
  return clean;
}

function withoutShapes(text: string): string {
  return text
    .replaceAll(privateKey, redacted)
    .replaceAll(headerLine, `$1$2${redacted}`)
    .replaceAll(bearer, `$1 ${redacted}`)
    .replaceAll(basic, `$1 ${redacted}`)
    .replaceAll(jsonWebToken, redacted)
    .replaceAll(urlPassword, `$1${redacted}@`)
    .replaceAll(prefixedKey, redacted)
    .replaceAll(nameAndValue, (whole: string, name: string, separator: string, value: string) => {
      if (!isSecretName(name) || value.includes(redacted)) return whole;
      const quote = /^\\{0,3}["']/u.exec(value)?.[0] ?? "";
      const isClosed = quote !== "" && value.length > quote.length && value.endsWith(quote);
      return `${name}${separator}${quote}${redacted}${isClosed ? quote : ""}`;
    });
}

function formsOf(secret: string): readonly string[] {
  const forms = new Set([
    secret,
    encodeURIComponent(secret.toWellFormed()),
    JSON.stringify(secret).slice(1, -1),
    Buffer.from(secret).toString("base64"),
    Buffer.from(secret).toString("base64url"),
  ]);
  // Longest first, so that no shorter form leaves the rest of a longer one behind.
  return [...forms].sort((left, right) => right.length - left.length);
}

interface Copying {
  nodesLeft: number;
  readonly path: object[];
}

function copy(value: unknown, copying: Copying): unknown {
  copying.nodesLeft -= 1;
  if (copying.nodesLeft < 0) return "[too large]";
  switch (typeof value) {
    case "string":
      return redactText(value);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
    case "undefined":
      return value;
    case "bigint":
      return value.toString();
    case "symbol":
    case "function":
      return `[${typeof value}]`;
    case "object":
      return value === null ? null : copyObject(value, copying);
    default:
      return "[unknown]";
  }
}

function copyObject(value: object, copying: Copying): unknown {
  if (value instanceof Date)
    return Number.isNaN(value.getTime()) ? "[no date]" : value.toISOString();
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (copying.path.includes(value)) return "[circular]";
  if (copying.path.length >= depthMax) return "[too deep]";
  copying.path.push(value);
  try {
    if (Array.isArray(value)) return copyList(value, copying);
    if (value instanceof Set) return copyList([...value], copying);
    if (value instanceof Map) return copyEntries([...value], copying);
    if (value instanceof Error) return copyEntries(entriesOfError(value), copying);
    return copyEntries(entriesOf(value), copying);
  } catch (_unreadable) {
    // A getter or proxy that throws: what it would have said is not worth a lost log line.
    return "[unreadable]";
  } finally {
    copying.path.pop();
  }
}

function copyList(list: readonly unknown[], copying: Copying): unknown[] {
  const copied = list.slice(0, entriesMax).map((entry) => copy(entry, copying));
  if (list.length > entriesMax) copied.push(`[${list.length - entriesMax} more]`);
  return copied;
}

function copyEntries(
  entries: readonly (readonly [unknown, unknown])[],
  copying: Copying,
): Record<string, unknown> {
  const copied: [string, unknown][] = [];
  for (const [key, value] of entries.slice(0, entriesMax)) {
    const name = typeof key === "string" ? key : String(copy(key, copying));
    const isHidden = isSecretName(name) && typeof value !== "boolean" && value !== undefined;
    copied.push([redactText(name), isHidden ? redacted : copy(value, copying)]);
  }
  if (entries.length > entriesMax) copied.push(["...", `[${entries.length - entriesMax} more]`]);
  // fromEntries defines "__proto__" as an ordinary member instead of setting the prototype.
  return Object.fromEntries(copied);
}

function entriesOf(value: object): [string, unknown][] {
  return Object.keys(value).map((key) => [key, Reflect.get(value, key)]);
}

function entriesOfError(error: Error): [string, unknown][] {
  const own = entriesOf(error).filter(([key]) => key !== "cause");
  return [
    ["name", error.name],
    ["message", error.message],
    ["stack", error.stack],
    ...own.filter(([key]) => !["name", "message", "stack"].includes(key)),
    ...(error.cause === undefined ? [] : ([["cause", error.cause]] satisfies [string, unknown][])),
  ];
}
