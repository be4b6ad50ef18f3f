/** The subscription behind a key, as health, billing and usage of every agent of it. Pure. */
import type { FoundInstance, FoundUsage } from "../../services/adapter-host/adapter.ts";
import type { ProviderError } from "../../services/contract/provider-error.ts";
import { fieldAt } from "./translate.ts";

/** What an account's state means for its agents. Absent: not known. */
export interface AccountState {
  readonly billing?: NonNullable<FoundInstance["billing"]>;
  readonly credits?: NonNullable<FoundUsage["credits"]>;
  /** Plain words on what is wrong. */
  readonly message?: string;
}

/** `status` of a subscription; one that is not here says nothing. */
const billingOfStatus: Readonly<Record<string, "CURRENT" | "OVERDUE">> = {
  trialing: "CURRENT",
  active: "CURRENT",
  free: "CURRENT",
  past_due: "OVERDUE",
  incomplete: "OVERDUE",
  free_disabled: "OVERDUE",
};

/** GET /v1/user/subscription. What is missing or of another type counts as not said. */
export function accountState(json: unknown): AccountState {
  const status = fieldAt(json, ["status"]);
  const used = numberAt(json, "character_count");
  const limit = numberAt(json, "character_limit");
  const resetSeconds = numberAt(json, "next_character_count_reset_unix");
  const credits = {
    ...(used === undefined || limit === undefined ? {} : { remaining: Math.max(limit - used, 0) }),
    ...(limit === undefined ? {} : { limit }),
    ...(resetSeconds === undefined ? {} : { expiresAtMs: resetSeconds * 1000 }),
  };
  return { ...billingOf(json, typeof status === "string" ? status : ""), credits };
}

/** The account's state as an error tells it, when the subscription itself is refused. */
export function accountStateOfError({ reason, code }: ProviderError): AccountState {
  const message = `the account's state is not known: ${reason ?? code}`;
  if (reason === "BILLING_STOPPED") return { billing: "OVERDUE", message };
  return reason === "QUOTA_EXHAUSTED" ? { billing: "EXHAUSTED", message } : { message };
}

function billingOf(json: unknown, status: string): AccountState {
  const billing = Object.hasOwn(billingOfStatus, status) ? billingOfStatus[status] : undefined;
  if (billing === "OVERDUE") return { billing, message: `the subscription is ${status}` };
  const invoices = fieldAt(json, ["open_invoices"]);
  const isOwing = Array.isArray(invoices) && invoices.some(isDue);
  if (isOwing) return { billing: "OVERDUE", message: "an open invoice is due" };
  if (isUsedUp(json)) return { billing: "EXHAUSTED", message: "the period's credits are used up" };
  return billing === undefined ? {} : { billing };
}

function isDue(invoice: unknown): boolean {
  return (numberAt(invoice, "amount_due_cents") ?? 0) > 0;
}

/** Credits beyond the limit are sold up to the extension, which may be "unlimited". */
function isUsedUp(json: unknown): boolean {
  const used = numberAt(json, "character_count");
  const limit = numberAt(json, "character_limit");
  if (used === undefined || limit === undefined) return false;
  const extension = fieldAt(json, ["max_credit_limit_extension"]);
  if (typeof extension === "number") return used >= limit + extension;
  const isExtensible = fieldAt(json, ["can_extend_character_limit"]) !== false;
  return extension === undefined && !isExtensible && used >= limit;
}

function numberAt(json: unknown, name: string): number | undefined {
  const value = fieldAt(json, [name]);
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}
