/** One request of each RPC with everything filled in, as plain fields that a case can leave out. */
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { ProviderAPI } from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { Bench } from "./bench.ts";
import type { Subject } from "./subject.ts";
import type { Reply, WireCall } from "./wire-client.ts";

export const instanceRpcs = ["ensure", "describe", "delete", "release"] as const;
export type InstanceRpc = (typeof instanceRpcs)[number];
export type Rpc = InstanceRpc | "list";

type Fields = Readonly<Record<string, unknown>>;

/** RPCs that this adapter serves; what it does not serve may be refused before anything is read. */
export function servedRpcs(bench: Bench): readonly Rpc[] {
  return [
    "ensure",
    "describe",
    ...(bench.hasCapability("DELETE") ? (["delete"] as const) : []),
    ...(bench.hasCapability("RELEASE") ? (["release"] as const) : []),
    ...(bench.hasCapability("LIST_BY_OWNER") ? (["list"] as const) : []),
  ];
}

export function servedInstanceRpcs(bench: Bench): readonly InstanceRpc[] {
  return servedRpcs(bench).flatMap((rpc) => (rpc === "list" ? [] : [rpc]));
}

export function isMutating(rpc: Rpc): boolean {
  return rpc !== "describe" && rpc !== "list";
}

/** Everything filled in. */
export function fieldsOf(rpc: Rpc, subject: Subject): Fields {
  const { key: instanceKey, owner, target, spec } = subject;
  switch (rpc) {
    case "list":
      return { target, ownerCluster: owner.cluster };
    case "describe":
      return { instanceKey, owner, target };
    case "ensure": {
      const notAfter = subject.notAfter();
      return {
        instanceKey,
        owner,
        target,
        spec,
        specHash: "conformance",
        mayCreate: true,
        notAfter,
      };
    }
    default:
      return { instanceKey, owner, target, notAfter: subject.notAfter() };
  }
}

/** Sends it with some fields replaced; a field that is undefined is left out. */
export async function send(
  { bench, rpc, subject }: { readonly bench: Bench; readonly rpc: Rpc; readonly subject: Subject },
  own: Fields = {},
  call: WireCall = {},
): Promise<Reply<unknown>> {
  const fields = { ...fieldsOf(rpc, subject), ...own };
  const method: DescMethodUnary = ProviderAPI.method[rpc];
  const given = Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  );
  // Chosen at run time: that a field has the form of its message is seen when it is made.
  return await bench.client.call(method, given, call);
}
