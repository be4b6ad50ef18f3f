/** Instances that several cases look at and none changes: made by the first case that asks. */
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Bench } from "./bench.ts";
import type { Subject } from "./subject.ts";

export interface Shared {
  readonly subject: Subject;
  readonly instance: Instance;
}

const made = new WeakMap<Bench, Map<string, Shared>>();

/** An instance of the run's own cluster. @param name within the run: a DNS label */
export async function shared(bench: Bench, name = "shared"): Promise<Shared> {
  return await once(bench, name, () => bench.subject(name));
}

/** An instance of the other cluster, with a key that the run's cluster could have too. */
export async function sharedForeign(bench: Bench): Promise<Shared> {
  const owner = { cluster: bench.otherCluster, uid: "uid-foreign" };
  return await once(bench, "foreign", () => bench.subject("foreign", { owner }));
}

async function once(bench: Bench, name: string, make: () => Subject): Promise<Shared> {
  const known = made.get(bench) ?? new Map<string, Shared>();
  made.set(bench, known);
  const before = known.get(name);
  if (before !== undefined) return before;
  const subject = make();
  const entry = { subject, instance: await subject.converge() };
  known.set(name, entry);
  return entry;
}
