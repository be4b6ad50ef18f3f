/** What the emulated vendor knows: keys, workspaces, agents with their past, and who called when. */
import { randomBytes } from "node:crypto";

import { LaggingStore } from "../../../services/vendor-emulator/lagging-store.ts";
import { RequestLog } from "../../../services/vendor-emulator/request-log.ts";
import type { RequestEnd } from "../../../services/vendor-emulator/vendor-model.ts";
import { changedFields, defaultFields } from "./agent-settings.ts";
import type { AgentFields } from "./agent-settings.ts";
import type { Json } from "./json-shapes.ts";
import { changedSettings, defaultSettings } from "./settings.ts";
import type { EmulatorSettings } from "./settings.ts";

export const permissions = ["convai_read", "convai_write", "user_read"] as const;
export type Permission = (typeof permissions)[number];

export interface EmulatorKey {
  readonly apiKey: string;
  readonly userId: string;
  /** Of which its user is a member: "global", "eu", "in", "sg". */
  readonly workspace: string;
  readonly permissions: readonly Permission[];
}

export interface AgentRecord extends AgentFields {
  readonly id: string;
  readonly workspace: string;
  readonly createdSeconds: number;
  readonly updatedSeconds: number;
}

/** One request as it ended. Never holds the key. */
export interface RequestRecord {
  readonly sequence: number;
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Whose key; empty: nobody's. */
  readonly userId: string;
  readonly status: RequestEnd["sent"];
  readonly change: "created" | "updated" | "deleted" | "none";
  readonly agentId: string;
  /** A fault had a hand in it. */
  readonly isFaulty: boolean;
}

const base32 = "0123456789abcdefghjkmnpqrstvwxyz";

export class World {
  settings: EmulatorSettings = defaultSettings;
  /** What the vendor thinks of every key, whatever it is. */
  judgement: "good" | "wrong" | "scopeless" = "good";
  readonly keys = new Map<string, EmulatorKey>();
  readonly requests = new RequestLog<RequestRecord>();
  /** Lies over each subscription: how the accounts stand. */
  standing: Json = {};
  readonly #agents = new LaggingStore<AgentRecord>(() => this.now());
  readonly #subscriptions = new Map<string, Json>();
  #aheadMs = 0;
  /** When the month of every subscription ends. */
  readonly #resetSeconds = Math.floor(Date.now() / 1000) + 30 * 86_400;

  now(): number {
    return Date.now() + this.#aheadMs;
  }

  /** Moves the vendor's clock, and with it all lags. */
  advance(ms: number): void {
    this.#aheadMs += ms;
  }

  set(change: unknown): void {
    this.settings = changedSettings(this.settings, change);
  }

  addKey(key: EmulatorKey): void {
    this.keys.set(key.apiKey, key);
  }

  /** Agents as they were `lagMs` ago. */
  agents(lagMs = 0): readonly AgentRecord[] {
    return this.#agents.all(lagMs);
  }

  agent(id: string, lagMs = 0): AgentRecord | undefined {
    return this.#agents.get(id, lagMs);
  }

  create(workspace: string, body: Json): AgentRecord {
    const seconds = Math.floor(this.now() / 1000);
    const agent: AgentRecord = {
      id: `agent_${Array.from(randomBytes(28), (byte) => base32[byte % 32] ?? "").join("")}`,
      workspace,
      createdSeconds: seconds,
      updatedSeconds: seconds,
      ...changedFields(defaultFields, body, this.settings),
    };
    this.#agents.put(agent.id, agent);
    return agent;
  }

  /** `undefined`: there is none. */
  update(id: string, body: Json): AgentRecord | undefined {
    const agent = this.agent(id);
    if (agent === undefined) return undefined;
    const updatedSeconds = Math.floor(this.now() / 1000);
    const changed = { ...agent, updatedSeconds, ...changedFields(agent, body, this.settings) };
    this.#agents.put(id, changed);
    return changed;
  }

  /** False: there is none. */
  delete(id: string): boolean {
    if (this.agent(id) === undefined) return false;
    this.#agents.put(id, undefined);
    return true;
  }

  subscription(workspace: string): Json {
    return {
      ...freshSubscription,
      next_character_count_reset_unix: this.#resetSeconds,
      ...this.#subscriptions.get(workspace),
      ...this.standing,
    };
  }

  changeSubscription(workspace: string, fields: Json): void {
    this.#subscriptions.set(workspace, { ...this.#subscriptions.get(workspace), ...fields });
  }

  record(request: Omit<RequestRecord, "sequence" | "atMs">): void {
    this.requests.add({ sequence: this.requests.next + 1, atMs: this.now(), ...request });
  }
}

const freshSubscription: Json = {
  tier: "pro",
  status: "active",
  character_count: 1_200,
  character_limit: 500_000,
  max_credit_limit_extension: 0,
  can_extend_character_limit: true,
  voice_slots_used: 1,
  voice_limit: 30,
  professional_voice_slots_used: 0,
  professional_voice_limit: 1,
  voice_add_edit_counter: 0,
  max_voice_add_edits: null,
  current_overage: { amount: "0", currency: "usd" },
  has_open_invoices: false,
  open_invoices: [],
  billing_period: "monthly_period",
};
