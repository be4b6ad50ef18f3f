/** What a mutant is: the reference adapter with one thing wrong. */
import type { Accounts } from "../../../services/adapter-host/accounts.ts";
import type { Adapter } from "../../../services/adapter-host/adapter.ts";
import type { HostOptions } from "../../../services/adapter-host/host.ts";
import type { ProviderError } from "../../../services/contract/provider-error.ts";
import type { ProviderHandlers } from "../../../services/contract/provider-handlers.ts";
import type { GatewayOptions } from "../../../services/vendor-http/http-client.ts";
import type { Status } from "../../../proto/gen/google/rpc/status_pb.ts";
import type { RuleId } from "../core/rules.ts";

export interface Mutant {
  readonly name: string;
  /** What it does wrong, as a sentence. */
  readonly what: string;
  readonly breaks: readonly RuleId[];
  /** The conformance case that has to fail. */
  readonly caughtBy: string;
  readonly adapter?: (right: Adapter) => Adapter;
  readonly accounts?: (right: Accounts) => Accounts;
  readonly host?: Partial<HostOptions>;
  readonly gateway?: (right: GatewayOptions) => GatewayOptions;
  readonly handlers?: (right: ProviderHandlers, ground: Ground) => ProviderHandlers;
  readonly server?: ServerFaults;
}

/** What handlers may be made from. */
export interface Ground {
  /** A host of its own: no memory, no lock that others know of. */
  readonly newHandlers: () => ProviderHandlers;
  /** Writes to the process's output. */
  readonly say: (text: string) => void;
  /** All credentials of the default account. */
  readonly secret: () => string;
}

/** Faults below the handlers. */
export interface ServerFaults {
  readonly takesCallsWithoutDeadline?: boolean;
  readonly tamper?: (status: Status) => void;
  readonly crashesOn?: (request: unknown) => boolean;
  readonly onTerm?: "exit-at-once" | "exit-1" | "stay";
  readonly hasNoHealth?: boolean;
  /** Serves TLS, and asks no client for a certificate. */
  readonly takesStrangers?: boolean;
}

type Unary = "ensure" | "describe" | "list" | "delete" | "release";
const unaryNames: readonly Unary[] = ["ensure", "describe", "list", "delete", "release"];

/** The handlers with every error changed. */
export function withErrors(
  right: ProviderHandlers,
  change: (error: ProviderError, rpc: Unary) => unknown,
): ProviderHandlers {
  const changed = unaryNames.map((name) => {
    const handler = right[name] as (...args: readonly unknown[]) => Promise<unknown>;
    const wrapped = async (...args: readonly unknown[]): Promise<unknown> => {
      try {
        return await handler(...args);
      } catch (error) {
        throw change(error as ProviderError, name);
      }
    };
    return [name, wrapped] as const;
  });
  return { ...right, ...Object.fromEntries(changed) };
}
