/** GetProviderInfo: an adapter's constants as the contract shows them. Pure. */
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";

import {
  Capability,
  GetProviderInfoResponseSchema,
  StampPlace,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { GetProviderInfoResponse } from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { AdapterInfo } from "./adapter.ts";

/** The contract version of this code; there is one so far. */
const contractVersion = 1;

export interface ProviderInfoContext {
  readonly buildVersion: string;
  readonly clockSkewMs: number;
  readonly sweepIntervalMs: number;
}

/** Whatever version the caller speaks: it compares the two and can say which one is missing. */
export function providerInfo(
  info: AdapterInfo,
  context: ProviderInfoContext,
): GetProviderInfoResponse {
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
