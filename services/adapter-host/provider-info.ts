/** GetProviderInfo: an adapter's constants as the contract shows them. Pure. */
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";

import {
  Capability,
  GetProviderInfoResponseSchema,
  StampPlace,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  GetProviderInfoRequest,
  GetProviderInfoResponse,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { ProviderError } from "../contract/provider-error.ts";
import type { AdapterInfo } from "./adapter.ts";

/** The contract version of this code; there is one so far. */
const contractVersion = 1;

export interface ProviderInfoContext {
  readonly buildVersion: string;
  readonly clockSkewMs: number;
  readonly sweepIntervalMs: number;
}

/** CONTRACT_VERSION when the caller speaks none that this code serves. */
export function providerInfo(
  request: GetProviderInfoRequest,
  info: AdapterInfo,
  context: ProviderInfoContext,
): GetProviderInfoResponse {
  const asked = request.contractVersion ?? contractVersion;
  if (asked !== contractVersion) {
    const message = `the caller speaks contract version ${asked}, this adapter ${contractVersion}`;
    throw new ProviderError("CONTRACT_VERSION", message, { resource: String(contractVersion) });
  }
  const { nameBytesMax, callsPerSecond } = info;
  return create(GetProviderInfoResponseSchema, {
    name: info.name,
    buildVersion: context.buildVersion,
    contractVersionMin: contractVersion,
    contractVersionMax: contractVersion,
    capabilities: info.capabilities.map((name) => Capability[name]),
    stampPlace: StampPlace[info.stampPlace],
    visibilityLag: durationFromMs(info.visibilityLagMs),
    listsAreConsistent: info.areListsConsistent,
    regions: [...info.regions],
    parameterSchemaJson: JSON.stringify(info.parameterSchema),
    limits: {
      ...(nameBytesMax === undefined ? {} : { nameBytesMax }),
      ...(callsPerSecond === undefined ? {} : { callsPerSecond }),
      sweepInterval: durationFromMs(context.sweepIntervalMs),
      mutationDeadline: durationFromMs(info.mutationDeadlineMs),
      clockSkewAllowance: durationFromMs(context.clockSkewMs),
    },
  });
}
