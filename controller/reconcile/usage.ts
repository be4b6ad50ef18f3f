/**
 * Use of quotas: what stands in status, what is used up, and what nears its end. Pure. Numbers are
 * rounded down to two digits, so that a counter that runs does not mean a write at each look.
 */
import { conditionOf } from "../resource/digital-human-provider.ts";
import type { DigitalHumanProvider, QuotaSpec } from "../resource/digital-human-provider.ts";
import type { Verdict } from "./conditions.ts";
import type { ObservedUsage } from "./observed-instance.ts";

/** What is metered, as status.usage and spec.quota know it. */
export type Quota = "calls" | "concurrency" | "credits";

/** One quota: how much of it is used. */
interface Use {
  readonly quota: Quota;
  /** For people: "calls", "concurrent streams", "credits". */
  readonly what: string;
  readonly used: number;
  readonly limit: number;
  /** RFC 3339; undefined: not known. */
  readonly until: string | undefined;
}

/** As it stands in status.usage. */
export function roundedUsage(usage: ObservedUsage): ObservedUsage {
  return Object.fromEntries(
    Object.entries(usage).map(([name, part]) => [name, roundedPart(part ?? {})]),
  );
}

/** `undefined`: no use of a quota is known. */
export function quotaVerdict(usage: ObservedUsage, quota: QuotaSpec): Verdict | undefined {
  const uses = usesOf(usage, quota);
  if (uses.length === 0) return undefined;
  const over = uses.filter(({ used, limit }) => used >= limit);
  if (over.length === 0) {
    return { status: "False", reason: "WithinQuota", message: "no quota is used up" };
  }
  return { status: "True", reason: "UsedUp", message: over.map(wordsOf).join("; ") };
}

/** Advice alone: nothing is created that nobody declared. */
export function scaleOutVerdict(
  usage: ObservedUsage,
  quota: QuotaSpec,
  atPercent: number | undefined,
): Verdict {
  if (atPercent === undefined) {
    const message = "the class sets no spec.scaleOutAtPercent";
    return { status: "False", reason: "NoThreshold", message };
  }
  const near = usesOf(usage, quota).filter(({ used, limit }) => used * 100 >= limit * atPercent);
  if (near.length === 0) {
    const message = `no use is at ${atPercent} % of its limit`;
    return { status: "False", reason: "BelowThreshold", message };
  }
  const words = near.map(wordsOf).join("; ");
  const advice =
    "apply a further DigitalHumanProvider in another account or region and send part of the streams there, or have the limit raised at the vendor; nothing is created by itself";
  const message = `${words}: at or over ${atPercent} % of the limit; ${advice}`;
  return { status: "True", reason: "NearLimit", message };
}

/**
 * True when the use of a quota makes another condition than the object has: a bound was crossed. What
 * only counts on within its bounds is no reason to write.
 */
export function crossesBound(
  usage: ObservedUsage,
  { spec, status }: Pick<DigitalHumanProvider, "spec" | "status">,
  atPercent: number | undefined,
): boolean {
  const differs = (type: string, verdict: Verdict | undefined): boolean =>
    verdict !== undefined && verdict.status !== conditionOf(status, type)?.status;
  return (
    differs("QuotaExceeded", quotaVerdict(usage, spec.quota)) ||
    differs("ScaleOutAdvised", scaleOutVerdict(usage, spec.quota, atPercent))
  );
}

/** How much of each quota is used, 1 is all of it; those without a known limit are left out. */
export function usedShares(
  usage: ObservedUsage,
  quota: QuotaSpec,
): readonly { readonly quota: Quota; readonly share: number }[] {
  return usesOf(usage, quota)
    .filter(({ limit }) => limit > 0)
    .map((one) => ({ quota: one.quota, share: one.used / one.limit }));
}

/** The tighter of the vendor's limit and spec's, of each kind. */
function usesOf(usage: ObservedUsage, quota: QuotaSpec): readonly Use[] {
  const { calls, concurrency, credits } = usage;
  const creditLimit = tighter(numberIn(credits, "limit"), quota.monthlyCredits);
  const vendorCredits = numberIn(credits, "limit");
  const remaining = numberIn(credits, "remaining");
  const usedCredits =
    vendorCredits === undefined || remaining === undefined ? undefined : vendorCredits - remaining;
  return [
    ...use(["calls", "calls"], numberIn(calls, "used"), {
      limit: tighter(numberIn(calls, "limit"), quota.dailyCalls),
      until: textIn(calls, "resetsAt"),
    }),
    ...use(["concurrency", "concurrent streams"], numberIn(concurrency, "used"), {
      limit: tighter(numberIn(concurrency, "limit"), quota.maxConcurrency),
      until: undefined,
    }),
    ...use(["credits", "credits"], usedCredits, {
      limit: creditLimit,
      until: textIn(credits, "expiresAt"),
    }),
  ];
}

function use(
  [quota, what]: readonly [Quota, string],
  used: number | undefined,
  { limit, until }: { readonly limit: number | undefined; readonly until: string | undefined },
): readonly Use[] {
  return used === undefined || limit === undefined ? [] : [{ quota, what, used, limit, until }];
}

function wordsOf({ what, used, limit, until }: Use): string {
  const when = until === undefined ? "" : `, counted anew from ${until} on`;
  return `${rounded(used)} of ${limit} ${what} used${when}`;
}

function tighter(left: number | undefined, right: number | undefined): number | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return Math.min(left, right);
}

type Part = Readonly<Record<string, number | string>>;

function roundedPart(part: Part): Part {
  const isCount = (name: string): boolean => name === "used" || name === "remaining";
  return Object.fromEntries(
    Object.entries(part).map(([name, value]) => [
      name,
      typeof value === "number" && isCount(name) ? rounded(value) : value,
    ]),
  );
}

/** Down to two digits: 1234 is 1200, 87 is 87. */
function rounded(value: number): number {
  if (value < 100) return value;
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Math.floor(value / unit) * unit;
}

function numberIn(part: Part | undefined, name: string): number | undefined {
  const value = part?.[name];
  return typeof value === "number" ? value : undefined;
}

function textIn(part: Part | undefined, name: string): string | undefined {
  const value = part?.[name];
  return typeof value === "string" ? value : undefined;
}
