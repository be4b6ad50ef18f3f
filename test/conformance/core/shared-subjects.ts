/** Instances that several cases look at and none changes: made by the first case that asks. */
import type { Instance } from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import type { Bench } from "./bench.ts";
import type { Subject } from "./subject.ts";

export interface Shared {
  readonly subject: Subject;
  readonly instance: Instance;
}

/** Less than a case has, so that what fails is said. */
const makeTimeoutMs = 15_000;
const made = new WeakMap<Bench, Map<string, Promise<Shared>>>();

/** An instance of the run's own cluster. @param name within the run: a DNS label */
export async function shared(bench: Bench, name = "shared"): Promise<Shared> {
  return await once(bench, name, () => bench.subject(name));
}

/** An instance of the other cluster, with a key that the run's cluster could have too. */
export async function sharedForeign(bench: Bench): Promise<Shared> {
  const owner = { cluster: bench.otherCluster, uid: "uid-foreign" };
  return await once(bench, "foreign", () => bench.subject("foreign", { owner }));
}

/** Where it cannot be made, every case that needs it says so at once. */
function once(bench: Bench, name: string, subjectOf: () => Subject): Promise<Shared> {
  const known = made.get(bench) ?? new Map<string, Promise<Shared>>();
  made.set(bench, known);
  const entry = known.get(name) ?? makeShared(subjectOf());
  known.set(name, entry);
  return entry;
}

async function makeShared(subject: Subject): Promise<Shared> {
  return { subject, instance: await subject.converge({}, makeTimeoutMs) };
}
