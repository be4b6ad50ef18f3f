/** All cases, in the order in which they run: cheap ones that explain the failures of others first. */
import type { ConformanceCase } from "../core/case.ts";
import { ensureIdentityCases } from "./ensure-identity.ts";
import { ensureValidateCases } from "./ensure-validate.ts";
import { ensureAdoptCases } from "./ensure-adopt.ts";
import { removalCases } from "./removal.ts";
import { releaseCases } from "./release.ts";
import { describeCases } from "./describe.ts";
import { operationCases } from "./operations.ts";
import { listCases } from "./list.ts";
import { versionCases } from "./versions.ts";
import { ensureCases } from "./ensure.ts";
import { infoCases } from "./info.ts";
import { requestSizeCases } from "./request-sizes.ts";
import { requestCases } from "./requests.ts";
import { vendorErrorCases } from "./vendor-errors.ts";
import { lostAnswerCases } from "./lost-answers.ts";

export const allCases: readonly ConformanceCase[] = [
  ...infoCases,
  ...operationCases,
  ...requestCases,
  ...requestSizeCases,
  ...ensureCases,
  ...ensureIdentityCases,
  ...ensureValidateCases,
  ...ensureAdoptCases,
  ...describeCases,
  ...removalCases,
  ...releaseCases,
  ...versionCases,
  ...listCases,
  ...vendorErrorCases,
  ...lostAnswerCases,
];
