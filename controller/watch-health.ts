/** What a watch's state means for readiness and for leading. */
import type { Watch } from "./kubernetes/watch.ts";
import { apiGroup } from "./resource/names.ts";

type WatchProgress = Pick<Watch<never>, "state" | "hasSynced" | "lastError" | "lastHeardMs">;

/** So long may a broken watch be without a word; the watch itself finds out what is broken. */
const unheardMsMax = 60_000;

/** Why the process is not ready; undefined once the kind was listed. */
export function watchProblem(
  watch: Pick<WatchProgress, "state" | "hasSynced" | "lastError">,
  plural: string,
): string | undefined {
  if (watch.state === "waiting-for-crd") {
    return `the API server does not know ${plural}.${apiGroup}: apply the CRDs; the controller waits`;
  }
  if (!watch.hasSynced) return `${watch.state}: ${watch.lastError?.message ?? "not listed yet"}`;
  return undefined;
}

/** Why the process should not lead: it would act on an old picture. `nowMs` is monotonic. */
export function watchObstacle(
  watch: WatchProgress,
  plural: string,
  nowMs: number,
): string | undefined {
  const problem = watchProblem(watch, plural);
  if (problem !== undefined) return problem;
  if (watch.state !== "retrying" && watch.state !== "stopped") return undefined;
  if (nowMs - (watch.lastHeardMs ?? 0) < unheardMsMax) return undefined;
  return `the watch of ${plural} has heard nothing for ${unheardMsMax} ms: ${watch.lastError?.message ?? watch.state}`;
}
