/** All cases, in the order in which they run: cheap ones that explain the failures of others first. */
import type { ConformanceCase } from "../core/case.ts";
import { ensureCases } from "./ensure.ts";

export const allCases: readonly ConformanceCase[] = [...ensureCases];
