/** Each takes one rule out. The simulation has to notice, or it would notice nothing. */
import { State } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { ProviderClient } from "../../../services/contract/provider-client.ts";
import { DoubtLedger } from "../doubt.ts";
import type { Mutant } from "./world.ts";

/** Forgets each doubt at once. */
class ForgetfulLedger extends DoubtLedger {
  override begin(): void {
    // Rule 4 taken out: nothing is ever in doubt.
  }
}

function alwaysMayCreate(client: ProviderClient): ProviderClient {
  return {
    ...client,
    ensure: (request, options) => client.ensure({ ...request, mayCreate: true }, options),
  };
}

function alwaysReady(client: ProviderClient): ProviderClient {
  return {
    ...client,
    ensure: async (request, options) => {
      const answer = await client.ensure(request, options);
      if (answer.instance !== undefined) answer.instance.state = State.READY;
      return answer;
    },
  };
}

export const mutants: ReadonlyMap<string, Mutant> = new Map<string, Mutant>([
  ["nothing is ever in doubt", { doubts: () => new ForgetfulLedger() }],
  ["every Ensure may create", { client: alwaysMayCreate }],
  ["a new leader inherits no doubt", { inheritsNoDoubt: true }],
  ["a new leader begins with a stale cache", { takesOverWithStaleCache: true }],
  ["an instance counts as READY before it is", { client: alwaysReady }],
  ["writes land whatever has changed", { writesIgnorePreconditions: true }],
  ["adapters take late calls", { adaptersIgnoreNotAfter: true }],
]);
