/** What must hold at every instant, and what the world must come to once faults stop. */
import { conditionOf } from "../../resource/digital-human-provider.ts";
import type { VendorInstance } from "./vendor.ts";
import type { World } from "./world.ts";

/** What is wrong now; undefined: nothing. */
export function violationOf(world: World): string | undefined {
  const record = world.api.object?.record ?? [];
  const byRealm = Map.groupBy(world.vendor.live, ({ realm }) => realm);
  for (const [realm, instances] of byRealm) {
    const ids = instances.map(({ id }) => id).join(", ");
    if (!record.some((placement) => placement.realm === realm)) {
      return `leak: ${ids} in ${realm}, and no record says so`;
    }
    if (instances.length > 1 && !isCleaningUp(world, realm)) return `duplicate: ${ids} in ${realm}`;
  }
  return undefined;
}

/** A create that found an older instance is about to delete what it made. */
function isCleaningUp(world: World, realm: string): boolean {
  return [...world.adapters.values(), ...world.cutAdapters].some((adapter) =>
    adapter.cleaningUp.includes(realm),
  );
}

/** What is wrong with taking this instance away now; undefined: nothing. */
export function deletionViolation(
  world: World,
  instance: VendorInstance,
  hasConsoleDeleted: boolean,
): string | undefined {
  const { object } = world.api;
  if (object === undefined || object.isDeleting) return undefined;
  const isWanted =
    instance.realm === world.wantedRealm &&
    object.record.some(({ realm, state }) => realm === instance.realm && state === "Recorded");
  if (isWanted) return `${instance.id} is deleted, and it is wanted`;
  const serves = ({ isReady, isDeleting }: VendorInstance): boolean => isReady && !isDeleting;
  const isOthers = world.vendor.live.some((other) => other !== instance && serves(other));
  return serves(instance) && !isOthers && !hasConsoleDeleted
    ? `outage: ${instance.id} is deleted, and no other one serves`
    : undefined;
}

/** Why the world is not yet as it shall be; undefined: it is. */
export function missingFromGoal(world: World): string | undefined {
  const { object } = world.api;
  const { live } = world.vendor;
  if (object === undefined) return live.length === 0 ? undefined : "instances outlive the object";
  if (object.isDeleting) return "the object is still being deleted";
  const [instance, ...others] = live;
  if (instance === undefined || others.length > 0) return `${live.length} instances live`;
  if (instance.realm !== world.wantedRealm) return `${instance.id} is at the wrong place`;
  if (!instance.isReady || instance.isDeleting) return `${instance.id} is not ready`;
  if (instance.uid !== object.uid) return `${instance.id} carries another uid`;
  const [placement, ...more] = object.record;
  if (placement === undefined || more.length > 0) return `${object.record.length} placements`;
  if (placement.endpoint !== object.spec.endpoint) return "the record names another endpoint";
  if (placement.realm !== instance.realm) return "the record names another realm";
  if (placement.providerID !== instance.id) return "the record has another id";
  if (placement.state !== "Recorded") return "the placement retires";
  if (object.status.providerID !== instance.id) return "status.providerID is another";
  const ready = conditionOf(object.status, "Ready");
  if (ready?.status !== "True") return `Ready is ${ready?.status}: ${ready?.message}`;
  const isLimited = conditionOf(object.status, "RateLimited")?.status === "True";
  if (isLimited) return "it counts as limited";
  const { generation, status } = object;
  if (ready.observedGeneration !== generation) return "Ready is of another generation";
  if (status.observedGeneration !== generation) return "status is of another generation";
  return undefined;
}
