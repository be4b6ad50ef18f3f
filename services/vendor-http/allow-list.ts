/**
 * Where an adapter may connect to: hosts by name, never an address inside the network it runs in.
 *
 * The name is checked here, before anything happens; the addresses it resolves to are checked in
 * guarded-lookup.ts at each connect, so a name that changes its address later gains nothing.
 */
import { BlockList, isIP } from "node:net";

import { ProviderError } from "../contract/provider-error.ts";

/** What is allowed beyond the defaults. */
export interface EndpointRules {
  /** Hosts: exact, or `*.suffix` for any name below it. */
  readonly hosts: readonly string[];
  /** True: `http:` is accepted when the host is a loopback address written as such. */
  readonly allowsPlainLoopback: boolean;
  /** Networks (CIDR) that are reachable although they are private, loopback or link-local. */
  readonly allowedNetworks: AddressRules;
}

/** Tells which addresses may be connected to. */
export interface AddressRules {
  isAllowed(address: string): boolean;
}

const endpointBytesMax = 2048;

/**
 * Parses and checks an endpoint. The error is ENDPOINT_NOT_ALLOWED with the field `endpoint`.
 * A query or fragment is refused too: paths are joined to the endpoint.
 */
export function checkEndpoint(endpoint: string, rules: EndpointRules): URL {
  const refuse = (why: string): ProviderError =>
    new ProviderError("ENDPOINT_NOT_ALLOWED", `endpoint ${why}`, {
      outcome: "NOT_APPLIED",
      fields: [{ path: "endpoint", description: why }],
    });
  if (Buffer.byteLength(endpoint) > endpointBytesMax) {
    throw refuse(`is longer than ${endpointBytesMax} bytes`);
  }
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url === undefined) throw refuse("is not a URL");
  // The text is not repeated while it may carry a password.
  if (hasUserInfo(url, endpoint)) throw refuse("must not carry user or password");
  if (/[?#\s]/.test(endpoint)) throw refuse("must not carry a query, a fragment or spaces");
  // What a URL parser reads leniently, another one may read as another host.
  if (!/^[a-z]+:\/\/[^/\\]+(\/[^\\]*)?$/i.test(endpoint)) {
    throw refuse("is not of the form https://HOST/PATH");
  }
  if (url.port === "0") throw refuse("must not have port 0");
  const host = bareHost(url);
  if (!isSchemeAllowed(url, host, rules)) throw refuse(`must be https, not ${url.protocol}`);
  if (!rules.hosts.some((pattern) => hostMatches(pattern, host))) {
    throw refuse(`host ${host} is not on the account's list`);
  }
  const isPlain = url.protocol === "http:";
  if (isIP(host) !== 0 && !isPlain && !rules.allowedNetworks.isAllowed(host)) {
    throw refuse(`host ${host} is a private address`);
  }
  return url;
}

/** Also an empty one, before a lone "@". */
function hasUserInfo({ username, password }: URL, endpoint: string): boolean {
  return username !== "" || password !== "" || /^[^/]*\/\/[^/\\]*@/.test(endpoint);
}

/** True when `host` is `pattern`, or lies below the suffix of `*.suffix`. Case does not matter. */
export function hostMatches(pattern: string, host: string): boolean {
  const wanted = pattern.toLowerCase();
  const found = host.toLowerCase().replace(/\.$/, "");
  if (!wanted.startsWith("*.")) return wanted === found;
  return found.endsWith(wanted.slice(1)) && isIP(found) === 0;
}

/** True for what `hostMatches` understands: a host name or address, or `*.` and a name. */
export function isHostPattern(pattern: string): boolean {
  const host = pattern.startsWith("*.") ? pattern.slice(2) : pattern;
  if (isIP(host) !== 0) return host === pattern;
  return /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(
    host,
  );
}

/** The URL's host without port and without the brackets of an IPv6 address. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

/** True for 127.0.0.0/8 and ::1, written as an address: a name could resolve to anything. */
export function isLoopbackAddress(host: string): boolean {
  const family = isIP(host);
  return family !== 0 && loopback.check(host, family === 6 ? "ipv6" : "ipv4");
}

/**
 * Public addresses and the given networks.
 * @param networks CIDR, "10.1.0.0/16"; throws on one that is not.
 */
export function addressRules(networks: readonly string[]): AddressRules {
  const allowed = blockListOf(networks);
  return {
    isAllowed(address) {
      const family = isIP(address);
      if (family === 0) return false;
      const type = family === 6 ? "ipv6" : "ipv4";
      return allowed.check(address, type) || !inner.check(address, type);
    },
  };
}

function isSchemeAllowed(url: URL, host: string, rules: EndpointRules): boolean {
  if (url.protocol === "https:") return true;
  return url.protocol === "http:" && rules.allowsPlainLoopback && isLoopbackAddress(host);
}

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix = "", ...rest] = network.split("/");
    const family = isIP(address);
    const bits = Number(prefix);
    const isSound = family !== 0 && /^\d{1,3}$/.test(prefix) && rest.length === 0;
    if (!isSound || bits > (family === 6 ? 128 : 32)) {
      throw new Error(`not a network in CIDR form: "${network}"`);
    }
    list.addSubnet(address, bits, family === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

const loopback = blockListOf(["127.0.0.0/8", "::1/128"]);

/**
 * Everything that is not the public internet: IANA special-purpose registries for IPv4 and IPv6.
 * BlockList also checks IPv4 addresses mapped into IPv6 (::ffff:10.0.0.1) against the IPv4 rules;
 * the compatible and translated forms (::/96, ::ffff:0:0:0/96, 64:ff9b::/96, 2002::/16) are refused
 * whole.
 */
const inner = blockListOf([
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "::/96",
  "::ffff:0:0:0/96",
  "64:ff9b::/96",
  "64:ff9b:1::/48",
  "100::/64",
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "3fff::/20",
  "5f00::/16",
  "fc00::/7",
  "fe80::/10",
  "fec0::/10",
  "ff00::/8",
]);
