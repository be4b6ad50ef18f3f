/** What an object asks its adapter for: spec with the class's defaults filled in, and its hash. */
import { createHash } from "node:crypto";
import type { ProviderSpec, QuotaSpec } from "./digital-human-provider.ts";
import type { ProviderClass } from "./provider-class.ts";

export interface WantedSpec {
  readonly displayName?: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly quota: QuotaSpec;
  /** Hex SHA-256 over the fields above, shortened to 32 characters; equal specs hash equal. */
  readonly hash: string;
}

export function wantedSpec(spec: ProviderSpec, chosen: ProviderClass): WantedSpec {
  const parameters = { ...chosen.parameters, ...spec.parameters };
  const sorted = Object.entries(parameters).sort(([left], [right]) => (left < right ? -1 : 1));
  const quota = [spec.quota.maxConcurrency, spec.quota.dailyCalls, spec.quota.monthlyCredits];
  const text = JSON.stringify([
    spec.displayName ?? null,
    sorted,
    quota.map((limit) => limit ?? null),
  ]);
  return {
    ...(spec.displayName === undefined ? {} : { displayName: spec.displayName }),
    parameters,
    quota: spec.quota,
    hash: createHash("sha256").update(text).digest("hex").slice(0, 32),
  };
}

export function deletionPolicyOf(spec: ProviderSpec, chosen: ProviderClass): "Delete" | "Retain" {
  return spec.deletionPolicy ?? chosen.deletionPolicy ?? "Delete";
}
