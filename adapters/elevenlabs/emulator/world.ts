/** What the emulated vendor knows: keys, workspaces, agents with their past, and who called when. */
import { randomBytes } from "node:crypto";

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
  readonly status: number | "reset" | "cut" | "hang";
  readonly change: "created" | "updated" | "deleted" | "none";
  readonly agentId: string;
  /** A fault of the script had a hand in it. */
  readonly isFaulty: boolean;
}

/** State from `atMs` on; absent: deleted. */
interface Version {
  readonly atMs: number;
  readonly agent: AgentRecord | undefined;
}

const requestsMax = 100_000;
const agentsMax = 20_000;
const versionsMax = 100;
const base32 = "0123456789abcdefghjkmnpqrstvwxyz";

export class World {
  settings: EmulatorSettings = defaultSettings;
  /** What the vendor thinks of every key, whatever it is. */
  judgement: "good" | "wrong" | "scopeless" = "good";
  readonly keys = new Map<string, EmulatorKey>();
  readonly requests: RequestRecord[] = [];
  /** How many of the oldest requests are no longer recorded. */
  requestsDropped = 0;
  readonly #agents = new Map<string, Version[]>();
  readonly #subscriptions = new Map<string, Json>();
  #aheadMs = 0;
  #sequence = 0;
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
    return [...this.#agents.values()].flatMap((versions) => this.#view(versions, lagMs) ?? []);
  }

  agent(id: string, lagMs = 0): AgentRecord | undefined {
    return this.#view(this.#agents.get(id) ?? [], lagMs);
  }

  create(workspace: string, body: Json): AgentRecord {
    if (this.#agents.size >= agentsMax) throw new Error(`more than ${agentsMax} agents`);
    const atMs = this.now();
    const seconds = Math.floor(atMs / 1000);
    const agent: AgentRecord = {
      id: `agent_${Array.from(randomBytes(28), (byte) => base32[byte % 32] ?? "").join("")}`,
      workspace,
      createdSeconds: seconds,
      updatedSeconds: seconds,
      ...changedFields(defaultFields, body, this.settings),
    };
    this.#agents.set(agent.id, [{ atMs, agent }]);
    return agent;
  }

  /** `undefined`: there is none. */
  update(id: string, body: Json): AgentRecord | undefined {
    const agent = this.agent(id);
    if (agent === undefined) return undefined;
    const updatedSeconds = Math.floor(this.now() / 1000);
    const changed = { ...agent, updatedSeconds, ...changedFields(agent, body, this.settings) };
    this.#push(id, changed);
    return changed;
  }

  /** False: there is none. */
  delete(id: string): boolean {
    if (this.agent(id) === undefined) return false;
    this.#push(id, undefined);
    return true;
  }

  subscription(workspace: string): Json {
    return (
      this.#subscriptions.get(workspace) ?? {
        ...freshSubscription,
        next_character_count_reset_unix: this.#resetSeconds,
      }
    );
  }

  changeSubscription(workspace: string, fields: Json): void {
    this.#subscriptions.set(workspace, { ...this.subscription(workspace), ...fields });
  }

  record(request: Omit<RequestRecord, "sequence" | "atMs">): void {
    this.#sequence += 1;
    this.requests.push({ sequence: this.#sequence, atMs: this.now(), ...request });
    if (this.requests.length <= requestsMax) return;
    this.requests.shift();
    this.requestsDropped += 1;
  }

  #view(versions: readonly Version[], lagMs: number): AgentRecord | undefined {
    const untilMs = this.now() - lagMs;
    return versions.findLast(({ atMs }) => atMs <= untilMs)?.agent;
  }

  #push(id: string, agent: AgentRecord | undefined): void {
    const versions = this.#agents.get(id) ?? [];
    this.#agents.set(id, [...versions, { atMs: this.now(), agent }].slice(-versionsMax));
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
