/** Decides from a case's needs whether it can run, and says in words what is missing. Pure. */
import type { Vocabulary } from "../../../services/vendor-emulator/fault-words.ts";
import type { Bench } from "./bench.ts";
import type { ConformanceCase, Need } from "./case.ts";

/** For cases about names that people read. */
export const keepsNames: Need = {
  kind: "trait",
  what: "a vendor that keeps display names (displayName in the parameters file)",
  isSo: ({ parameters }) => parameters.displayName,
};

/** Why a case is skipped; undefined: it runs. */
export function whatIsMissing(
  { needs }: Pick<ConformanceCase, "needs">,
  bench: Bench,
): string | undefined {
  const missing = needs.flatMap((need) => missingOf(need, bench) ?? []);
  return missing.length === 0 ? undefined : [...new Set(missing)].join("; ");
}

function missingOf(need: Need, bench: Bench): string | undefined {
  switch (need.kind) {
    case "capability":
      return bench.hasCapability(need.name) ? undefined : `capability ${need.name} is not declared`;
    case "no-capability":
      return bench.hasCapability(need.name) ? `capability ${need.name} is declared` : undefined;
    case "parameter":
      return bench.parameters[need.name] === undefined
        ? `the parameters file has no ${need.name}`
        : undefined;
    case "own-process":
      return bench.hasLauncher
        ? undefined
        : "the suite did not start the adapter itself: needs start in the parameters file and no --address";
    case "trait":
      return need.isSo(bench) ? undefined : `needs ${need.what}`;
    default:
      return missingWord(need, bench);
  }
}

function missingWord(
  need: Extract<Need, { kind: "vendor-faults" | "effect" | "operation" | "switch" | "edit" }>,
  bench: Bench,
): string | undefined {
  if (!bench.hasFaults) return "no --vendor-faults";
  if (need.kind === "vendor-faults") return undefined;
  const words: Readonly<Record<typeof need.kind, keyof Vocabulary>> = {
    effect: "effects",
    operation: "operations",
    switch: "switches",
    edit: "edits",
  };
  const known: readonly string[] = bench.faults.vocabulary[words[need.kind]];
  return known.includes(need.name)
    ? undefined
    : `the vendor's emulator has no ${need.kind} ${need.name}`;
}
