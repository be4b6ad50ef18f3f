/**
 * The create of an Ensure, and what has to be looked at after it. The one exception to "one mutation
 * in one call" is here: an instance that this very call made is deleted again when an older one with
 * the same key turns up, since that is the one all agree on.
 */
import { Change } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../contract/provider-error.ts";
import type { FoundInstance, Stamp } from "./adapter.ts";
import { byAge, findByKey, oldestOf } from "./locate.ts";
import { ownedByAnother } from "./ownership-checks.ts";
import type { EnsureQuestion } from "./request-checks.ts";
import type { Ensured, Run } from "./run.ts";
import { ownershipOf } from "./stamp.ts";

/** What is known of an instance that the vendor does not show yet. */
export const notYetVisible = { state: "PROVISIONING", availability: "UNKNOWN" } as const;

/** Creates what was proven absent. IN_DOUBT when it may not, or when an earlier create is in doubt. */
export async function createInstance(run: Run, question: EnsureQuestion): Promise<Ensured> {
  const { adapter, flights, flightKey } = run;
  const { wanted } = question;
  requireMayCreate(run, question);
  const untilMs = run.doubtUntilMs();
  let id: string;
  try {
    id = await run.mutate((call) => adapter.create(call, wanted));
  } catch (error) {
    const isOver = error instanceof ProviderError && error.outcome === "NOT_APPLIED";
    const known = error instanceof ProviderError ? error.facts.providerId : undefined;
    // What may still come to be is remembered until it must have become visible.
    const id = known ? { id: known } : {};
    if (!isOver) flights.remember(flightKey, { ...id, untilMs, isSeen: false });
    throw error;
  }
  flights.remember(flightKey, { id, untilMs, isSeen: false });
  return run.after(id, async () => {
    const { made, sharing } = await lookAgain(run, id, wanted.stamp);
    if (made !== undefined) flights.remember(flightKey, { id, untilMs, isSeen: true });
    return settle(run, question, { id, made, sharing });
  });
}

interface Look {
  readonly made: FoundInstance | undefined;
  /** All with our key, oldest first; empty where there can be only one. */
  readonly sharing: readonly FoundInstance[];
}

/** Keeps what was made, or steps back where an older one with our key exists. */
async function settle(
  run: Run,
  question: EnsureQuestion,
  { id, made, sharing }: Look & { readonly id: string },
): Promise<Ensured> {
  const { wanted } = question;
  if (isUnique(run)) {
    if (made !== undefined) requireMadeByUs(run, made, wanted.stamp);
  } else {
    const oldest = oldestOf(sharing);
    const isYounger = made !== undefined && oldest !== undefined && byAge(oldest, made) < 0;
    if (isYounger) return stepBack(run, { made, oldest, stamp: wanted.stamp });
  }
  const planned = { ...wanted, ...notYetVisible, id, createdAtMs: run.clock.now() };
  return { found: made ?? planned, change: Change.CREATED };
}

/** Until the new instance shows, where the vendor is slow to show it; then or never, it is enough. */
async function lookAgain(run: Run, id: string, stamp: Stamp): Promise<Look> {
  const { adapter, clock, site, lists, settle } = run;
  const endMs = clock.monotonicMs() + Math.min(adapter.info.visibilityLagMs, settle.waitMsMax);
  for (;;) {
    const look = await site.read(async (call) => ({
      made: await adapter.read(call, id),
      sharing: isUnique(run) ? [] : await findByKey(adapter, call, stamp, lists),
    }));
    const isListed = isUnique(run) || look.sharing.some((found) => found.id === id);
    if (look.made !== undefined && isListed) return look;
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs <= 0) return look;
    await clock.sleep(Math.min(leftMs, settle.stepMs));
  }
}

/** The vendor may have given us what another caller had made under the same id. */
function requireMadeByUs(run: Run, made: FoundInstance, stamp: Stamp): void {
  const ownership = ownershipOf(made, stamp);
  if (ownership === "ours" || ownership === "predecessor") return;
  run.nothingRemains();
  if (ownership === "foreign") throw ownedByAnother(run, made);
  throw new ProviderError("BUSY", `${made.id} came to be without our stamp meanwhile`, {
    retryAfterMs: run.pollAfterMs.deleting,
  });
}

/** True where two instances of one key cannot be: the vendor, or the id itself, sees to it. */
function isUnique(run: Run): boolean {
  const { capabilities, stampPlace } = run.adapter.info;
  return stampPlace === "ID" || capabilities.includes("CREATE_IDEMPOTENT");
}

interface Collision {
  /** By this call. */
  readonly made: FoundInstance;
  readonly oldest: FoundInstance;
  readonly stamp: Stamp;
}

async function stepBack(run: Run, { made, oldest, stamp }: Collision): Promise<Ensured> {
  const { adapter } = run;
  run.log.warn({ made: made.id, kept: oldest.id }, "two creates met, the older instance stays");
  await run.mutate((call) => adapter.delete(call, made), made.id);
  run.flights.forget(run.flightKey);
  run.nothingRemains();
  if (ownershipOf(oldest, stamp) === "foreign") throw ownedByAnother(run, oldest);
  return { found: oldest, change: Change.NONE };
}

/** Throws IN_DOUBT when the caller does not allow a create, or an earlier one may still show up. */
function requireMayCreate(run: Run, question: EnsureQuestion): void {
  if (!question.mayCreate) {
    throw new ProviderError("IN_DOUBT", "no such instance, and may_create is false", {
      outcome: "NOT_APPLIED",
      retryAfterMs: run.pollAfterMs.inDoubt,
    });
  }
  const doubtMs = run.flights.doubtMs(run.flightKey);
  // A vendor that makes a repeated create return the first instance leaves nothing to doubt.
  if (doubtMs === undefined || isUnique(run)) return;
  throw new ProviderError("IN_DOUBT", "an earlier create may still show its instance", {
    outcome: "NOT_APPLIED",
    retryAfterMs: doubtMs,
  });
}
