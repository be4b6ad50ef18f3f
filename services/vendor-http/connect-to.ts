/**
 * `--connect-to https://host=http://127.0.0.1:port`: requests to the first origin go to the second,
 * which must be on this machine. For emulators and local servers in development and tests; the
 * endpoint in objects, errors and realms stays the first.
 */
import { bareHost, isLoopbackAddress } from "./allow-list.ts";

/** From the origin that is meant to the one that is connected to. */
export type ConnectTo = ReadonlyMap<string, string>;

/** Parses repeated `--connect-to` values; throws one error that names each bad one. */
export function parseConnectTo(values: readonly string[]): ConnectTo {
  const origins = new Map<string, string>();
  const mistakes: string[] = [];
  for (const value of values) {
    const [meant, actual, ...rest] = value.split("=").map(originOf);
    if (meant?.protocol !== "https:" || actual === undefined || rest.length > 0) {
      mistakes.push(`"${value}": want https://HOST[:PORT]=http://127.0.0.1:PORT`);
    } else if (!isLoopbackAddress(bareHost(actual))) {
      mistakes.push(`"${value}": ${actual.host} is not a loopback address`);
    } else {
      origins.set(meant.origin, actual.origin);
    }
  }
  if (mistakes.length > 0) throw new Error(mistakes.join("; "));
  return origins;
}

function originOf(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:"))
    return undefined;
  const isOrigin = url.pathname === "/" && url.search === "" && url.hash === "";
  return isOrigin && url.username === "" && url.password === "" ? url : undefined;
}
