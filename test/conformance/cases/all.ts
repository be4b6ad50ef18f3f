/**
 * All cases, in the order in which they run: cheap ones that explain the failures of others first,
 * then those that have to wait for the end of a doubt, so that they wait while others run.
 */
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
import { circuitCases } from "./circuit.ts";
import { concurrencyCases } from "./concurrency.ts";
import { consoleEditCases } from "./console-edits.ts";
import { credentialCases } from "./credentials.ts";
import { healthStreamCases } from "./health-stream.ts";
import { healthHeldCases } from "./health-held.ts";
import { identityAtVendorCases } from "./identity-at-vendor.ts";
import { boundsCases } from "./bounds.ts";
import { drainCases } from "./drain.ts";
import { echoCases, secretCases } from "./secrets.ts";
import { endpointCases } from "./endpoints.ts";
import { tlsCases } from "./tls.ts";
import { spareCases } from "./spare.ts";
import { quotaResetCases } from "./quota-reset.ts";
import { givenUpLookCases } from "./given-up-looks.ts";
import { vendorLeftAloneCases } from "./vendor-left-alone.ts";

export const allCases: readonly ConformanceCase[] = [
  ...infoCases,
  ...operationCases,
  ...requestCases,
  ...requestSizeCases,
  ...vendorLeftAloneCases,
  ...ensureCases,
  ...ensureIdentityCases,
  ...ensureValidateCases,
  ...ensureAdoptCases,
  ...describeCases,
  ...removalCases,
  ...releaseCases,
  ...versionCases,
  ...listCases,
  ...spareCases,
  ...lostAnswerCases,
  ...givenUpLookCases,
  ...vendorErrorCases,
  ...quotaResetCases,
  ...echoCases,
  ...endpointCases,
  ...boundsCases,
  ...concurrencyCases,
  ...identityAtVendorCases,
  ...consoleEditCases,
  ...healthStreamCases,
  ...healthHeldCases,
  ...credentialCases,
  ...circuitCases,
  ...tlsCases,
  ...drainCases,
  ...secretCases,
];
