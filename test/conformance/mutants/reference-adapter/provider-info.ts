/** GetProviderInfo: constants alone. */
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  Capability,
  GetProviderInfoResponseSchema,
  StampPlace,
} from "../../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  GetProviderInfoRequest,
  GetProviderInfoResponse,
} from "../../../../proto/gen/dhp/provider/v1/provider_pb.ts";
import { regions } from "./accounts.ts";
import { Failure } from "./failure.ts";
import { parameterSchema } from "./parameters.ts";
import { VendorApi } from "./vendor-api.ts";
import { limits } from "./world.ts";
import type { World } from "./world.ts";

let asked = 0;
// A number that the enum does not have: what a mutant may send.
const inventedCapability = 99 as Capability;

export async function providerInfo(
  world: World,
  { contractVersion = 1 }: GetProviderInfoRequest,
  signal: AbortSignal,
): Promise<GetProviderInfoResponse> {
  const { mutations } = world;
  asked += 1;
  if (mutations.has("refuses-other-versions") && contractVersion !== 1) {
    throw new Failure("UNSUPPORTED", "only contract version 1");
  }
  if (mutations.has("info-asks-the-vendor")) await askVendor(world, signal);
  return create(GetProviderInfoResponseSchema, {
    name: mutations.has("name-with-capitals") ? "Reference Adapter" : "reference",
    buildVersion: mutations.has("info-changes") ? `0.0.${asked}` : "0.0.1",
    contractVersionMin: 1,
    contractVersionMax: 1,
    capabilities: [
      ...world.capabilities.map((name) => Capability[name]),
      ...(mutations.has("invents-a-capability") ? [inventedCapability] : []),
    ],
    stampPlace: mutations.has("hides-its-stamp-place") ? StampPlace.UNSPECIFIED : StampPlace.TAG,
    visibilityLag: durationFromMs(limits.visibilityLagMs),
    listsAreConsistent: false,
    regions: [...regions],
    parameterSchemaJson: JSON.stringify(parameterSchema),
    limits: {
      nameBytesMax: limits.nameBytesMax,
      callsPerSecond: 1_000,
      sweepInterval: durationFromMs(limits.sweepIntervalMs),
      ...(mutations.has("hides-its-limits")
        ? {}
        : { mutationDeadline: durationFromMs(limits.mutationDeadlineMs) }),
      clockSkewAllowance: durationFromMs(limits.clockSkewMs),
    },
  });
}

async function askVendor(world: World, signal: AbortSignal): Promise<void> {
  const target = { endpoint: "https://api.reference.example", region: "west", account: "" };
  const place = world.accounts.placeOf({ $typeName: "dhp.provider.v1.Target", ...target });
  await new VendorApi(world, place, signal).scan();
}
