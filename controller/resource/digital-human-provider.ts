/** DigitalHumanProvider as the controller reads it. Parsing is total: admission has checked it. */
import {
  arrayAt,
  booleanAt,
  definedOnly,
  isJsonObject,
  numberAt,
  objectAt,
  stringAt,
  stringMapAt,
  stringsAt,
} from "./json-door.ts";
import type { JsonObject } from "./json-door.ts";
import { firstPlacementAnnotation } from "./names.ts";
import { effectiveRecord } from "./placement.ts";
import type { Placement } from "./placement.ts";

export interface DigitalHumanProvider {
  /** "namespace/name". */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly isDeleting: boolean;
  readonly finalizers: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: ProviderSpec;
  readonly status: ProviderStatus;
  /** Where an instance may exist: see placement.ts. */
  readonly record: readonly Placement[];
  /** The object as it came, so that patches are differences and unknown fields survive. */
  readonly raw: JsonObject;
  readonly rawStatus: JsonObject;
}

export interface ProviderSpec {
  readonly endpoint: string;
  readonly region: string;
  readonly displayName?: string;
  readonly className?: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly deletionPolicy?: "Delete" | "Retain";
  readonly isDeletionProtected: boolean;
  readonly isSuspended: boolean;
  readonly driftPolicy: "Correct" | "Observe";
  readonly adopt?: AdoptSpec;
  readonly quota: QuotaSpec;
}

export interface AdoptSpec {
  readonly providerID: string;
  readonly takeOverFrom?: { readonly cluster: string; readonly uid: string };
}

export interface QuotaSpec {
  readonly maxConcurrency?: number;
  readonly dailyCalls?: number;
  readonly monthlyCredits?: number;
}

export interface ProviderStatus {
  readonly observedGeneration: number;
  readonly className?: string;
  readonly account?: string;
  readonly providerID?: string;
  readonly conditions: readonly Condition[];
  readonly rateLimitedUntil?: string;
}

/** metav1.Condition. */
export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
}

export function parseDigitalHumanProvider(raw: JsonObject): DigitalHumanProvider {
  const metadata = objectAt(raw, "metadata");
  const status = objectAt(raw, "status");
  const namespace = stringAt(metadata, "namespace") ?? "";
  const name = stringAt(metadata, "name") ?? "";
  const uid = stringAt(metadata, "uid") ?? "";
  const annotations = stringMapAt(metadata, "annotations");
  return {
    key: `${namespace}/${name}`,
    namespace,
    name,
    uid,
    resourceVersion: stringAt(metadata, "resourceVersion") ?? "",
    generation: numberAt(metadata, "generation") ?? 0,
    isDeleting: stringAt(metadata, "deletionTimestamp") !== undefined,
    finalizers: stringsAt(metadata, "finalizers"),
    annotations,
    spec: parseSpec(objectAt(raw, "spec")),
    status: parseStatus(status),
    record: effectiveRecord(status, annotations[firstPlacementAnnotation], uid),
    raw,
    rawStatus: status,
  };
}

export function conditionOf(status: ProviderStatus, type: string): Condition | undefined {
  return status.conditions.find((condition) => condition.type === type);
}

function parseSpec(spec: JsonObject): ProviderSpec {
  const quota = objectAt(spec, "quota");
  const policy = stringAt(spec, "deletionPolicy");
  return {
    ...definedOnly({
      displayName: stringAt(spec, "displayName"),
      className: stringAt(spec, "className"),
      deletionPolicy: policy === "Delete" || policy === "Retain" ? policy : undefined,
      adopt: isJsonObject(spec["adopt"]) ? parseAdopt(spec["adopt"]) : undefined,
    }),
    endpoint: stringAt(spec, "endpoint") ?? "",
    region: stringAt(spec, "region") ?? "",
    parameters: stringMapAt(spec, "parameters"),
    isDeletionProtected: booleanAt(spec, "deletionProtection") ?? false,
    isSuspended: booleanAt(spec, "suspend") ?? false,
    driftPolicy: stringAt(spec, "driftPolicy") === "Observe" ? "Observe" : "Correct",
    quota: definedOnly({
      maxConcurrency: numberAt(quota, "maxConcurrency"),
      dailyCalls: numberAt(quota, "dailyCalls"),
      monthlyCredits: numberAt(quota, "monthlyCredits"),
    }),
  };
}

function parseAdopt(adopt: JsonObject): AdoptSpec {
  const from = adopt["takeOverFrom"];
  return {
    providerID: stringAt(adopt, "providerID") ?? "",
    ...(isJsonObject(from)
      ? {
          takeOverFrom: {
            cluster: stringAt(from, "cluster") ?? "",
            uid: stringAt(from, "uid") ?? "",
          },
        }
      : {}),
  };
}

function parseStatus(status: JsonObject): ProviderStatus {
  return {
    ...definedOnly({
      className: stringAt(status, "className"),
      account: stringAt(status, "account"),
      providerID: stringAt(status, "providerID"),
      rateLimitedUntil: stringAt(status, "rateLimitedUntil"),
    }),
    observedGeneration: numberAt(status, "observedGeneration") ?? 0,
    conditions: parseConditions(status),
  };
}

/** The conditions of any status. */
export function parseConditions(status: JsonObject): readonly Condition[] {
  return arrayAt(status, "conditions").filter(isJsonObject).map(parseCondition);
}

function parseCondition(condition: JsonObject): Condition {
  const status = stringAt(condition, "status");
  return {
    type: stringAt(condition, "type") ?? "",
    status: status === "True" || status === "False" ? status : "Unknown",
    reason: stringAt(condition, "reason") ?? "",
    message: stringAt(condition, "message") ?? "",
    observedGeneration: numberAt(condition, "observedGeneration") ?? 0,
    lastTransitionTime: stringAt(condition, "lastTransitionTime") ?? "",
  };
}
