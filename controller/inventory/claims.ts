/** Which instances at the vendors belong to objects of this cluster, and which to none. Pure. */
import { keyStamp } from "../../services/contract/short-stamp.ts";
import type { FleetIdentity } from "../reconcile/provider-requests.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";

/** An instance that carries our stamp, as an adapter lists it. */
export interface StampedInstance {
  readonly realm: string;
  readonly providerID: string;
  readonly stamp: string;
  /** fleet/namespace/name; empty where the vendor's field was too short. */
  readonly key: string;
  /** Uid of the object that it was made for; empty where the vendor's field was too short. */
  readonly uid: string;
  /** Epoch ms; undefined: the vendor does not say. */
  readonly createdAtMs: number | undefined;
}

export type Claim =
  /** An object's record names it. */
  | { readonly kind: "recorded"; readonly object: string }
  /** An object of its key is being made, moved or removed: it may yet be recorded. */
  | { readonly kind: "pending"; readonly object: string }
  /** `why` for people. */
  | { readonly kind: "orphan"; readonly why: string };

export class Claims {
  readonly #recorded = new Map<string, string>();
  readonly #byStamp = new Map<string, DigitalHumanProvider>();

  constructor(objects: Iterable<DigitalHumanProvider>, identity: Pick<FleetIdentity, "fleet">) {
    for (const object of objects) {
      this.#byStamp.set(keyStamp(`${identity.fleet}/${object.key}`), object);
      for (const { realm, providerID } of object.record) {
        if (providerID !== "") this.#recorded.set(idOf(realm, providerID), object.key);
      }
    }
  }

  of(instance: StampedInstance): Claim {
    const recorded = this.#recorded.get(idOf(instance.realm, instance.providerID));
    if (recorded !== undefined) return { kind: "recorded", object: recorded };
    const object = this.#byStamp.get(instance.stamp.slice(0, keyStampLength));
    if (object === undefined) {
      const name = instance.key === "" ? "of its key" : instance.key.split("/").slice(1).join("/");
      return { kind: "orphan", why: `there is no object ${name} in this cluster` };
    }
    // Its id may be on its way into the record, or its removal under way.
    const isUnsettled =
      object.isDeleting ||
      object.record.length === 0 ||
      object.record.some(({ providerID, state }) => providerID === "" || state === "Retiring");
    if (isUnsettled) return { kind: "pending", object: object.key };
    const ids = object.record.map(({ providerID }) => providerID).join(", ");
    return { kind: "orphan", why: `object ${object.key} records another instance: ${ids}` };
  }
}

const keyStampLength = "dhp-".length + 16;

function idOf(realm: string, providerID: string): string {
  return `${realm}\n${providerID}`;
}
