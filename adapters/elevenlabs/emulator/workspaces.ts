/** The vendor's hosts, and whose workspaces they lead to. */

/** Hosts that lead to a workspace of their own; all others lead to "global". */
const workspaceOfHost: ReadonlyMap<string, string> = new Map([
  ["api.eu.residency.elevenlabs.io", "eu"],
  ["api.in.residency.elevenlabs.io", "in"],
  ["api.sg.residency.elevenlabs.io", "sg"],
]);

export const apiHosts: readonly string[] = [
  "api.elevenlabs.io",
  "api.us.elevenlabs.io",
  ...workspaceOfHost.keys(),
];

export function workspaceOf(host: string): string {
  return workspaceOfHost.get(host) ?? "global";
}
