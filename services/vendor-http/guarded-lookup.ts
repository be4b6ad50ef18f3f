import { lookup as systemLookup } from "node:dns";
import type { LookupAddress, LookupOptions } from "node:dns";
import type { LookupFunction } from "node:net";

import type { AddressRules } from "./allow-list.ts";

/** The name resolves to an address that may not be connected to. */
export class AddressRefusedError extends Error {
  override readonly name = "AddressRefusedError";
  readonly code = "DHP_ADDRESS_REFUSED";
}

/** Resolves a name to all its addresses. */
export type Resolver = (
  hostname: string,
  options: LookupOptions & { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * A `lookup` for sockets that resolves and checks in one step: the address that was checked is the
 * one that is connected to. One refused address refuses the whole name, since an honest public
 * name has no private address.
 */
export function guardedLookup(
  rules: AddressRules,
  resolver: Resolver = systemLookup,
): LookupFunction {
  return (hostname, options, callback) => {
    resolver(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error !== null || first === undefined) {
        callback(error ?? new Error(`no address for ${hostname}`), "", 0);
        return;
      }
      const refused = addresses.find(({ address }) => !rules.isAllowed(address));
      if (refused !== undefined) {
        const message = `${hostname} resolves to the private address ${refused.address}`;
        callback(new AddressRefusedError(message), "", 0);
      } else if (options.all === true) {
        callback(null, addresses);
      } else {
        callback(null, first.address, first.family);
      }
    });
  };
}
