/** All mutants: each breaks what its `breaks` say, and the case that it names has to fail. */
import { changeMutants } from "./change-mutants.ts";
import { errorMutants } from "./error-mutants.ts";
import { identityMutants } from "./identity-mutants.ts";
import type { Mutant } from "./mutant.ts";
import { serviceMutants } from "./service-mutants.ts";

export const mutants: readonly Mutant[] = [
  ...changeMutants,
  ...identityMutants,
  ...errorMutants,
  ...serviceMutants,
];
