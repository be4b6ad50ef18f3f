/** All mutants: each breaks what its `breaks` say, and the case that names it has to fail. */
import { handlerMutants } from "./handler-mutants.ts";
import type { Mutant } from "./mutant.ts";
import { serverMutants } from "./server-mutants.ts";
import { vendorMutants } from "./vendor-mutants.ts";

export const mutants: readonly Mutant[] = [...vendorMutants, ...handlerMutants, ...serverMutants];
