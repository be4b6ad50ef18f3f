/** Names of the contract's enums without their prefixes, as people read them. */
import type { DescEnum } from "@bufbuild/protobuf";
import {
  BillingSchema,
  AvailabilitySchema,
  StateSchema,
} from "../../../proto/gen/dhp/provider/v1/instance_pb.ts";
import { ErrorReasonSchema, OutcomeSchema } from "../../../proto/gen/dhp/provider/v1/errors_pb.ts";
import {
  CapabilitySchema,
  ChangeSchema,
  RemovalStateSchema,
} from "../../../proto/gen/dhp/provider/v1/provider_pb.ts";

export const capabilityNames = [
  "CREATE_IDEMPOTENT",
  "UPDATE",
  "DELETE",
  "RELEASE",
  "ADOPT",
  "LIST_BY_OWNER",
  "BULK_HEALTH",
  "USAGE",
  "QUOTA_SETTABLE",
  "WATCH_HEALTH",
  "VALIDATE_ONLY",
] as const;
export type CapabilityName = (typeof capabilityNames)[number];

/** The code that each reason comes with; more than one where the contract allows it. */
export const codesOfReason: Readonly<Record<string, readonly string[]>> = {
  INVALID_FIELD: ["INVALID_ARGUMENT"],
  UNKNOWN_ACCOUNT: ["INVALID_ARGUMENT"],
  ENDPOINT_NOT_ALLOWED: ["INVALID_ARGUMENT"],
  NOT_FOUND: ["NOT_FOUND"],
  NOT_OURS: ["NOT_FOUND"],
  OWNED_BY_ANOTHER: ["ALREADY_EXISTS"],
  WRONG_REALM: ["FAILED_PRECONDITION"],
  IMMUTABLE_FIELD: ["FAILED_PRECONDITION"],
  UNSUPPORTED: ["UNIMPLEMENTED", "FAILED_PRECONDITION"],
  BAD_CREDENTIAL: ["UNAUTHENTICATED"],
  MISSING_SCOPE: ["PERMISSION_DENIED"],
  THROTTLED: ["RESOURCE_EXHAUSTED"],
  QUOTA_EXHAUSTED: ["RESOURCE_EXHAUSTED"],
  BILLING_STOPPED: ["FAILED_PRECONDITION"],
  BUSY: ["ABORTED"],
  IN_DOUBT: ["ABORTED"],
  TOO_LATE: ["ABORTED"],
  VENDOR_UNREACHABLE: ["UNAVAILABLE"],
  VENDOR_TIMEOUT: ["DEADLINE_EXCEEDED"],
  VENDOR_ERROR: ["UNAVAILABLE"],
  VENDOR_UNREADABLE: ["UNAVAILABLE"],
  CIRCUIT_OPEN: ["UNAVAILABLE"],
  CONTRACT_VERSION: ["UNIMPLEMENTED"],
  SHUTTING_DOWN: ["UNAVAILABLE"],
};

export const preconditionTypes: readonly string[] = ["BILLING", "IMMUTABLE", "REALM", "STATE"];

const short =
  (descriptor: DescEnum) =>
  (value: number): string => {
    const name = descriptor.value[value]?.name;
    return name === undefined ? `${value}` : name.slice(descriptor.sharedPrefix?.length ?? 0);
  };

/** Unknown numbers come back as digits. */
export const capabilityName = short(CapabilitySchema);
export const changeName = short(ChangeSchema);
export const stateName = short(StateSchema);
export const removalStateName = short(RemovalStateSchema);
export const availabilityName = short(AvailabilitySchema);
export const billingName = short(BillingSchema);
export const outcomeName = short(OutcomeSchema);

/** Names of ErrorReason without prefix. */
export const reasonNames: readonly string[] = ErrorReasonSchema.values
  .filter(({ number }) => number !== 0)
  .map(({ number }) => short(ErrorReasonSchema)(number));
