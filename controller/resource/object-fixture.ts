/** Objects and classes for tests, parsed from JSON as everything else is. */
import { parseDigitalHumanProvider } from "./digital-human-provider.ts";
import type { DigitalHumanProvider } from "./digital-human-provider.ts";
import type { JsonObject } from "./json-door.ts";
import { parseProviderClass } from "./provider-class.ts";
import type { ProviderClass } from "./provider-class.ts";

export const endpointA = "https://a.example.com/api";
export const endpointB = "https://b.example.com/api";

/** media/one at `endpointA`, generation 1, changed as asked. */
export function objectWith(change: {
  readonly metadata?: JsonObject;
  readonly spec?: JsonObject;
  readonly status?: JsonObject;
}): DigitalHumanProvider {
  return parseDigitalHumanProvider({
    metadata: {
      namespace: "media",
      name: "one",
      uid: "uid-1",
      resourceVersion: "7",
      generation: 1,
      ...change.metadata,
    },
    spec: { endpoint: endpointA, region: "r", ...change.spec },
    ...(change.status === undefined ? {} : { status: change.status }),
  });
}

/** A class that covers the given hosts, changed as asked. */
export function classWith(
  name: string,
  endpointHosts: readonly string[],
  change: { readonly metadata?: JsonObject; readonly spec?: JsonObject } = {},
): ProviderClass {
  return parseProviderClass({
    metadata: { name, uid: `uid-${name}`, generation: 1, ...change.metadata },
    spec: { adapter: { address: `${name}:1` }, endpointHosts, ...change.spec },
  });
}

/** A placement as it stands in status.placements. */
export function placementJson(
  endpoint: string,
  realm: string,
  change: JsonObject = {},
): JsonObject {
  return {
    version: 1,
    class: "a",
    endpoint,
    region: "r",
    realm,
    state: "Recorded",
    ...change,
  };
}
