/** Why an instance that an object records is there, and may be billed. Pure. */
import { conditionOf } from "../resource/digital-human-provider.ts";
import type { DigitalHumanProvider } from "../resource/digital-human-provider.ts";
import type { Placement } from "../resource/placement.ts";

export interface Bill {
  /** namespace/name; empty: no object. */
  readonly object: string;
  readonly class: string;
  readonly endpoint: string;
  readonly region: string;
  /** Empty: not known yet. */
  readonly providerID: string;
  readonly reason:
    | "Serves"
    | "Making"
    | "CleanupPending"
    | "Moving"
    | "Deleting"
    | "Abandoned"
    | "Orphaned";
  readonly why: string;
}

const abandonAnnotation = "dhp.example.com/abandon";

export function billsOf(object: DigitalHumanProvider): readonly Bill[] {
  return object.record.map((placement) => ({
    object: object.key,
    class: placement.class,
    endpoint: placement.endpoint,
    region: placement.region,
    providerID: placement.providerID,
    ...reasonOf(object, placement),
  }));
}

function reasonOf(
  object: DigitalHumanProvider,
  placement: Placement,
): Pick<Bill, "reason" | "why"> {
  const words = (type: string): string => conditionOf(object.status, type)?.message ?? "";
  const abandoned = object.annotations[abandonAnnotation];
  if (abandoned !== undefined) {
    return { reason: "Abandoned", why: `given up: ${abandoned}; the vendor still has it` };
  }
  if (object.isDeleting) return { reason: "Deleting", why: words("Ready") };
  if (placement.state === "Retiring") {
    return { reason: "CleanupPending", why: words("CleanupPending") };
  }
  if (placement.providerID === "") return { reason: "Making", why: words("Ready") };
  const { endpoint, region } = object.spec;
  if (placement.endpoint !== endpoint || placement.region !== region) {
    return { reason: "Moving", why: words("CleanupPending") || "spec asks for another place" };
  }
  return { reason: "Serves", why: words("Ready") };
}
