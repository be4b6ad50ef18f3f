/** What the health stream knows, laid over what the last pass came to. Pure. */
import type { Outcome } from "./conditions.ts";
import type { HealthView } from "./health-view.ts";
import type { ObservedInstance } from "./observed-instance.ts";

/**
 * The outcome with the instance as the stream shows it, where that is the newer look. What only a pass
 * can know stays: drift is a comparison with the spec.
 */
export function withHealth(outcome: Outcome, health: HealthView): Outcome {
  if (health.kind !== "seen") return outcome;
  if (outcome.kind === "suspended") return { ...outcome, seen: health.instance };
  if (outcome.kind !== "ensured") return outcome;
  if (!isNewer(outcome, health)) return withAccountFacts(outcome, health);
  const { drift, observedSpec } = outcome.instance;
  const instance = {
    ...health.instance,
    drift,
    ...(observedSpec === undefined ? {} : { observedSpec }),
  };
  return { ...outcome, instance };
}

/**
 * What the vendor states of the account does not lag as lists do: it is believed from the first look
 * after the pass's own on. That it refuses calls is believed at once: while it does, no look is whole,
 * and none is newer.
 */
function withAccountFacts(
  outcome: Outcome & { readonly kind: "ensured" },
  { instance, readAtMs }: HealthView & { readonly kind: "seen" },
): Outcome {
  const known = withoutUntil(outcome.instance);
  const isLater = readAtMs > (known.observedAtMs ?? Infinity);
  const isNews = isLater || instance.isRateLimited;
  if (!isNews || !isSameInstance(known, instance)) return outcome;
  const { isRateLimited, rateLimitedUntilMs } = instance;
  const until = rateLimitedUntilMs === undefined ? {} : { rateLimitedUntilMs };
  const { billing, usage } = isLater ? instance : known;
  return { ...outcome, instance: { ...known, isRateLimited, billing, usage, ...until } };
}

function withoutUntil({
  rateLimitedUntilMs: _before,
  ...rest
}: ObservedInstance): ObservedInstance {
  return rest;
}

/** Both times are the adapter's own; lists may lag behind a change that the pass has made. */
function isNewer(
  { instance, trustHealthAfterMs = 0 }: Outcome & { readonly kind: "ensured" },
  health: HealthView & { readonly kind: "seen" },
): boolean {
  return isSameInstance(instance, health.instance) && health.readAtMs > trustHealthAfterMs;
}

/**
 * How long until the stream is believed again after a change that a pass has made: it may have told
 * something meanwhile that it will not tell twice. `undefined`: it is believed, or says nothing.
 */
export function untilBelievedMs(outcome: Outcome, health: HealthView): number | undefined {
  if (outcome.kind !== "ensured" || health.kind !== "seen") return undefined;
  if (!isSameInstance(outcome.instance, health.instance)) return undefined;
  if (isNewer(outcome, health)) return undefined;
  const waitMs = (outcome.trustHealthAfterMs ?? 0) - health.readAtMs;
  return Math.min(Math.max(waitMs, believedMsMin), believedMsMax);
}

/** The next look at the vendor has to come first; and no wait is longer than a lag can be. */
const believedMsMin = 1_000;
const believedMsMax = 60_000;

/** The instance that an outcome speaks of, where one was seen. */
export function seenIn(outcome: Outcome): ObservedInstance | undefined {
  if (outcome.kind === "ensured") return outcome.instance;
  return outcome.kind === "suspended" ? outcome.seen : undefined;
}

function isSameInstance(left: ObservedInstance, right: ObservedInstance): boolean {
  return left.providerID === right.providerID && left.realm === right.realm;
}

/** True when the stream shows another spec than the pass did: somebody edited it at the vendor. */
export function looksEdited(known: ObservedInstance, seen: ObservedInstance): boolean {
  const before = known.observedSpec;
  const now = seen.observedSpec;
  if (before === undefined || now === undefined) return false;
  // A list may carry less than a look at the instance does: only what both show is compared.
  const differs = (left: string | number | undefined, right: typeof left): boolean =>
    left !== undefined && right !== undefined && left !== right;
  return (
    differs(before.displayName, now.displayName) ||
    Object.entries(now.parameters).some(([name, value]) =>
      differs(before.parameters[name], value),
    ) ||
    quotaNames.some((name) => differs(before.quota[name], now.quota[name]))
  );
}

const quotaNames = ["maxConcurrency", "dailyCalls", "monthlyCredits"] as const;
