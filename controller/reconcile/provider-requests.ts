/** Builds the requests of ProviderAPI from an object and a placement. Pure. */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  DeleteRequestSchema,
  DescribeRequestSchema,
  EnsureRequestSchema,
  ReleaseRequestSchema,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type {
  DeleteRequest,
  DescribeRequest,
  EnsureRequest,
  ReleaseRequest,
} from "../../proto/gen/dhp/provider/v1/provider_pb.ts";
import type { DigitalHumanProvider, QuotaSpec } from "../resource/digital-human-provider.ts";
import type { Place } from "../resource/placement.ts";
import type { WantedSpec } from "../resource/wanted.ts";

/** Who this controller acts for. */
export interface FleetIdentity {
  /** First part of every instance key; clusters that share instances share it. */
  readonly fleet: string;
  /** Owner of what is created: by default the uid of namespace kube-system. */
  readonly cluster: string;
}

/** What is recorded of a placement; empty strings where nothing is known. */
export interface RecordedIdentity {
  readonly providerId: string;
  readonly realm: string;
}

export function instanceKey(identity: FleetIdentity, object: DigitalHumanProvider): string {
  return `${identity.fleet}/${object.namespace}/${object.name}`;
}

export function ensureRequest(
  identity: FleetIdentity,
  object: DigitalHumanProvider,
  ask: {
    readonly place: Place;
    readonly wanted: WantedSpec;
    readonly recorded: RecordedIdentity;
    readonly mayCreate: boolean;
    readonly notAfterMs: number;
  },
): EnsureRequest {
  const { adopt } = object.spec;
  return create(EnsureRequestSchema, {
    ...common(identity, object, ask.place),
    recorded: { ...ask.recorded },
    spec: specMessage(ask.wanted),
    specHash: ask.wanted.hash,
    mayCreate: ask.mayCreate,
    notAfter: timestampFromMs(ask.notAfterMs),
    ...(adopt === undefined || hasRecordedId(object, ask.recorded)
      ? {}
      : {
          adopt: {
            providerId: adopt.providerID,
            ...(adopt.takeOverFrom === undefined
              ? {}
              : { takeOverFrom: { ...adopt.takeOverFrom } }),
          },
        }),
  });
}

/** spec.adopt is used only while no instance is recorded, wherever, and none was: then it is inert. */
function hasRecordedId(object: DigitalHumanProvider, recorded: RecordedIdentity): boolean {
  return (
    recorded.providerId !== "" ||
    object.record.some(
      ({ providerID, lastProviderID }) => providerID !== "" || lastProviderID !== undefined,
    )
  );
}

export function describeRequest(
  identity: FleetIdentity,
  object: DigitalHumanProvider,
  ask: { readonly place: Place; readonly wanted: WantedSpec; readonly recorded: RecordedIdentity },
): DescribeRequest {
  return create(DescribeRequestSchema, {
    ...common(identity, object, ask.place),
    recorded: { ...ask.recorded },
    spec: specMessage(ask.wanted),
  });
}

export function deleteRequest(
  identity: FleetIdentity,
  object: DigitalHumanProvider,
  ask: { readonly place: Place; readonly recorded: RecordedIdentity; readonly notAfterMs: number },
): DeleteRequest {
  return create(DeleteRequestSchema, {
    ...common(identity, object, ask.place),
    recorded: { ...ask.recorded },
    notAfter: timestampFromMs(ask.notAfterMs),
  });
}

export function releaseRequest(
  identity: FleetIdentity,
  object: DigitalHumanProvider,
  ask: { readonly place: Place; readonly recorded: RecordedIdentity; readonly notAfterMs: number },
): ReleaseRequest {
  return create(ReleaseRequestSchema, {
    ...common(identity, object, ask.place),
    recorded: { ...ask.recorded },
    notAfter: timestampFromMs(ask.notAfterMs),
  });
}

function common(identity: FleetIdentity, object: DigitalHumanProvider, place: Place) {
  const { endpoint, region, account } = place;
  return {
    instanceKey: instanceKey(identity, object),
    owner: { cluster: identity.cluster, uid: object.uid },
    target: { endpoint, region, account },
  };
}

function specMessage(wanted: WantedSpec) {
  return {
    ...(wanted.displayName === undefined ? {} : { displayName: wanted.displayName }),
    parameters: { ...wanted.parameters },
    ...(Object.keys(wanted.quota).length === 0 ? {} : { quota: quotaMessage(wanted.quota) }),
  };
}

function quotaMessage(quota: QuotaSpec) {
  const { maxConcurrency, dailyCalls, monthlyCredits } = quota;
  return {
    ...(maxConcurrency === undefined ? {} : { maxConcurrency: BigInt(maxConcurrency) }),
    ...(dailyCalls === undefined ? {} : { dailyCalls: BigInt(dailyCalls) }),
    ...(monthlyCredits === undefined ? {} : { monthlyCredits: BigInt(monthlyCredits) }),
  };
}
