/** The status of a class from what is known of its adapter and its users: pure. */
import type { ProviderError } from "../../services/contract/provider-error.ts";
import type { ConnectedProvider } from "../providers/providers.ts";
import type { Condition } from "../resource/digital-human-provider.ts";
import type { JsonObject } from "../resource/json-door.ts";
import type { ClassUse } from "./class-use.ts";

/** Places of one adapter; `stale`: why, in words. */
export interface PlaceCounts {
  readonly fresh: number;
  readonly pending: number;
  readonly stale: readonly string[];
}

/** How the adapter answered. */
export type AdapterAnswer =
  | { readonly kind: "answered"; readonly provider: ConnectedProvider }
  | { readonly kind: "failed"; readonly error: ProviderError };

export interface ClassStatusInput {
  readonly raw: JsonObject;
  readonly generation: number;
  readonly isDeleting: boolean;
  readonly address: string;
  /** Conditions as they stand. */
  readonly before: readonly Condition[];
  readonly answer: AdapterAnswer;
  readonly use: ClassUse;
  /** How fresh what the health streams told is, by place. */
  readonly places: PlaceCounts;
  readonly nowMs: number;
}

type Verdict = Pick<Condition, "status" | "reason" | "message">;

/** The whole status; fields of others are kept. */
export function classStatus(input: ClassStatusInput, status: JsonObject): JsonObject {
  const { answer, use } = input;
  const provider = answer.kind === "answered" ? answer.provider : undefined;
  return {
    ...status,
    observedGeneration: input.generation,
    instances: use.count,
    ...(provider === undefined
      ? {}
      : {
          adapter: { name: provider.name, version: provider.version },
          capabilities: provider.capabilities,
        }),
    conditions: classConditions(input),
  };
}

function classConditions(input: ClassStatusInput): readonly Condition[] {
  const verdicts = new Map<string, Verdict>([
    ["Connected", connected(input)],
    ["Compatible", compatible(input)],
    ["Healthy", healthy(input)],
    ["InUse", inUse(input)],
  ]);
  const foreign = input.before.filter(({ type }) => !verdicts.has(type));
  return [...[...verdicts].map(([type, verdict]) => dated(type, verdict, input)), ...foreign];
}

function connected({ answer, address }: ClassStatusInput): Verdict {
  if (answer.kind === "answered") {
    const message = `adapter "${answer.provider.name}" answers at ${address}`;
    return { status: "True", reason: "Answers", message };
  }
  const { error } = answer;
  if (error.reason === "CONTRACT_VERSION") {
    return { status: "True", reason: "Answers", message: `an adapter answers at ${address}` };
  }
  const message = `adapter at ${address}: ${error.message}`;
  return { status: "False", reason: "Unreachable", message };
}

function compatible({ answer }: ClassStatusInput): Verdict {
  if (answer.kind === "answered") {
    return {
      status: "True",
      reason: "SameVersion",
      message: "the adapter speaks our contract version",
    };
  }
  return answer.error.reason === "CONTRACT_VERSION"
    ? { status: "False", reason: "ContractVersion", message: answer.error.message }
    : { status: "Unknown", reason: "Unreachable", message: "the adapter has not said its version" };
}

function healthy({ answer, places }: ClassStatusInput): Verdict {
  const { fresh, pending, stale } = places;
  const [first] = stale;
  if (first !== undefined) {
    const others = stale.length > 1 ? ", and the same of other places" : "";
    return { status: "False", reason: "Stale", message: `${first}${others}` };
  }
  if (answer.kind === "failed") {
    return { status: "Unknown", reason: "Unreachable", message: "the adapter does not answer" };
  }
  if (!answer.provider.capabilities.includes("WATCH_HEALTH")) {
    const message = "the adapter serves no WatchHealth: conditions are as of the last answer";
    return { status: "Unknown", reason: "NotWatched", message };
  }
  if (pending > 0) {
    return { status: "Unknown", reason: "Pending", message: "the first look is under way" };
  }
  if (fresh === 0) {
    return { status: "Unknown", reason: "NotUsed", message: "no instance is recorded with it" };
  }
  const message = "every place of its instances was looked at within freshnessSeconds";
  return { status: "True", reason: "Fresh", message };
}

function inUse({ use, isDeleting }: ClassStatusInput): Verdict {
  if (use.count === 0) {
    return { status: "False", reason: "NotUsed", message: "no object uses this class" };
  }
  // While the class lives, names would come and go with each object, and a write with them.
  if (!isDeleting) {
    return {
      status: "True",
      reason: "Used",
      message: "objects use this class: see .status.instances",
    };
  }
  const more = use.count - use.names.length;
  const others = more > 0 ? ` and ${more} more` : "";
  return {
    status: "True",
    reason: "DeletionWaits",
    message: `the deletion waits for ${use.names.join(", ")}${others}: delete these objects or give them another class`,
  };
}

function dated(type: string, verdict: Verdict, input: ClassStatusInput): Condition {
  const before = input.before.find((condition) => condition.type === type);
  const seconds = Math.floor(input.nowMs / 1000) * 1000;
  return {
    type,
    ...verdict,
    observedGeneration: input.generation,
    lastTransitionTime:
      before?.status === verdict.status
        ? before.lastTransitionTime
        : new Date(seconds).toISOString().replace(".000Z", "Z"),
  };
}
