/** Plaintext is for one machine: which hosts and gRPC targets stay on it. */
import { isIP } from "node:net";

/** True for localhost and the loopback addresses of IPv4 and IPv6. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/u, "$1").toLowerCase();
  if (bare === "localhost" || bare === "::1") return true;
  return isIP(bare) === 4 && bare.startsWith("127.");
}

/**
 * True when every address of a gRPC target is loopback or a local socket: "host:port",
 * "dns:///host:port", "ipv4:a:1,b:2", "ipv6:[::1]:1", "unix:path".
 */
export function isLoopbackTarget(target: string): boolean {
  if (target.startsWith("unix:")) return true;
  const addresses = target.replace(/^(?:dns:(?:\/\/[^/]*\/)?|ipv4:|ipv6:)/u, "").split(",");
  return addresses.every((address) => isLoopbackHost(hostOf(address)));
}

function hostOf(address: string): string {
  if (isIP(address) === 6) return address;
  return address.replace(/:\d+$/u, "");
}

/** Throws unless TLS, the explicit permission, or loopback makes plaintext harmless. */
export function requirePlaintextIsAllowed(where: string, isAllowed: boolean): void {
  if (isAllowed) return;
  throw new Error(
    `cannot speak plaintext at "${where}": it is not loopback; mount certificates or allow plaintext explicitly`,
  );
}
