/** What one running adapter consists of, handed to each of its parts. */
import type { Accounts } from "./accounts.ts";
import type { Breaker } from "./breaker.ts";
import type { Flights } from "./flights.ts";
import type { Mutations } from "./mutations.ts";
import type { Wire } from "./wire.ts";

/** Numbers that GetProviderInfo tells callers, and by which the adapter lives. */
export const limits = {
  mutationDeadlineMs: 3_500,
  visibilityLagMs: 1_000,
  clockSkewMs: 200,
  sweepIntervalMs: 400,
  readTimeoutMs: 3_000,
  circuitOpenMs: 800,
  nameBytesMax: 200,
} as const;

export interface World {
  readonly mutations: Mutations;
  /** Names of capabilities that are declared and served. */
  readonly capabilities: readonly CapabilityName[];
  readonly accounts: Accounts;
  readonly wire: Wire;
  readonly flights: Flights;
  /** One for each endpoint and account. */
  readonly breakers: Map<string, Breaker>;
  readonly log: (fields: Readonly<Record<string, unknown>>, message: string) => void;
}

export const capabilityNames = [
  "UPDATE",
  "DELETE",
  "RELEASE",
  "ADOPT",
  "LIST_BY_OWNER",
  "BULK_HEALTH",
  "USAGE",
  "QUOTA_SETTABLE",
  "WATCH_HEALTH",
  "VALIDATE_ONLY",
] as const;
export type CapabilityName = (typeof capabilityNames)[number];
